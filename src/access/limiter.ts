/**
 * The limiter of one process. Each window is a bucket that is refilled whole: it opens full at the first request
 * admitted and ends one window length later, so what it says is left, and when, is literally true. The price, as
 * for every limiter that keeps one count: a span of one window length may see up to 2N - 1 requests.
 *
 * State lies in typed arrays by slot, 37.25 bytes a caller; nothing needs a timer, because expired equals absent.
 */
import type { Clock } from '../clock.ts';
import { Bans } from './bans.ts';
import type { Counted, Decision, Limited, Limiter, WindowState } from './limits.ts';
import { DAY_MS, MINUTE_MS } from './limits.ts';
import { grown, SlotSet } from './slots.ts';
import { Windows } from './windows.ts';

/** Strikes that bring a ban, as a multiple of the limit a minute, unless `banAfter` says how many. */
export const STRIKES_PER_MINUTE_LIMIT = 5;
export const MAX_SLOTS = 2 ** 24;
const FIRST_SLOTS = 1_024;
/** Beyond this the wall-clock times written down no longer mean the same moments, and are written again. */
const MAX_WALL_DRIFT_MS = 1_000;

export interface LimiterOptions {
  clock: Clock;
  /** Strikes that bring a ban; 0: none ever does; absent: 5 × the caller's limit a minute. */
  banAfter?: number;
  /** Shorter windows, for tests in real time. */
  minuteMs?: number;
  dayMs?: number;
}

export class SlotLimiter implements Limiter {
  readonly #clock: Clock;
  readonly #banAfter: number | undefined;
  readonly #minuteMs: number;
  readonly #dayMs: number;
  #capacity = FIRST_SLOTS;
  readonly #windows = new Windows(FIRST_SLOTS);
  /** Forgotten when the minute ends. A minute with strikes and nothing used is no open window. */
  #strikes = new Uint32Array(FIRST_SLOTS);
  readonly #bans = new Bans(FIRST_SLOTS);
  readonly #changed = new SlotSet(FIRST_SLOTS);
  #wallOffset: number;
  /** The one decision, reused, so that a take allocates nothing. */
  readonly #decision: Decision = {
    at: 0,
    verdict: 'admitted',
    minute: newWindow(),
    day: newWindow(),
    retryAt: 0,
    binding: 'minute',
    banBegan: false,
  };

  constructor(options: LimiterOptions) {
    this.#clock = options.clock;
    this.#banAfter = options.banAfter;
    this.#minuteMs = options.minuteMs ?? MINUTE_MS;
    this.#dayMs = options.dayMs ?? DAY_MS;
    this.#wallOffset = options.clock.wall() - options.clock.now();
  }

  take(caller: Limited, cost = 1): Decision {
    const slot = this.#place(caller);
    const now = this.#clock.now();
    const decision = this.#judge(slot, caller, cost, now);
    if (decision.verdict === 'admitted') this.#spend(slot, cost, now);
    else if (decision.verdict === 'limited') this.#strike(slot, caller, cost, now);
    return decision;
  }

  look(caller: Limited): Decision {
    return this.#judge(this.#place(caller), caller, 1, this.#clock.now());
  }

  strikes(caller: Limited): number {
    const slot = this.#place(caller);
    return this.#windows.minuteEnds(slot) > this.#clock.now() ? this.#strikes[slot] : 0;
  }

  lift(caller: Limited): void {
    const slot = this.#place(caller);
    this.#strikes[slot] = 0;
    this.#bans.lift(slot);
    this.#changed.add(slot);
  }

  restore(caller: Limited, counted: Counted): void {
    const slot = this.#place(caller);
    const now = this.#clock.now();
    const wall = this.#clock.wall();
    const dayLeft = counted.dayEndsAt - wall;
    this.#windows.setDay(slot, now + Math.min(dayLeft, this.#dayMs), counted.dayUsed);
    const banCut = this.#bans.restore(slot, counted.banStep, counted.banEndsAt - wall, now);
    if (banCut || dayLeft > this.#dayMs) this.#changed.add(slot);
  }

  counted(caller: Limited): Counted {
    const slot = this.#place(caller);
    const now = this.#clock.now();
    const toWall = this.#clock.wall() - now;
    const dayEnds = this.#windows.dayEnds(slot);
    const dayUsed = dayEnds > now ? this.#windows.dayUsed(slot) : 0;
    const banStep = this.#bans.standing(slot, now);
    return {
      dayUsed,
      dayEndsAt: dayUsed > 0 ? Math.ceil(dayEnds + toWall) : 0,
      banStep,
      banEndsAt: banStep > 0 ? Math.ceil(this.#bans.standingEnd(slot, now) + toWall) : 0,
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

  /** Fills the decision with both windows as they stand and what they say to `cost`. Changes no state. */
  #judge(slot: number, caller: Limited, cost: number, now: number): Decision {
    const decision = this.#decision;
    const { minute, day } = decision;
    decision.at = now;
    const minuteEnds = this.#windows.minuteEnds(slot);
    const minuteUsed = minuteEnds > now ? this.#windows.minuteUsed(slot) : 0;
    minute.limit = caller.perMinute;
    minute.remaining = Math.max(0, caller.perMinute - minuteUsed);
    minute.endsAt = minuteUsed > 0 ? minuteEnds : now;
    const dayEnds = this.#windows.dayEnds(slot);
    const dayUsed = dayEnds > now ? this.#windows.dayUsed(slot) : 0;
    day.limit = caller.perDay;
    day.remaining = Math.max(0, caller.perDay - dayUsed);
    day.endsAt = dayUsed > 0 ? dayEnds : now;
    decision.banBegan = false;
    if (this.#bans.isBanned(slot, now)) refuseBanned(decision, cost, this.#bans.endsAt(slot));
    else if (cost > minute.remaining || cost > day.remaining) refuseLimited(decision, cost);
    else {
      decision.verdict = 'admitted';
      decision.retryAt = now;
      bindNarrower(decision);
    }
    return decision;
  }

  /** Takes from both windows, first opening those that the decision shows as not open: they end now. */
  #spend(slot: number, cost: number, now: number): void {
    const { minute, day } = this.#decision;
    if (minute.endsAt === now) {
      this.#startMinute(slot, now);
      minute.endsAt = now + this.#minuteMs;
    }
    if (day.endsAt === now) {
      day.endsAt = now + this.#dayMs;
      this.#windows.setDay(slot, day.endsAt, 0);
    }
    this.#windows.use(slot, cost);
    minute.remaining -= cost;
    day.remaining -= cost;
    this.#changed.add(slot);
    bindNarrower(this.#decision);
  }

  /**
   * Strikes live and end with the minute window. When only the day refuses there may be none open: then they have a
   * minute of their own, from the first strike on, or until a request is admitted and opens the window.
   */
  #strike(slot: number, caller: Limited, cost: number, now: number): void {
    if (this.#windows.minuteEnds(slot) <= now) this.#startMinute(slot, now);
    this.#strikes[slot]++;
    const banAfter = this.#banAfter ?? STRIKES_PER_MINUTE_LIMIT * caller.perMinute;
    if (banAfter === 0 || this.#strikes[slot] < banAfter) return;
    this.#strikes[slot] = 0;
    this.#bans.begin(slot, now);
    this.#changed.add(slot);
    refuseBanned(this.#decision, cost, this.#bans.endsAt(slot));
    this.#decision.banBegan = true;
  }

  #startMinute(slot: number, now: number): void {
    this.#windows.setMinute(slot, now + this.#minuteMs, 0);
    this.#strikes[slot] = 0;
  }

  /** When somebody has set the machine's clock, all that was written down in its times is written again. */
  #followWall(): void {
    const now = this.#clock.now();
    const offset = this.#clock.wall() - now;
    if (Math.abs(offset - this.#wallOffset) <= MAX_WALL_DRIFT_MS) return;
    this.#wallOffset = offset;
    for (let slot = 0; slot < this.#capacity; slot++) {
      if (this.#windows.dayEnds(slot) > now || this.#bans.standing(slot, now) > 0) this.#changed.add(slot);
    }
  }

  /** The caller's slot, with room made for it. */
  #place(caller: Limited): number {
    if (caller.slot >= this.#capacity) this.#grow(caller.slot);
    return caller.slot;
  }

  #grow(slot: number): void {
    if (slot >= MAX_SLOTS) throw new RangeError(`slot ${slot} is beyond the ${MAX_SLOTS} that a limiter holds`);
    while (this.#capacity <= slot) this.#capacity *= 2;
    this.#windows.grow(this.#capacity);
    this.#strikes = grown(this.#strikes, new Uint32Array(this.#capacity));
    this.#bans.grow(this.#capacity);
    this.#changed.grow(this.#capacity);
  }
}

function newWindow(): WindowState {
  return { limit: 0, remaining: 0, endsAt: 0 };
}

function refuseLimited(decision: Decision, cost: number): void {
  const { minute, day } = decision;
  const minuteRefuses = cost > minute.remaining;
  const dayRefuses = cost > day.remaining;
  const dayBinds = dayRefuses && !(minuteRefuses && minute.endsAt > day.endsAt);
  decision.verdict = 'limited';
  decision.binding = dayBinds ? 'day' : 'minute';
  decision.retryAt = dayBinds ? day.endsAt : minute.endsAt;
}

function refuseBanned(decision: Decision, cost: number, banEndsAt: number): void {
  const { minute, day } = decision;
  decision.verdict = 'banned';
  decision.retryAt = banEndsAt;
  if (cost > minute.remaining) decision.retryAt = Math.max(decision.retryAt, minute.endsAt);
  if (cost > day.remaining) decision.retryAt = Math.max(decision.retryAt, day.endsAt);
  bindNarrower(decision);
}

/** The window with the fewest requests remaining; on a tie the one that resets later. */
function bindNarrower(decision: Decision): void {
  const { minute, day } = decision;
  const isTie = day.remaining === minute.remaining;
  const dayBinds = isTie ? day.endsAt >= minute.endsAt : day.remaining < minute.remaining;
  decision.binding = dayBinds ? 'day' : 'minute';
}
