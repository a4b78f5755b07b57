/**
 * The requests that keys used of their day, and bans: recorded once a second, so that a restart gives none back. Where
 * nothing else is recorded, the time is, once an hour: else a start with a clock that is behind would let a day or a
 * ban begin anew that had passed while the service ran.
 */
import { SlotLimiter } from '../access/limiter.ts';
import type { Decision, Limited, Limiter, Looked } from '../access/limits.ts';
import { onceAMinute } from '../clock.ts';
import type { EngineOptions, Log } from '../engine.ts';
import type { Store, Usage } from '../store/model.ts';

const RECORD_EVERY_MS = 1_000;
const RECORD_TIME_EVERY_MS = 60 * 60 * 1_000;
/** A time of running that is shorter is not worth a record at its end. */
const MIN_RECORDED_TIME_MS = 60 * 1_000;
/** About a megabyte of log; more keys are written in several records. */
const MAX_RECORD_KEYS = 10_000;

/** `time`: the latest store time in any record; 0: there is none. */
type RecordedStore = Store & { readonly read: { readonly time: number } };

export class RecordedLimiter implements Limiter {
  readonly counts: SlotLimiter;
  readonly #store: RecordedStore;
  readonly #log: Log;
  readonly #timer: NodeJS.Timeout;
  /** The store time at which the last attempt to record the time was made. */
  #triedTimeAt = 0;
  /** The last of the tasks that run one by one. */
  #underWay: Promise<unknown> = Promise.resolve();

  constructor(store: RecordedStore, { clock, banAfter, log }: EngineOptions) {
    this.counts = new SlotLimiter({ clock, unix: () => store.unix(), banAfter });
    this.#store = store;
    this.#log = log;
    for (const key of store.read.keys.values()) {
      const usage = store.read.usage.get(key.id);
      if (usage !== undefined) this.counts.restore(key, usage);
    }
    const mayTell = onceAMinute(() => clock.now());
    const failed = 'usage could not be written; it is tried every second';
    this.#timer = setInterval(() => this.record(failed, mayTell), RECORD_EVERY_MS).unref();
  }

  take(caller: Limited): Decision {
    return this.counts.take(caller);
  }

  look(caller: Limited): Looked {
    return this.counts.look(caller);
  }

  /** The ban ends only once that is durable: on a full disk nothing is changed. */
  lift(caller: Limited): Promise<void> {
    return this.inTurn(async () => {
      await this.#write([{ ...this.#usageOf(caller.slot), banStep: 0, banEndsAt: 0 }]);
      this.counts.lift(caller);
    });
  }

  /** Records the changes since the last record. On a slow disk records wait for each other. `failed`: for the log. */
  record(failed: string, mayTell = () => true): Promise<void> {
    return this.inTurn(async () => {
      await this.#writeChanged(failed, mayTell);
      await this.#writeTime(RECORD_TIME_EVERY_MS);
    });
  }

  /**
   * Does work that writes usage before it changes the counts, as a lift does: no record runs beside it. One that had
   * read the counts before would be written behind it, and a crash then would leave the older usage.
   */
  inTurn<R>(work: () => Promise<R>): Promise<R> {
    const done = this.#underWay.then(work);
    this.#underWay = done.catch(() => {});
    return done;
  }

  /** The last record, when no request comes any more. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.record('the last usage could not be written: the next start counts it as unused');
    await this.inTurn(() => this.#writeTime(MIN_RECORDED_TIME_MS));
  }

  async #writeChanged(failed: string, mayTell: () => boolean): Promise<void> {
    let slots: number[];
    do {
      slots = this.counts.changed(MAX_RECORD_KEYS);
      if (slots.length === 0) return;
      const failure = await this.#write(slots.map((slot) => this.#usageOf(slot))).catch((error) => ({ error }));
      if (failure) {
        this.counts.unsaved(slots);
        if (mayTell()) this.#log.warn(failed, { keys: slots.length, ...failure });
        return;
      }
    } while (slots.length === MAX_RECORD_KEYS);
  }

  /** Little rests on it: so a failure, as where the store is only read, is not told, and it is not tried again soon. */
  async #writeTime(everyMs: number): Promise<void> {
    const [now, last] = [this.#store.unix(), this.#store.read.time];
    if (last === 0 || now - Math.max(last, this.#triedTimeAt) < everyMs) return;
    this.#triedTimeAt = now;
    await this.#write([]).catch(() => {});
  }

  #usageOf(slot: number): Usage {
    const key = `k${slot + 1}`;
    return { key, ...this.counts.counted(this.#store.read.keys.get(key)!) };
  }

  async #write(entries: Usage[]): Promise<undefined> {
    const at = this.#store.unix();
    await this.#store.write(() => ({ op: 'usage' as const, at, entries }));
  }
}
