/**
 * The limiter of one process. Each window is a token bucket that is refilled whole, a fixed window of the caller's own:
 * it opens full at the first request admitted and ends one length later, so what it says is left, and when, is true to
 * the letter. The price: a span of one length may see up to 2N - 1 requests. No timer is needed: expired equals absent.
 */
import type { Clock } from '../clock.ts';
import type { Usage } from '../store/model.ts';
import { banMs, MAX_BANS, STRIKES_PER_MINUTE_LIMIT, standingBans } from './bans.ts';
import type { Decision, Limited, Limiter, Looked, Verdict } from './limits.ts';
import { conclude, DAY_MS, emptyDecision, MINUTE_MS, showWindow } from './limits.ts';
import { SlotSet } from './slots.ts';
import { unixSecondsBy } from './wall.ts';

export const MAX_SLOTS = 2 ** 24;

/*
 * A caller is a row of eight 32-bit numbers (one spare), half a cache line: at a million callers a take lasts as long
 * as its memory takes to come. First three pairs: when it ends, and what is used of it (of bans: how many there were).
 * Moments are ms since an origin that is moved before they outgrow 31 bits; a ban that ended before it is forgiven.
 */
const ROW = 8;
const MINUTE = 0;
const DAY = 2;
const BAN = 4;
const USED = 1;
/** Strikes are forgotten when the minute ends. A minute with strikes and nothing used is no open window. */
const STRIKES = 6;
const PAST_MS = (MAX_BANS + 1) * DAY_MS;
const LAST_MOMENT = 2 ** 31 - 2 * DAY_MS;

/** What of a caller must survive a restart; what has expired is 0. */
type Counted = Omit<Usage, 'key'>;

export class SlotLimiter implements Limiter {
  readonly unixSeconds: (moment: number, at: number) => number;
  readonly #unix: () => number;
  readonly #banAfter: number | undefined;
  #origin: number;
  #rows = new Int32Array(ROW);
  readonly #changed = new SlotSet();
  /** When the ends of bans were last asked for, and before when no further one ends. */
  #endsAskedAt: number;
  #nextBanEnd = Number.POSITIVE_INFINITY;
  /** Reused, so that a take allocates nothing. */
  readonly #decision = emptyDecision();

  /**
   * `unix`: the limiter's clock, in unix ms. It must run as evenly as the monotonic one, and not leap at a restart.
   * `banAfter`: strikes that bring a ban; 0: none ever does; absent: 5 × the caller's limit a minute.
   */
  constructor({ clock, unix, banAfter }: { clock: Clock; unix: () => number; banAfter?: number }) {
    this.#unix = unix;
    this.#banAfter = banAfter;
    this.#endsAskedAt = Math.floor(unix());
    this.#origin = this.#endsAskedAt - PAST_MS;
    this.unixSeconds = unixSecondsBy(unix, () => clock.wall());
  }

  take(caller: Limited): Decision {
    const row = this.#rowOf(caller);
    const now = this.#now();
    const minuteUsed = this.#used(row + MINUTE, now);
    const dayUsed = this.#used(row + DAY, now);
    const rows = this.#rows;
    if (rows[row + BAN] > now) return this.#tell(this.#decision, caller, row, now, 'banned');
    if (minuteUsed >= caller.perMinute || dayUsed >= caller.perDay) return this.#refuse(caller, row, now);
    if (minuteUsed === 0) this.#startMinute(row, now);
    if (dayUsed === 0) rows[row + DAY] = now + DAY_MS;
    rows[row + MINUTE + USED] = minuteUsed + 1;
    rows[row + DAY + USED] = dayUsed + 1;
    this.#changed.add(caller.slot);
    return this.#tell(this.#decision, caller, row, now, 'admitted');
  }

  look(caller: Limited): Looked {
    const row = this.#rowOf(caller);
    const now = this.#now();
    const isBanned = this.#rows[row + BAN] > now;
    const isOpen = this.#used(row + MINUTE, now) < caller.perMinute && this.#used(row + DAY, now) < caller.perDay;
    const verdict = isBanned ? 'banned' : isOpen ? 'admitted' : 'limited';
    return {
      ...this.#tell(emptyDecision(), caller, row, now, verdict),
      strikes: this.#rows[row + MINUTE] > now ? this.#rows[row + STRIKES] : 0,
      bans: this.#standingBans(row, now),
      banEndsAt: isBanned ? this.#rows[row + BAN] + this.#origin : 0,
    };
  }

  lift(caller: Limited): void {
    this.#forget(caller, BAN);
  }

  /** Puts back what was counted before a restart; expired parts are dropped, impossible ones clamped. */
  restore(caller: Limited, { dayUsed, dayEndsAt, banStep, banEndsAt }: Counted): void {
    const row = this.#rowOf(caller);
    const now = this.#now();
    const moment = (unix: number, lengthMs: number) => Math.max(0, Math.min(unix - this.#origin, now + lengthMs));
    const bans = Math.min(banStep, MAX_BANS);
    this.#rows[row + DAY] = moment(dayEndsAt, DAY_MS);
    this.#rows[row + DAY + USED] = dayUsed;
    this.#setBan(row, bans, moment(banEndsAt, banMs(bans)));
  }

  counted(caller: Limited): Counted {
    const row = this.#rowOf(caller);
    const now = this.#now();
    const dayUsed = this.#used(row + DAY, now);
    const dayEndsAt = dayUsed > 0 ? this.#rows[row + DAY] + this.#origin : 0;
    if (this.#standingBans(row, now) === 0) return { dayUsed, dayEndsAt, banStep: 0, banEndsAt: 0 };
    return {
      dayUsed,
      dayEndsAt,
      banStep: this.#rows[row + BAN + USED],
      banEndsAt: this.#rows[row + BAN] + this.#origin,
    };
  }

  /** Slots of which `counted` is to be written down, at most `max`; they are clean afterwards. */
  changed(max: number): number[] {
    return this.#changed.drain(max);
  }

  /** These could not be written down after all: `changed` will name them again. */
  unsaved(slots: Iterable<number>): void {
    for (const slot of slots) this.#changed.add(slot);
  }

  /** Slots whose ban ran out since the last call (not by `lift` or `advance`). */
  bansEnded(): number[] {
    const ended: number[] = [];
    const [now, since] = [this.#now() + this.#origin, this.#endsAskedAt];
    this.#endsAskedAt = now;
    if (now < this.#nextBanEnd) return ended;
    this.#nextBanEnd = Number.POSITIVE_INFINITY;
    for (let row = 0; row < this.#rows.length; row += ROW) {
      const end = this.#rows[row + BAN] + this.#origin;
      if (end > now) this.#nextBanEnd = Math.min(this.#nextBanEnd, end);
      else if (end > since) ended.push(row / ROW);
    }
    return ended;
  }

  /** For the lab: lets `ms` pass for this caller, and for nobody else. */
  advance(caller: Limited, ms: number): void {
    this.#makeEarlier(this.#rowOf(caller), ms);
    this.#changed.add(caller.slot);
  }

  /** For the lab: the caller as if it had never asked. */
  refill(caller: Limited): void {
    this.#forget(caller, MINUTE);
  }

  /** What is used of a window that is open; 0 where none is. */
  #used(window: number, now: number): number {
    return this.#rows[window] > now ? this.#rows[window + USED] : 0;
  }

  #tell(into: Decision, { perMinute, perDay }: Limited, row: number, now: number, verdict: Verdict): Decision {
    const at = now + this.#origin;
    showWindow(into.minute, perMinute, this.#used(row + MINUTE, now), this.#rows[row + MINUTE] + this.#origin, at);
    showWindow(into.day, perDay, this.#used(row + DAY, now), this.#rows[row + DAY] + this.#origin, at);
    return conclude(into, verdict, at, this.#rows[row + BAN] + this.#origin);
  }

  /**
   * A refusal is a strike. Strikes live and end with the minute window. When only the day refuses there may be none
   * open: then they have a minute of their own, until it ends or a request is admitted and opens the window.
   */
  #refuse(caller: Limited, row: number, now: number): Decision {
    const rows = this.#rows;
    if (rows[row + MINUTE] <= now) this.#startMinute(row, now);
    const banAfter = this.#banAfter ?? STRIKES_PER_MINUTE_LIMIT * caller.perMinute;
    const banBegins = ++rows[row + STRIKES] >= banAfter && banAfter !== 0;
    if (banBegins) {
      const bans = Math.min(this.#standingBans(row, now) + 1, MAX_BANS);
      rows[row + STRIKES] = 0;
      this.#setBan(row, bans, now + banMs(bans));
      this.#changed.add(caller.slot);
    }
    const decision = this.#tell(this.#decision, caller, row, now, banBegins ? 'banned' : 'limited');
    decision.banBegan = banBegins;
    return decision;
  }

  #startMinute(row: number, now: number): void {
    this.#rows[row + MINUTE] = now + MINUTE_MS;
    this.#rows[row + MINUTE + USED] = 0;
    this.#rows[row + STRIKES] = 0;
  }

  #standingBans(row: number, now: number): number {
    return standingBans(this.#rows[row + BAN + USED], this.#rows[row + BAN], now);
  }

  #setBan(row: number, bans: number, end: number): void {
    this.#rows[row + BAN] = end;
    this.#rows[row + BAN + USED] = bans;
    this.#nextBanEnd = Math.min(this.#nextBanEnd, end + this.#origin);
  }

  #forget(caller: Limited, from: number): void {
    const row = this.#rowOf(caller);
    this.#rows.fill(0, row + from, row + ROW);
    this.#changed.add(caller.slot);
  }

  #makeEarlier(row: number, ms: number): void {
    for (const end of [row + MINUTE, row + DAY, row + BAN]) this.#rows[end] = Math.max(0, this.#rows[end] - ms);
  }

  #now(): number {
    const now = Math.floor(this.#unix()) - this.#origin;
    if (now < LAST_MOMENT) return now;
    for (let row = 0; row < this.#rows.length; row += ROW) this.#makeEarlier(row, now - PAST_MS);
    this.#origin += now - PAST_MS;
    return PAST_MS;
  }

  /** Where the caller's row begins, with room made for it. */
  #rowOf({ slot }: Limited): number {
    if (slot >= MAX_SLOTS) throw new RangeError(`slot ${slot} is beyond the ${MAX_SLOTS} that a limiter holds`);
    while (this.#rows.length <= slot * ROW) {
      const rows = new Int32Array(2 * this.#rows.length);
      rows.set(this.#rows);
      this.#rows = rows;
    }
    return slot * ROW;
  }
}
