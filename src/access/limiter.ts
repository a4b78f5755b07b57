/**
 * The limiter of one process. Each window is a bucket that is refilled whole: it opens full at the first request
 * admitted and ends one window length later, so what it says is left, and when, is literally true. The price, as
 * for every limiter that keeps one count: a span of one window length may see up to 2N - 1 requests. Nothing needs a
 * timer, because expired equals absent.
 */
import type { Clock } from '../clock.ts';
import { Bans } from './bans.ts';
import type { Counted, Decision, Limited, Limiter, WindowState } from './limits.ts';
import { DAY_MS, MINUTE_MS } from './limits.ts';
import { SlotSet } from './slots.ts';

/** Strikes that bring a ban, as a multiple of the limit a minute, unless `banAfter` says how many. */
const STRIKES_PER_MINUTE_LIMIT = 5;
export const MAX_SLOTS = 2 ** 24;
const FIRST_SLOTS = 1_024;
/** Beyond this the wall-clock times written down no longer mean the same moments, and are written again. */
const MAX_WALL_DRIFT_MS = 1_000;

/*
 * What a take reads and writes of a caller is one row of 32 bytes, half a cache line: at a million callers the time of
 * a take is the time its memory takes to come. The row is two doubles, `#ends`, and then four words, `#counts`.
 */
const ROW_BYTES = 32;
const minuteEnd = (slot: number) => 4 * slot;
const dayEnd = (slot: number) => 4 * slot + 1;
const minuteCount = (slot: number) => 8 * slot + 4;
const dayCount = (slot: number) => 8 * slot + 5;
/** Strikes are forgotten when the minute ends. A minute with strikes and nothing used is no open window. */
const strikeCount = (slot: number) => 8 * slot + 6;
/** 0: the caller has no ban, so nobody needs to look for it. Few have, so bans are kept in a map. */
const hasBan = (slot: number) => 8 * slot + 7;

export class SlotLimiter implements Limiter {
  readonly #clock: Clock;
  readonly #banAfter: number | undefined;
  #capacity = FIRST_SLOTS;
  #ends = new Float64Array();
  #counts = new Uint32Array();
  readonly #bans = new Bans();
  readonly #changed = new SlotSet();
  #wallOffset: number;
  /** The one decision, reused, so that a take allocates nothing. */
  readonly #decision: Decision = {
    at: 0,
    verdict: 'admitted',
    minute: { limit: 0, remaining: 0, endsAt: 0 },
    day: { limit: 0, remaining: 0, endsAt: 0 },
    retryAt: 0,
    binding: 'minute',
    banBegan: false,
  };

  /** `banAfter`: strikes that bring a ban; 0: none ever does; absent: 5 × the caller's limit a minute. */
  constructor({ clock, banAfter }: { clock: Clock; banAfter?: number }) {
    this.#clock = clock;
    this.#banAfter = banAfter;
    this.#wallOffset = clock.wall() - clock.now();
    this.#grow(0);
  }

  take(caller: Limited, cost = 1): Decision {
    const slot = this.#place(caller);
    const now = this.#clock.now();
    const minuteUsed = this.#minuteUsed(slot, now);
    const dayUsed = this.#dayUsed(slot, now);
    if (minuteUsed + cost > caller.perMinute || dayUsed + cost > caller.perDay || this.#banEnd(slot) > now) {
      return this.#refuse(slot, caller, cost, now);
    }
    const ends = this.#ends;
    const counts = this.#counts;
    if (minuteUsed === 0) this.#startMinute(slot, now);
    if (dayUsed === 0) ends[dayEnd(slot)] = now + DAY_MS;
    counts[minuteCount(slot)] = minuteUsed + cost;
    counts[dayCount(slot)] = dayUsed + cost;
    this.#changed.add(slot);
    const decision = this.#decision;
    show(decision.minute, caller.perMinute, minuteUsed + cost, ends[minuteEnd(slot)]);
    show(decision.day, caller.perDay, dayUsed + cost, ends[dayEnd(slot)]);
    return admit(decision, now);
  }

  look(caller: Limited): Decision {
    return this.#judge(this.#place(caller), caller, 1, this.#clock.now());
  }

  strikes(caller: Limited): number {
    const slot = this.#place(caller);
    return this.#ends[minuteEnd(slot)] > this.#clock.now() ? this.#counts[strikeCount(slot)] : 0;
  }

  lift(caller: Limited): void {
    const slot = this.#place(caller);
    this.#counts[strikeCount(slot)] = 0;
    this.#counts[hasBan(slot)] = 0;
    this.#bans.lift(slot);
    this.#changed.add(slot);
  }

  restore(caller: Limited, counted: Counted): void {
    const slot = this.#place(caller);
    const now = this.#clock.now();
    const wall = this.#clock.wall();
    const dayLeft = counted.dayEndsAt - wall;
    this.#ends[dayEnd(slot)] = now + Math.min(dayLeft, DAY_MS);
    this.#counts[dayCount(slot)] = counted.dayUsed;
    this.#counts[hasBan(slot)] = Math.min(counted.banStep, 1);
    const banCut = this.#bans.restore(slot, counted.banStep, counted.banEndsAt - wall, now);
    if (banCut || dayLeft > DAY_MS) this.#changed.add(slot);
  }

  counted(caller: Limited): Counted {
    const slot = this.#place(caller);
    const now = this.#clock.now();
    const toWall = this.#clock.wall() - now;
    const dayUsed = this.#dayUsed(slot, now);
    const ban = this.#bans.standing(slot, now);
    return {
      dayUsed,
      dayEndsAt: dayUsed > 0 ? Math.ceil(this.#ends[dayEnd(slot)] + toWall) : 0,
      banStep: ban.step,
      banEndsAt: ban.step > 0 ? Math.ceil(ban.endsAt + toWall) : 0,
    };
  }

  changed(max: number): number[] {
    this.#followWall();
    return this.#changed.drain(max);
  }

  unsaved(slots: Iterable<number>): void {
    for (const slot of slots) this.#changed.add(slot);
  }

  bansEnded(): number[] {
    return this.#bans.ended(this.#clock.now());
  }

  /** What is used of a window that is open; 0 where none is. */
  #minuteUsed(slot: number, now: number): number {
    return this.#ends[minuteEnd(slot)] > now ? this.#counts[minuteCount(slot)] : 0;
  }

  #dayUsed(slot: number, now: number): number {
    return this.#ends[dayEnd(slot)] > now ? this.#counts[dayCount(slot)] : 0;
  }

  #banEnd(slot: number): number {
    return this.#counts[hasBan(slot)] === 0 ? 0 : this.#bans.endsAt(slot);
  }

  /** Fills the decision with both windows as they stand and what they say to `cost`. Changes no state. */
  #judge(slot: number, caller: Limited, cost: number, now: number): Decision {
    const decision = this.#decision;
    const minuteUsed = this.#minuteUsed(slot, now);
    const dayUsed = this.#dayUsed(slot, now);
    show(decision.minute, caller.perMinute, minuteUsed, minuteUsed > 0 ? this.#ends[minuteEnd(slot)] : now);
    show(decision.day, caller.perDay, dayUsed, dayUsed > 0 ? this.#ends[dayEnd(slot)] : now);
    admit(decision, now);
    const banEnd = this.#banEnd(slot);
    const isUsedUp = cost > decision.minute.remaining || cost > decision.day.remaining;
    if (isUsedUp || banEnd > now) refuse(decision, cost, banEnd);
    return decision;
  }

  /**
   * Strikes live and end with the minute window. When only the day refuses there may be none open: then they have a
   * minute of their own, from the first strike on, or until a request is admitted and opens the window.
   */
  #refuse(slot: number, caller: Limited, cost: number, now: number): Decision {
    const decision = this.#judge(slot, caller, cost, now);
    if (decision.verdict === 'banned') return decision;
    if (this.#ends[minuteEnd(slot)] <= now) this.#startMinute(slot, now);
    const counts = this.#counts;
    const strikes = ++counts[strikeCount(slot)];
    const banAfter = this.#banAfter ?? STRIKES_PER_MINUTE_LIMIT * caller.perMinute;
    if (banAfter === 0 || strikes < banAfter) return decision;
    counts[strikeCount(slot)] = 0;
    counts[hasBan(slot)] = 1;
    this.#bans.begin(slot, now);
    this.#changed.add(slot);
    this.#judge(slot, caller, cost, now).banBegan = true;
    return decision;
  }

  #startMinute(slot: number, now: number): void {
    this.#ends[minuteEnd(slot)] = now + MINUTE_MS;
    this.#counts[minuteCount(slot)] = 0;
    this.#counts[strikeCount(slot)] = 0;
  }

  /** When somebody has set the machine's clock, all that was written down in its times is written again. */
  #followWall(): void {
    const now = this.#clock.now();
    const offset = this.#clock.wall() - now;
    if (Math.abs(offset - this.#wallOffset) <= MAX_WALL_DRIFT_MS) return;
    this.#wallOffset = offset;
    for (let slot = 0; slot < this.#capacity; slot++) {
      const isBanned = this.#counts[hasBan(slot)] !== 0 && this.#bans.standing(slot, now).step > 0;
      if (isBanned || this.#ends[dayEnd(slot)] > now) this.#changed.add(slot);
    }
  }

  /** The caller's slot, with room made for it. */
  #place({ slot }: Limited): number {
    if (slot >= this.#capacity) this.#grow(slot);
    return slot;
  }

  #grow(slot: number): void {
    if (slot >= MAX_SLOTS) throw new RangeError(`slot ${slot} is beyond the ${MAX_SLOTS} that a limiter holds`);
    while (this.#capacity <= slot) this.#capacity *= 2;
    const rows = new ArrayBuffer(this.#capacity * ROW_BYTES);
    new Uint8Array(rows).set(new Uint8Array(this.#counts.buffer));
    this.#ends = new Float64Array(rows);
    this.#counts = new Uint32Array(rows);
    this.#changed.grow(this.#capacity);
  }
}

function show(window: WindowState, limit: number, used: number, endsAt: number): void {
  window.limit = limit;
  window.remaining = Math.max(0, limit - used);
  window.endsAt = endsAt;
}

/** What binds is the window with the fewest requests remaining; on a tie the one that resets later. */
function admit(decision: Decision, now: number): Decision {
  const { minute, day } = decision;
  const isTie = day.remaining === minute.remaining;
  const dayBinds = isTie ? day.endsAt >= minute.endsAt : day.remaining < minute.remaining;
  decision.at = now;
  decision.verdict = 'admitted';
  decision.retryAt = now;
  decision.binding = dayBinds ? 'day' : 'minute';
  decision.banBegan = false;
  return decision;
}

/** A window refuses `cost`, or a ban that has not ended does. A ban leaves it at the window that binds anyway. */
function refuse(decision: Decision, cost: number, banEnd: number): void {
  const { at, minute, day } = decision;
  const minuteRefuses = cost > minute.remaining;
  const dayRefuses = cost > day.remaining;
  const isBanned = banEnd > at;
  decision.verdict = isBanned ? 'banned' : 'limited';
  decision.retryAt = Math.max(at, banEnd, minuteRefuses ? minute.endsAt : at, dayRefuses ? day.endsAt : at);
  if (isBanned) return;
  decision.binding = dayRefuses && !(minuteRefuses && minute.endsAt > day.endsAt) ? 'day' : 'minute';
}
