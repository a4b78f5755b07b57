/**
 * What keys have used of their day, and which are banned: written down at most once a second, so that a restart gives
 * none of it back.
 */
import { SlotLimiter } from '../access/limiter.ts';
import type { Limited } from '../access/limits.ts';
import type { EngineOptions, Log } from '../engine.ts';
import { type Store, StoreError, type Usage } from '../store/model.ts';

const RECORD_EVERY_MS = 1_000;
/** About a megabyte of log; more keys than that are written in several records. */
const RECORD_MAX_KEYS = 10_000;

const idOf = (slot: number): string => `k${slot + 1}`;

/** The limiter of the file engine: what must outlive the process lies in the store. */
export class RecordedLimiter extends SlotLimiter {
  /** How many bans have begun since the start. */
  bans = 0;
  readonly #store: Store;
  readonly #log: Log;
  readonly #timer: NodeJS.Timeout;
  #underWay: Promise<void> | undefined;

  constructor(store: Store, { clock, banAfter, log }: EngineOptions) {
    super({ clock, unix: () => store.unix(), banAfter });
    this.#store = store;
    this.#log = log;
    for (const key of store.read.keys()) {
      const usage = store.read.usage(key.id);
      if (usage !== undefined) this.restore(key, usage);
    }
    this.#timer = setInterval(() => void this.record(), RECORD_EVERY_MS).unref();
  }

  /** Only what is durable is lifted: on a full disk nothing is changed. */
  override async lift(caller: Limited): Promise<void> {
    await this.#write([{ ...this.#usageOf(caller.slot), banStep: 0, banEndsAt: 0 }]);
    super.lift(caller);
  }

  /** What has changed since the last time. On a slow disk the next second does not overtake this one. */
  record(): Promise<void> {
    this.#underWay ??= this.#writeChanged('usage could not be written').finally(() => {
      this.#underWay = undefined;
    });
    return this.#underWay;
  }

  /** The last of it, when no request comes any more. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#underWay;
    await this.#writeChanged('the last usage could not be written: the next start counts it as unused');
  }

  async #writeChanged(failed: string): Promise<void> {
    for (let isMore = true; isMore; ) {
      const slots = this.changed(RECORD_MAX_KEYS);
      isMore = slots.length === RECORD_MAX_KEYS;
      if (slots.length === 0) return;
      try {
        await this.#write(slots.map((slot) => this.#usageOf(slot)));
      } catch (error) {
        this.unsaved(slots);
        const failure = error instanceof StoreError ? error.failure : undefined;
        this.#log.warn(failed, { keys: slots.length, failure, error });
        return;
      }
    }
  }

  #usageOf(slot: number): Usage {
    const key = idOf(slot);
    return { key, ...this.counted(this.#store.read.key(key)!) };
  }

  async #write(entries: Usage[]): Promise<void> {
    const at = this.#store.unix();
    const isNew = ({ key, banEndsAt }: Usage) => banEndsAt > Math.max(at, this.#store.read.usage(key)?.banEndsAt ?? 0);
    const begun = entries.filter(isNew).length;
    await this.#store.write(() => ({ op: 'usage' as const, at, entries }));
    this.bans += begun;
  }
}
