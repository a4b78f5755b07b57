/** The limiter as one would first write it: an object a caller, what has ended is deleted. Slow, and easy to believe. */
import type { Counted, Decision, Limited, WindowState } from '../../src/access/limits.ts';
import { DAY_MS, MINUTE_MS } from '../../src/access/limits.ts';
import type { SetClock } from '../../src/clock.ts';

const BAN_MINUTES = [2, 8, 32, 128, 512, 1_440];

interface Bucket {
  used: number;
  endsAt: number;
}

interface Caller {
  minute?: Bucket;
  day?: Bucket;
  strikes?: { count: number; endsAt: number };
  ban?: { step: number; endsAt: number };
}

export class LimiterModel {
  readonly #clock: SetClock;
  readonly #banAfter: number | undefined;
  #callers = new Map<number, Caller>();

  constructor(clock: SetClock, banAfter: number | undefined) {
    this.#clock = clock;
    this.#banAfter = banAfter;
  }

  take(limited: Limited, cost: number): Decision {
    const caller = this.#caller(limited);
    const before = this.look(limited, cost);
    if (before.verdict === 'banned') return before;
    const now = this.#clock.now();
    if (before.verdict === 'limited') {
      caller.strikes ??= { count: 0, endsAt: caller.minute?.endsAt ?? now + MINUTE_MS };
      caller.strikes.count++;
      const banAfter = this.#banAfter ?? 5 * limited.perMinute;
      if (banAfter === 0 || caller.strikes.count < banAfter) return before;
      const step = Math.min((caller.ban?.step ?? 0) + 1, BAN_MINUTES.length);
      caller.ban = { step, endsAt: now + BAN_MINUTES[step - 1] * MINUTE_MS };
      caller.strikes = undefined;
      return { ...this.look(limited, cost), banBegan: true };
    }
    if (caller.minute === undefined) caller.strikes = undefined;
    caller.minute ??= { used: 0, endsAt: now + MINUTE_MS };
    caller.day ??= { used: 0, endsAt: now + DAY_MS };
    caller.minute.used += cost;
    caller.day.used += cost;
    return { ...this.look(limited, 0), verdict: 'admitted', retryAt: now };
  }

  look(limited: Limited, cost: number): Decision {
    const caller = this.#caller(limited);
    const now = this.#clock.now();
    const minute = this.#window(caller.minute, limited.perMinute);
    const day = this.#window(caller.day, limited.perDay);
    const windows = [
      { name: 'day' as const, ...day },
      { name: 'minute' as const, ...minute },
    ];
    const refusing = windows.filter((window) => cost > window.remaining);
    const banned = caller.ban !== undefined && caller.ban.endsAt > now;
    const verdict: Decision['verdict'] = banned ? 'banned' : refusing.length > 0 ? 'limited' : 'admitted';
    const narrowest = windows.toSorted((a, b) => a.remaining - b.remaining || b.endsAt - a.endsAt)[0];
    const latest = refusing.toSorted((a, b) => b.endsAt - a.endsAt)[0];
    const ends = refusing.map((window) => window.endsAt);
    return {
      at: now,
      verdict,
      minute,
      day,
      retryAt: Math.max(now, ...ends, banned ? caller.ban!.endsAt : 0),
      binding: (verdict === 'limited' ? latest : narrowest).name,
      banBegan: false,
    };
  }

  strikes(limited: Limited): number {
    return this.#caller(limited).strikes?.count ?? 0;
  }

  lift(limited: Limited): void {
    const caller = this.#caller(limited);
    caller.ban = undefined;
    caller.strikes = undefined;
  }

  counted(limited: Limited): Counted {
    const { day, ban } = this.#caller(limited);
    const toWall = this.#clock.wall() - this.#clock.now();
    return {
      dayUsed: day?.used ?? 0,
      dayEndsAt: day === undefined ? 0 : day.endsAt + toWall,
      banStep: ban?.step ?? 0,
      banEndsAt: ban === undefined ? 0 : ban.endsAt + toWall,
    };
  }

  /** A restart during which the machine's clock was moved by `jump`. */
  restart(jump: number): void {
    const now = this.#clock.now();
    for (const caller of this.#callers.values()) {
      caller.minute = undefined;
      caller.strikes = undefined;
      if (caller.day !== undefined) caller.day.endsAt = Math.min(caller.day.endsAt - jump, now + DAY_MS);
      if (caller.ban !== undefined) {
        const longest = BAN_MINUTES[caller.ban.step - 1] * MINUTE_MS;
        caller.ban.endsAt = Math.min(caller.ban.endsAt - jump, now + longest);
      }
    }
  }

  #window(bucket: Bucket | undefined, limit: number): WindowState {
    if (bucket === undefined) return { limit, remaining: limit, endsAt: this.#clock.now() };
    return { limit, remaining: Math.max(0, limit - bucket.used), endsAt: bucket.endsAt };
  }

  /** The caller as it is now: what has ended is gone, what is forgiven is forgiven. */
  #caller({ slot }: Limited): Caller {
    const caller = this.#callers.get(slot) ?? {};
    this.#callers.set(slot, caller);
    const now = this.#clock.now();
    if (caller.minute !== undefined && caller.minute.endsAt <= now) caller.minute = undefined;
    if (caller.day !== undefined && caller.day.endsAt <= now) caller.day = undefined;
    if (caller.strikes !== undefined && caller.strikes.endsAt <= now) caller.strikes = undefined;
    while (caller.ban !== undefined && caller.ban.endsAt + DAY_MS <= now) {
      caller.ban =
        caller.ban.step === 1 ? undefined : { step: caller.ban.step - 1, endsAt: caller.ban.endsAt + DAY_MS };
    }
    return caller;
  }
}
