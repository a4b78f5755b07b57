/**
 * The engine on PostgreSQL: every replica keeps the same state in memory, and follows one log; limits lie in a table.
 */
import { setTimeout as wait } from 'node:timers/promises';
import type { Engine, EngineOptions, Metric, Upkeep } from '../engine.ts';
import { writeBackup } from '../store/file/backup.ts';
import { realDisk } from '../store/file/disk.ts';
import { MemoryStore } from '../store/memory.ts';
import type { ApiKey, Category, NewPet } from '../store/model.ts';
import { prove } from '../store/record.ts';
import type { State } from '../store/state.ts';
import { PostgresJournal } from './journal.ts';
import { PostgresLimiter } from './limiter.ts';
import { Link } from './link.ts';
import { openSchema } from './schema.ts';
import { serverOf } from './server.ts';
import { damaged, makeSnapshot, putUsage } from './snapshots.ts';
import { LIMITS, LOOK_AFTER, REFILL, SERVER } from './sql.ts';

export { restorePostgres } from './snapshots.ts';

const LOOK_AFTER_EVERY_MS = 10_000;
/** A log larger than this, and than the newest snapshot, is worth a new one. */
const MIN_LOG_BYTES = 64 * 1024 * 1024;
/** How often somebody else may write between two statements until one stands still. */
const STAND_STILL_TRIES = 1_000;

const METRICS = {
  take_statements: 'Statements that took requests from limits.',
  takes: 'Requests in them.',
  repeated: 'Statements that were in the way of others, and sent again.',
  batches: 'Batches appended by this replica.',
  conflicts: 'Batches decided again because another replica was first.',
  locks: 'Times the head of the log was locked.',
  doubts: 'Batches of which nobody knew whether they were kept until they were sent again.',
};

interface Parts {
  journal: PostgresJournal;
  links: Link[];
  upkeep: Link;
}

/** `compact` does in another process what the command does. Only a server has it. */
export async function openPostgres(
  url: string,
  options: EngineOptions,
  compact?: () => Promise<unknown>,
): Promise<Engine> {
  const { clock, banAfter, log, onFatal = () => {} } = options;
  const server = serverOf(url);
  const links = ['takes', 'appends', 'upkeep'].map((name) => new Link(server, name));
  const [takes, appends, upkeep] = links;
  try {
    await openSchema(upkeep, server.schema);
    const [{ at, is_alone }] = await upkeep.rows({ text: SERVER });
    const ahead = at - clock.now(); // store time is the database's, as all time is that replicas compare
    const journal = new PostgresJournal(appends, onFatal);
    const databaseClock = { now: () => clock.now(), wall: () => clock.now() + ahead };
    const store = await MemoryStore.open(journal, { clock: databaseClock });
    const limiter = new PostgresLimiter({ clock, banAfter, takes, upkeep, journal, warn: (text) => log.warn(text) });
    await limiter.fresh(); // whoever is told that it listens finds it ready
    const engine = new PostgresEngine(store, limiter, { journal, links, upkeep });
    if (compact && is_alone) log.warn('the database has no synchronous standby: what it loses is lost');
    if (compact) void engine.lookAfter(compact, log);
    return engine;
  } catch (error) {
    for (const link of links) link.close();
    throw error;
  }
}

class PostgresEngine implements Engine {
  readonly store: MemoryStore;
  readonly limiter: PostgresLimiter;
  readonly #parts: Parts;
  #isClosed = false;

  constructor(store: MemoryStore, limiter: PostgresLimiter, parts: Parts) {
    this.store = store;
    this.limiter = limiter;
    this.#parts = parts;
  }

  readonly upkeep: Upkeep = {
    verify: async () => prove(await this.#standStill()),
    compact: async () => {
      const state = await this.#standStill();
      await makeSnapshot(this.#parts.upkeep, this.#parts.journal.at, state);
    },
    backup: async (file) => {
      const state = await this.#standStill();
      const { batch, id } = this.#parts.journal.at;
      await writeBackup(realDisk, file, { store: id, file: 1, first: batch + 1 }, state);
      return prove(state);
    },
  };

  ready(): boolean {
    return this.limiter.isReady();
  }

  *metrics(): Generator<Metric> {
    const repeated = this.#parts.links.reduce((sum, link) => sum + link.repeated, 0);
    const counts = { ...this.limiter.counts, repeated, ...this.#parts.journal.counts };
    for (const [name, help] of Object.entries(METRICS)) {
      const value = counts[name as keyof typeof METRICS];
      yield { name: `petstore_postgres_${name}_total`, help, type: 'counter', value };
    }
    const { batch } = this.#parts.journal.at;
    yield { name: 'petstore_postgres_batch', help: 'The newest batch.', type: 'gauge', value: batch };
    const isUp = Number(this.ready());
    yield { name: 'petstore_postgres_up', help: '1: the database answers.', type: 'gauge', value: isUp };
  }

  async advance({ id: key }: ApiKey, ms: number): Promise<void> {
    const usage = { key, dayUsed: 0, dayEndsAt: 0, banStep: 0, banEndsAt: 0 }; // it lies in the table of limits
    await this.store.write(() => ({ op: 'advance' as const, at: this.store.unix(), key, ms, usage }));
  }

  /** Both operations are accepted in one turn, and so become durable in one batch. */
  async reset({ id, slot }: ApiKey, content: { categories: Category[]; pets: NewPet[] }): Promise<void> {
    const { store } = this;
    await Promise.all([
      store.write((ahead) => ({ op: 'setKey' as const, key: { ...ahead.key(id)!, ahead: undefined } })),
      store.write(() => ({ op: 'fill' as const, at: store.unix(), ...content })),
    ]);
    await this.#parts.upkeep.rows({ text: REFILL, values: [slot] });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.store.close();
    this.limiter.close();
    for (const link of this.#parts.links) link.close();
  }

  /** Has the log compacted when it has grown long, and names who slows the database down. */
  async lookAfter(compact: () => Promise<unknown>, log: EngineOptions['log']): Promise<void> {
    while (!this.#isClosed) {
      try {
        const [{ is_due, long }] = await this.#parts.upkeep.rows({ text: LOOK_AFTER, values: [MIN_LOG_BYTES] });
        if (long) log.warn(`a long transaction slows the database down: ${long}`);
        if (is_due) await compact();
      } catch (error) {
        if (!this.#isClosed)
          log.warn(`upkeep of the database failed, and will be tried again: ${(error as Error).message}`);
      }
      await wait(LOOK_AFTER_EVERY_MS, undefined, { ref: false });
    }
  }

  /** For a command, which does nothing beside: the state of one batch, checked, with what is used of limits. */
  async #standStill(): Promise<State> {
    const state = this.store.read as State;
    this.limiter.close();
    for (let tries = 0; tries < STAND_STILL_TRIES; tries++) {
      await this.#parts.journal.catchUp();
      const limits = await this.#parts.upkeep.rows({ text: LIMITS });
      if (limits[0]?.head !== this.#parts.journal.at.id) continue;
      putUsage(state, limits);
      state.check();
      return state;
    }
    throw damaged('the head is not the last batch of the log');
  }
}
