/** Writes down once a second what keys have used and which are banned, so that a restart gives nothing back. */
import type { Limiter } from '../access/limits.ts';
import type { Clock } from '../clock.ts';
import { type Store, StoreError } from '../store/model.ts';
import { usageOf } from './context.ts';
import { keyIdOfSlot } from './keys.ts';
import type { Log } from './logging.ts';

const RECORD_EVERY_MS = 1_000;
/** About a megabyte of log; more keys than that are written in several records. */
const RECORD_MAX_KEYS = 10_000;

export class UsageRecorder {
  readonly #store: Store;
  readonly #limiter: Limiter;
  readonly #clock: Clock;
  readonly #log: Log;
  /** How many bans have begun since the start. */
  bans = 0;
  #timer: NodeJS.Timeout | undefined;
  #underWay: Promise<void> | undefined;

  constructor(store: Store, limiter: Limiter, clock: Clock, log: Log) {
    this.#store = store;
    this.#limiter = limiter;
    this.#clock = clock;
    this.#log = log;
  }

  start(): void {
    this.#timer = setInterval(() => void this.record(), RECORD_EVERY_MS).unref();
  }

  /** The last of it, when no request comes any more. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#underWay;
    await this.record();
  }

  /** On a slow disk the next second does not overtake this one. */
  record(): Promise<void> {
    this.#underWay ??= this.#writeChanged().finally(() => {
      this.#underWay = undefined;
    });
    return this.#underWay;
  }

  async #writeChanged(): Promise<void> {
    for (const slot of this.#limiter.bansEnded()) this.#log.info('a ban ended', { key: keyIdOfSlot(slot) });
    for (let full = true; full; ) {
      const slots = this.#limiter.changed(RECORD_MAX_KEYS);
      if (slots.length === 0) return;
      full = slots.length === RECORD_MAX_KEYS;
      try {
        await this.#write(slots);
      } catch (error) {
        this.#limiter.unsaved(slots);
        const failure = error instanceof StoreError ? error.failure : undefined;
        this.#log.warn('usage could not be recorded', { keys: slots.length, failure, error });
        return;
      }
    }
  }

  async #write(slots: number[]): Promise<void> {
    const { read } = this.#store;
    const keys = slots.map((slot) => read.key(keyIdOfSlot(slot))!);
    const bannedUntil = new Map(keys.map((key) => [key.id, read.usage(key.id)?.banEndsAt ?? 0]));
    const { entries } = await this.#store.write(() => ({
      op: 'usage' as const,
      at: this.#clock.wall(),
      entries: keys.map((key) => usageOf(this.#limiter, key)),
    }));
    for (const { key, banEndsAt } of entries) {
      if (banEndsAt > bannedUntil.get(key)! && banEndsAt > this.#clock.wall()) this.bans++;
    }
  }
}
