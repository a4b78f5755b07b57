/** The limiter of one process. Its accounts are in memory, and are put into the store once a second. */
import type { Clock } from '../clock.ts';
import { onceAMinute } from '../clock.ts';
import type { Log } from '../store/engine.ts';
import type { ApiKey, Store, Usage } from '../store/model.ts';
import { type Account, type Decision, type Limiter, lifted, look, newAccount, take } from './limiter.ts';

const WRITE_EVERY_MS = 1_000;
const ROWS_A_TRANSACTION = 1_000;

interface Options {
  readonly clock: Clock;
  readonly log: Log;
  readonly banAfter?: number;
}

export class MemoryLimiter implements Limiter {
  readonly #store: Store;
  readonly #options: Options;
  /** By the id of the key, which the store counts from 1. */
  readonly #accounts: Account[] = [];
  /** The ids of accounts that have changed since they were last put. */
  readonly #changed = new Set<number>();
  readonly #timer: NodeJS.Timeout;
  readonly #mayWarn: () => boolean;
  /** Writes of usage come one after the other, so that no older row is put after a newer one. */
  #lastWrite: Promise<unknown> = Promise.resolve();

  /** `usage`: the rows that the store had when it was opened. */
  constructor(store: Store, options: Options, usage: Iterable<Usage> = []) {
    this.#store = store;
    this.#options = options;
    for (const { id, ...account } of usage) this.#accounts[id] = account;
    this.#mayWarn = onceAMinute(() => options.clock.now());
    this.#timer = setInterval(() => this.write(), WRITE_EVERY_MS).unref();
  }

  take(key: ApiKey): Decision {
    const decision = take(this.#account(key.id), key, this.#store.now(), this.#options.banAfter);
    if (decision.verdict !== 'banned' || decision.banBegan) this.#changed.add(key.id);
    return decision;
  }

  look(key: ApiKey): Decision {
    return look(this.#account(key.id), key, this.#store.now());
  }

  /** The account changes when that is durable: as it is then, since requests were counted meanwhile. */
  lift({ id }: ApiKey): Promise<void> {
    return this.#inOrder(async () => {
      const account = this.#account(id);
      await this.#put([{ id, ...lifted(account) }]);
      Object.assign(account, lifted(account));
      this.#changed.add(id);
    });
  }

  /** Puts the rows that have changed. If that fails they are put a second later. */
  write(): Promise<void> {
    return this.#inOrder(async () => {
      const due = [...this.#changed];
      for (let next = 0; next < due.length; next += ROWS_A_TRANSACTION) {
        const ids = due.slice(next, next + ROWS_A_TRANSACTION);
        for (const id of ids) this.#changed.delete(id);
        try {
          await this.#put(ids.map((id) => ({ id, ...this.#account(id) })));
        } catch (error) {
          for (const id of ids) this.#changed.add(id);
          const message = 'usage could not be written: it is tried again every second';
          if (this.#mayWarn()) this.#options.log.warn(message, { error: (error as Error).message });
          return;
        }
      }
    });
  }

  /** Puts the last rows. What cannot be put now is lost, and told. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.write();
    const keys = this.#changed.size;
    if (keys > 0) this.#options.log.warn('the last usage could not be written, and is lost', { keys });
  }

  async #put(rows: readonly Usage[]): Promise<void> {
    await this.#store.write((tx) => {
      for (const row of rows) tx.usage.put(row);
    });
  }

  #inOrder(work: () => Promise<void>): Promise<void> {
    const done = this.#lastWrite.then(work);
    this.#lastWrite = done.catch(() => {});
    return done;
  }

  #account(id: number): Account {
    return (this.#accounts[id] ??= newAccount());
  }
}
