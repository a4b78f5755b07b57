/**
 * The limiter of one process. Each caller has fixed windows of its own, that is, token buckets that are refilled whole.
 * A window opens full at the first admitted request and ends a minute or a day later, so the count and reset in the
 * headers are exact. The price: up to 2N - 1 requests in 60 s or 24 h. No timer is needed: an ended window counts as 0.
 */
import { DAY_MS, MINUTE_MS } from '../clock.ts';
import { MAX_SLOTS, type Usage } from '../store/model.ts';
import type { Decision, Limited, Limiter, LimiterOptions, Looked, Verdict } from './limits.ts';
import { conclude, emptyDecision, STRIKES_PER_MINUTE_LIMIT, showWindow } from './limits.ts';
import { BAN_MINUTES, MAX_BANS, MAX_REQUESTS_PER_WINDOW } from './plans.ts';
import { steadyOffset } from './wall.ts';

/*
 * A row holds the counts of one caller, at the place that its slot says: eight 32-bit numbers, half a cache line. With
 * a million callers, the time of a take is the time of its memory access.
 *
 *   | minute: end, used | day: end, used | ban: end, bans | strikes | before |
 * Ends are ms since an origin, which is moved before they outgrow 31 bits. An ended window counts as 0.
 */
const ROW = 8;
const MINUTE_END = 0; // of the open window; if only the day has refused: of the minute in which strikes add up
const MINUTE_USED = 1;
const DAY_END = 2;
const DAY_USED = 3;
const BAN_END = 4;
const BANS = 5; // bans that counted against the caller when the newest began, including that one
const STRIKES = 6;
const BEFORE = 7; // the next in the linked list of changed callers, as slot + 1; 0: not in the list
const NOBODY = -1; // ends that list
const PAST_MS = (MAX_BANS + 1) * DAY_MS; // the origin is at least so old: a ban from before the origin is forgiven
const LAST_MOMENT = 2 ** 31 - 2 * DAY_MS; // a window or ban that begins by then ends within 31 bits
const COMPARE_EVERY_MS = 250;
if (BEFORE !== ROW - 1 || Math.max(...BAN_MINUTES) * MINUTE_MS > DAY_MS) throw new Error('a row would overflow');

/** The counts of a caller that must survive a restart. Those of windows that have ended are 0. */
type Counted = Omit<Usage, 'key'>;

export class SlotLimiter implements Limiter {
  #rows = new Int32Array(ROW);
  readonly #unix: () => number;
  readonly #wallOffset: (at: number) => number;
  readonly #banAfter: number | undefined;
  #origin: number; // added to an end in a row, it gives a moment of the limiter's clock
  #wallOrigin = 0; // added to an end, it gives a moment of the wall clock
  #compareAt = 0;
  #bansBegun = 0;
  #newestChanged = NOBODY;
  readonly #decision = emptyDecision(); // reused, so that a take allocates nothing

  constructor({ clock, unix, banAfter }: LimiterOptions) {
    this.#unix = unix;
    this.#banAfter = banAfter;
    this.#origin = Math.floor(unix()) - PAST_MS;
    this.#wallOffset = steadyOffset(() => clock.wall());
  }

  /** How many bans have begun. */
  get bansBegun(): number {
    return this.#bansBegun;
  }

  /** Checks both windows before it counts in either. */
  take(caller: Limited): Decision {
    const row = this.#rowOf(caller);
    const now = this.#now();
    const rows = this.#rows;
    if (rows[row + BAN_END] > now) return this.#describe(this.#decision, caller, row, now, 'banned');
    const minuteUsed = this.#used(row + MINUTE_END, now);
    const dayUsed = this.#used(row + DAY_END, now);
    if (minuteUsed >= caller.perMinute || dayUsed >= caller.perDay) return this.#strike(caller, row, now);
    if (minuteUsed === 0) this.#startMinute(row, now);
    if (dayUsed === 0) rows[row + DAY_END] = now + DAY_MS;
    rows[row + MINUTE_USED] = minuteUsed + 1;
    rows[row + DAY_USED] = dayUsed + 1;
    this.#markChanged(caller.slot, row);
    return this.#describe(this.#decision, caller, row, now, 'admitted');
  }

  /**
   * A refusal is a strike, and enough of them are a ban. Strikes end with the minute window. If only the day refuses
   * and no minute is open, the strikes get a minute of their own, which ends early when a request is admitted.
   */
  #strike(caller: Limited, row: number, now: number): Decision {
    const rows = this.#rows;
    if (rows[row + MINUTE_END] <= now) this.#startMinute(row, now);
    const banAfter = this.#banAfter ?? STRIKES_PER_MINUTE_LIMIT * caller.perMinute;
    const banBegins = ++rows[row + STRIKES] >= banAfter && banAfter !== 0;
    if (banBegins) {
      const bans = Math.min(this.#bansNow(row, now) + 1, MAX_BANS);
      rows[row + STRIKES] = 0;
      rows[row + BAN_END] = now + BAN_MINUTES[bans] * MINUTE_MS;
      rows[row + BANS] = bans;
      this.#bansBegun++;
      this.#markChanged(caller.slot, row);
    }
    const decision = this.#describe(this.#decision, caller, row, now, banBegins ? 'banned' : 'limited');
    decision.banBegan = banBegins;
    return decision;
  }

  #startMinute(row: number, now: number): void {
    this.#rows[row + MINUTE_END] = now + MINUTE_MS;
    this.#rows[row + MINUTE_USED] = 0;
    this.#rows[row + STRIKES] = 0;
  }

  /** The requests used in the window whose end is at index `end`; 0 if the window is not open. */
  #used(end: number, now: number): number {
    return this.#rows[end] > now ? this.#rows[end + 1] : 0;
  }

  /** How many bans count against the caller now: one is forgiven for every day since the newest ended. */
  #bansNow(row: number, now: number): number {
    const days = Math.max(0, Math.floor((now - this.#rows[row + BAN_END]) / DAY_MS));
    return Math.max(0, this.#rows[row + BANS] - days);
  }

  #describe(into: Decision, { perMinute, perDay }: Limited, row: number, now: number, verdict: Verdict): Decision {
    const origin = this.#wallOrigin;
    const at = now + origin;
    showWindow(into.minute, perMinute, this.#used(row + MINUTE_END, now), this.#rows[row + MINUTE_END] + origin, at);
    showWindow(into.day, perDay, this.#used(row + DAY_END, now), this.#rows[row + DAY_END] + origin, at);
    return conclude(into, verdict, at, this.#rows[row + BAN_END] + origin);
  }

  look(caller: Limited): Looked {
    const row = this.#rowOf(caller);
    const now = this.#now();
    const isBanned = this.#rows[row + BAN_END] > now;
    const isOpen =
      this.#used(row + MINUTE_END, now) < caller.perMinute && this.#used(row + DAY_END, now) < caller.perDay;
    const verdict = isBanned ? 'banned' : isOpen ? 'admitted' : 'limited';
    // No object spread: it is many times slower, and `keys list` looks up a million keys at once.
    return Object.assign(this.#describe(emptyDecision(), caller, row, now, verdict), {
      strikes: this.#rows[row + MINUTE_END] > now ? this.#rows[row + STRIKES] : 0,
      bans: this.#bansNow(row, now),
      banEndsAt: isBanned ? this.#rows[row + BAN_END] + this.#wallOrigin : 0,
    });
  }

  lift(caller: Limited): void {
    this.#empty(caller, BAN_END);
  }

  /** Puts back what was counted before a restart; expired parts are dropped, impossible ones clamped. */
  restore(caller: Limited, { dayUsed, dayEndsAt, banStep, banEndsAt }: Counted): void {
    const row = this.#rowOf(caller);
    const now = this.#now();
    const moment = (unix: number, lengthMs: number) => Math.max(0, Math.min(unix - this.#origin, now + lengthMs));
    const bans = Math.min(banStep, MAX_BANS);
    const banEnd = moment(banEndsAt, BAN_MINUTES[bans] * MINUTE_MS);
    const used = Math.min(dayUsed, MAX_REQUESTS_PER_WINDOW);
    this.#rows.set([moment(dayEndsAt, DAY_MS), used, banEnd, bans], row + DAY_END);
  }

  counted(caller: Limited): Counted {
    const row = this.#rowOf(caller);
    const now = this.#now();
    const dayUsed = this.#used(row + DAY_END, now);
    const isForgiven = this.#bansNow(row, now) === 0;
    return {
      dayUsed,
      dayEndsAt: dayUsed === 0 ? 0 : this.#rows[row + DAY_END] + this.#origin,
      banStep: isForgiven ? 0 : this.#rows[row + BANS],
      banEndsAt: isForgiven ? 0 : this.#rows[row + BAN_END] + this.#origin,
    };
  }

  /** At most `max` slots whose `counted` must be saved, the newest first. From then on they count as saved. */
  changed(max: number): number[] {
    const slots: number[] = [];
    while (slots.length < max && this.#newestChanged !== NOBODY) {
      const slot = this.#newestChanged - 1;
      slots.push(slot);
      this.#newestChanged = this.#rows[slot * ROW + BEFORE];
      this.#rows[slot * ROW + BEFORE] = 0;
    }
    return slots;
  }

  /** Takes back slots that could not be saved: `changed` will return them again. */
  unsaved(slots: Iterable<number>): void {
    for (const slot of slots) this.#markChanged(slot, slot * ROW);
  }

  #markChanged(slot: number, row: number): void {
    if (this.#rows[row + BEFORE] !== 0) return;
    this.#rows[row + BEFORE] = this.#newestChanged;
    this.#newestChanged = slot + 1;
  }

  /** For the lab: lets `ms` pass for this caller, and for nobody else. */
  advance(caller: Limited, ms: number): void {
    const row = this.#rowOf(caller);
    this.#endEarlier(row, ms);
    this.#markChanged(caller.slot, row);
  }

  /** For the lab: forgets all that was counted for the caller, strikes and bans too. */
  refill(caller: Limited): void {
    this.#empty(caller, MINUTE_END);
  }

  #empty(caller: Limited, from: number): void {
    const row = this.#rowOf(caller);
    this.#rows.fill(0, row + from, row + BEFORE);
    this.#markChanged(caller.slot, row);
  }

  #endEarlier(row: number, ms: number): void {
    for (const end of [MINUTE_END, DAY_END, BAN_END]) this.#rows[row + end] = Math.max(0, this.#rows[row + end] - ms);
  }

  #now(): number {
    const now = Math.floor(this.#unix()) - this.#origin;
    return now < this.#compareAt ? now : this.#compareClocks(now);
  }

  /** Compares the clocks, and moves the origin where it must. */
  #compareClocks(now: number): number {
    const outgrown = now < LAST_MOMENT ? 0 : now - PAST_MS;
    if (outgrown > 0) for (let row = 0; row < this.#rows.length; row += ROW) this.#endEarlier(row, outgrown);
    this.#origin += outgrown;
    this.#wallOrigin = this.#origin + this.#wallOffset(now - outgrown + this.#origin);
    this.#compareAt = now - outgrown + COMPARE_EVERY_MS;
    return now - outgrown;
  }

  /** The index at which the caller's row begins. Makes room for it. */
  #rowOf({ slot }: Pick<Limited, 'slot'>): number {
    if (slot >= MAX_SLOTS) throw new RangeError(`slot ${slot} is beyond the ${MAX_SLOTS} that a limiter holds`);
    // By a quarter, not to twice the size: there may be a million keys.
    if (this.#rows.length <= slot * ROW) this.#grow(Math.min(MAX_SLOTS, Math.ceil(1.25 * (slot + 1))));
    return slot * ROW;
  }

  /** Makes room for `slots` callers. */
  #grow(slots: number): void {
    const rows = new Int32Array(ROW * slots);
    rows.set(this.#rows);
    this.#rows = rows;
  }
}
