/** Writes down once a second what keys have used of their day and which are banned: a restart gives none of it back. */
import { keyIdOfSlot } from '../store/keys.ts';
import { StoreError } from '../store/model.ts';
import { type Context, usageOf } from './context.ts';
import type { Log } from './logging.ts';

const RECORD_EVERY_MS = 1_000;
/** About a megabyte of log; more keys than that are written in several records. */
const RECORD_MAX_KEYS = 10_000;

export class UsageRecorder {
  /** How many bans have begun since the start. */
  bans = 0;
  readonly #context: Pick<Context, 'store' | 'limiter' | 'clock'>;
  readonly #log: Log;
  #timer: NodeJS.Timeout | undefined;
  #underWay: Promise<void> | undefined;

  constructor(context: Pick<Context, 'store' | 'limiter' | 'clock'>, log: Log) {
    this.#context = context;
    this.#log = log;
  }

  start(): void {
    this.#timer = setInterval(() => void this.record(), RECORD_EVERY_MS).unref();
  }

  /** The last of it, when no request comes any more. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#underWay;
    await this.#writeChanged('the last usage could not be recorded: the next start counts it as unused');
  }

  /** On a slow disk the next second does not overtake this one. */
  record(): Promise<void> {
    this.#underWay ??= this.#writeChanged().finally(() => {
      this.#underWay = undefined;
    });
    return this.#underWay;
  }

  async #writeChanged(failed = 'usage could not be recorded'): Promise<void> {
    const { limiter } = this.#context;
    for (const slot of limiter.bansEnded()) this.#log.info('a ban ended', { key: keyIdOfSlot(slot) });
    let slots: number[];
    do {
      slots = limiter.changed(RECORD_MAX_KEYS);
      if (slots.length === 0) return;
      try {
        await this.#write(slots);
      } catch (error) {
        limiter.unsaved(slots);
        const failure = error instanceof StoreError ? error.failure : undefined;
        this.#log.warn(failed, { keys: slots.length, failure, error });
        return;
      }
    } while (slots.length === RECORD_MAX_KEYS);
  }

  async #write(slots: number[]): Promise<void> {
    const { store, limiter, clock } = this.#context;
    const now = clock.wall();
    const entries = slots.map((slot) => usageOf(limiter, store.read.key(keyIdOfSlot(slot))!));
    const begun = entries.filter(({ key, banEndsAt }) => {
      return banEndsAt > now && banEndsAt > (store.read.usage(key)?.banEndsAt ?? 0);
    });
    await store.write(() => ({ op: 'usage' as const, at: clock.steady(), entries }));
    this.bans += begun.length;
  }
}
