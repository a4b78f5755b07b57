import { grown } from './slots.ts';

/** Doubles a caller: the minute's end, the day's end, and the two counts of 32 bits in the third. */
const DOUBLES = 3;
const WORDS = 2 * DOUBLES;
const MINUTE_USED = 4;
const DAY_USED = 5;

/**
 * Both windows of every caller by slot: when they end and what is used of them. What is about one caller lies together
 * (24 bytes), because at a million callers the time of a take is the time its memory takes to come.
 */
export class Windows {
  #ends: Float64Array;
  /** The same bytes, for the counts. */
  #used: Uint32Array;

  constructor(capacity: number) {
    this.#ends = new Float64Array(capacity * DOUBLES);
    this.#used = new Uint32Array(this.#ends.buffer);
  }

  grow(capacity: number): void {
    this.#ends = grown(this.#ends, new Float64Array(capacity * DOUBLES));
    this.#used = new Uint32Array(this.#ends.buffer);
  }

  minuteEnds(slot: number): number {
    return this.#ends[slot * DOUBLES];
  }

  minuteUsed(slot: number): number {
    return this.#used[slot * WORDS + MINUTE_USED];
  }

  setMinute(slot: number, endsAt: number, used: number): void {
    this.#ends[slot * DOUBLES] = endsAt;
    this.#used[slot * WORDS + MINUTE_USED] = used;
  }

  dayEnds(slot: number): number {
    return this.#ends[slot * DOUBLES + 1];
  }

  dayUsed(slot: number): number {
    return this.#used[slot * WORDS + DAY_USED];
  }

  setDay(slot: number, endsAt: number, used: number): void {
    this.#ends[slot * DOUBLES + 1] = endsAt;
    this.#used[slot * WORDS + DAY_USED] = used;
  }

  /** Takes from both. */
  use(slot: number, cost: number): void {
    this.#used[slot * WORDS + MINUTE_USED] += cost;
    this.#used[slot * WORDS + DAY_USED] += cost;
  }
}
