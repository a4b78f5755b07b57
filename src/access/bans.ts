/** Temporary bans by slot: how long each lasts, how they escalate, and how they are forgiven. 9 bytes a caller. */
import { DAY_MS } from './limits.ts';
import { grown, SlotSet } from './slots.ts';

export const FIRST_BAN_MS = 120_000;
export const BAN_GROWTH = 4;
export const MAX_BAN_MS = DAY_MS;
/** The step whose ban is the first of MAX_BAN_MS: a higher one would change nothing but the time to forgive it. */
export const MAX_BAN_STEP = 6;
export const FORGIVEN_AFTER_MS = DAY_MS;

/** How long the ban of this step lasts: 2, 8, 32, 128, 512 minutes, then a day. */
export function banMs(step: number): number {
  return Math.min(FIRST_BAN_MS * BAN_GROWTH ** (step - 1), MAX_BAN_MS);
}

export class Bans {
  #ends: Float64Array;
  /** As it was when the newest ban began: what was forgiven since follows from `#ends`. 0: none stands. */
  #steps: Uint8Array;
  /** Those whose end nobody has been told of. */
  readonly #running: SlotSet;
  /** None of the running ends before this: until then nobody has to look. */
  #nextEnd = Number.POSITIVE_INFINITY;

  constructor(capacity: number) {
    this.#ends = new Float64Array(capacity);
    this.#steps = new Uint8Array(capacity);
    this.#running = new SlotSet(capacity);
  }

  grow(capacity: number): void {
    this.#ends = grown(this.#ends, new Float64Array(capacity));
    this.#steps = grown(this.#steps, new Uint8Array(capacity));
    this.#running.grow(capacity);
  }

  isBanned(slot: number, now: number): boolean {
    return this.#steps[slot] > 0 && this.#ends[slot] > now;
  }

  /** When the newest ban ends or ended. */
  endsAt(slot: number): number {
    return this.#ends[slot];
  }

  begin(slot: number, now: number): void {
    const step = Math.min(this.standing(slot, now) + 1, MAX_BAN_STEP);
    this.#set(slot, step, now + banMs(step));
  }

  /** How many bans stand against the caller: one is forgiven for every day since the newest ended. */
  standing(slot: number, now: number): number {
    return Math.max(0, this.#steps[slot] - this.#daysSince(slot, now));
  }

  /** The end of the newest ban, moved on by a day for every step forgiven since: goes with `standing`. */
  standingEnd(slot: number, now: number): number {
    return this.#ends[slot] + this.#daysSince(slot, now) * FORGIVEN_AFTER_MS;
  }

  lift(slot: number): void {
    this.#steps[slot] = 0;
    this.#running.delete(slot);
  }

  /** Puts back a ban that ends (or, when negative, ended) `left` ms from now; whether that had to be cut. */
  restore(slot: number, step: number, left: number, now: number): boolean {
    const kept = Math.min(step, MAX_BAN_STEP);
    const longest = banMs(kept);
    this.#set(slot, kept, now + Math.min(left, longest));
    if (left <= 0 || kept === 0) this.#running.delete(slot);
    return kept > 0 && left > longest;
  }

  /** The slots whose ban has ended since they were last asked for. */
  ended(now: number): number[] {
    if (now < this.#nextEnd) return [];
    this.#nextEnd = Number.POSITIVE_INFINITY;
    return this.#running.drain(Number.POSITIVE_INFINITY, (slot) => {
      const isOver = this.#ends[slot] <= now;
      if (!isOver) this.#nextEnd = Math.min(this.#nextEnd, this.#ends[slot]);
      return isOver;
    });
  }

  #set(slot: number, step: number, end: number): void {
    this.#steps[slot] = step;
    this.#ends[slot] = end;
    this.#running.add(slot);
    this.#nextEnd = Math.min(this.#nextEnd, end);
  }

  #daysSince(slot: number, now: number): number {
    return Math.max(0, Math.floor((now - this.#ends[slot]) / FORGIVEN_AFTER_MS));
  }
}
