/** Temporary bans by slot: how long each lasts, how they escalate, and how they are forgiven. Few callers have any. */
import { DAY_MS, MINUTE_MS } from './limits.ts';

/** How long the first lasts, the second and so on; the last comes again and again. */
const BAN_MINUTES = [2, 8, 32, 128, 512, 1_440];
const FORGIVEN_AFTER_MS = DAY_MS;

interface Ban {
  readonly step: number;
  readonly endsAt: number;
}

const NO_BAN: Ban = { step: 0, endsAt: 0 };

export class Bans {
  /** Each as it was when it began: what was forgiven since follows from its end. */
  readonly #newest = new Map<number, Ban>();
  /** Those whose end nobody has been told of. */
  readonly #running = new Set<number>();
  /** None of the running ends before this: until then nobody has to look. */
  #nextEnd = Number.POSITIVE_INFINITY;

  /** When the caller's newest ban ends or ended. */
  endsAt(slot: number): number {
    return (this.#newest.get(slot) ?? NO_BAN).endsAt;
  }

  begin(slot: number, now: number): void {
    const step = Math.min(this.standing(slot, now).step + 1, BAN_MINUTES.length);
    this.#set(slot, step, now + lengthMs(step), now);
  }

  /** What stands of the newest ban: for every day since it ended a step is forgiven, and its end moves on by a day. */
  standing(slot: number, now: number): Ban {
    const { step, endsAt } = this.#newest.get(slot) ?? NO_BAN;
    const forgiven = Math.max(0, Math.floor((now - endsAt) / FORGIVEN_AFTER_MS));
    return forgiven < step ? { step: step - forgiven, endsAt: endsAt + forgiven * FORGIVEN_AFTER_MS } : NO_BAN;
  }

  lift(slot: number): void {
    this.#newest.delete(slot);
    this.#running.delete(slot);
  }

  /** Puts back a ban that ends (or, when negative, ended) `left` ms from now; whether that had to be cut. */
  restore(slot: number, step: number, left: number, now: number): boolean {
    if (step === 0) return false;
    const kept = Math.min(step, BAN_MINUTES.length);
    const longest = lengthMs(kept);
    this.#set(slot, kept, now + Math.min(left, longest), now);
    return left > longest;
  }

  /** The slots whose ban has ended since they were last asked for. */
  ended(now: number): number[] {
    if (now < this.#nextEnd) return [];
    this.#nextEnd = Number.POSITIVE_INFINITY;
    const ended: number[] = [];
    for (const slot of this.#running) {
      const end = this.endsAt(slot);
      if (end > now) this.#nextEnd = Math.min(this.#nextEnd, end);
      else if (this.#running.delete(slot)) ended.push(slot);
    }
    return ended;
  }

  #set(slot: number, step: number, endsAt: number, now: number): void {
    this.#newest.set(slot, { step, endsAt });
    if (endsAt <= now) return;
    this.#running.add(slot);
    this.#nextEnd = Math.min(this.#nextEnd, endsAt);
  }
}

function lengthMs(step: number): number {
  return BAN_MINUTES[step - 1] * MINUTE_MS;
}
