/** The limiter as one would first write it: an object a caller, what has ended is deleted. Slow, and easy to believe. */
import type { Decision, Limited, Looked, WindowState } from '../../src/access/limits.ts';
import { DAY_MS, MINUTE_MS } from '../../src/access/limits.ts';

const BAN_MINUTES = [2, 8, 32, 128, 512, 1_440];

interface Caller {
  minute?: { used: number; endsAt: number };
  day?: { used: number; endsAt: number };
  strikes?: { count: number; endsAt: number };
  ban?: { step: number; endsAt: number };
}

export class LimiterModel {
  now = 0;
  readonly #banAfter: number | undefined;
  readonly #callers = new Map<number, Caller>();

  constructor(banAfter: number | undefined) {
    this.#banAfter = banAfter;
  }

  take(limited: Limited): Decision {
    const caller = this.#caller(limited);
    const before = this.#decision(limited);
    if (before.verdict === 'banned') return before;
    if (before.verdict === 'limited') {
      caller.strikes ??= { count: 0, endsAt: caller.minute?.endsAt ?? this.now + MINUTE_MS };
      caller.strikes.count++;
      const banAfter = this.#banAfter ?? 5 * limited.perMinute;
      if (banAfter === 0 || caller.strikes.count < banAfter) return before;
      const step = Math.min((caller.ban?.step ?? 0) + 1, BAN_MINUTES.length);
      caller.ban = { step, endsAt: this.now + BAN_MINUTES[step - 1] * MINUTE_MS };
      caller.strikes = undefined;
      return { ...this.#decision(limited), banBegan: true };
    }
    if (caller.minute === undefined) caller.strikes = undefined;
    caller.minute ??= { used: 0, endsAt: this.now + MINUTE_MS };
    caller.day ??= { used: 0, endsAt: this.now + DAY_MS };
    caller.minute.used++;
    caller.day.used++;
    return { ...this.#decision(limited), verdict: 'admitted', retryAt: this.now };
  }

  look(limited: Limited): Looked {
    const { strikes, ban } = this.#caller(limited);
    const banEndsAt = ban !== undefined && ban.endsAt > this.now ? ban.endsAt : 0;
    return { ...this.#decision(limited), strikes: strikes?.count ?? 0, bans: ban?.step ?? 0, banEndsAt };
  }

  lift(limited: Limited): void {
    const caller = this.#caller(limited);
    caller.ban = undefined;
    caller.strikes = undefined;
  }

  /** Minutes and strikes may start anew, nothing else. */
  restart(): void {
    for (const caller of this.#callers.values()) {
      caller.minute = undefined;
      caller.strikes = undefined;
    }
  }

  passFor(limited: Limited, ms: number): void {
    const { minute, day, strikes, ban } = this.#caller(limited);
    for (const part of [minute, day, strikes, ban]) if (part !== undefined) part.endsAt -= ms;
  }

  refill({ slot }: Limited): void {
    this.#callers.delete(slot);
  }

  /** What a take would answer now. */
  #decision(limited: Limited): Decision {
    const caller = this.#caller(limited);
    const minute = this.#window(caller.minute, limited.perMinute);
    const day = this.#window(caller.day, limited.perDay);
    const refusing = [minute, day].filter(({ remaining }) => remaining === 0);
    const banEndsAt = caller.ban?.endsAt ?? 0;
    const [narrowest] = [day, minute].toSorted((a, b) => a.remaining - b.remaining || b.endsAt - a.endsAt);
    return {
      at: this.now,
      verdict: banEndsAt > this.now ? 'banned' : refusing.length > 0 ? 'limited' : 'admitted',
      minute,
      day,
      retryAt: Math.max(this.now, banEndsAt, ...refusing.map(({ endsAt }) => endsAt)),
      binding: narrowest === day ? 'day' : 'minute',
      banBegan: false,
    };
  }

  #window(bucket: Caller['minute'], limit: number): WindowState {
    if (bucket === undefined) return { limit, remaining: limit, endsAt: this.now };
    return { limit, remaining: Math.max(0, limit - bucket.used), endsAt: bucket.endsAt };
  }

  /** The caller as it is now: what has ended is gone, what is forgiven is forgiven. */
  #caller({ slot }: Limited): Caller {
    const caller = this.#callers.get(slot) ?? {};
    this.#callers.set(slot, caller);
    for (const part of ['minute', 'day', 'strikes'] as const) {
      if ((caller[part]?.endsAt ?? 0) <= this.now) caller[part] = undefined;
    }
    while (caller.ban !== undefined && caller.ban.endsAt + DAY_MS <= this.now) {
      const { step, endsAt } = caller.ban;
      caller.ban = step === 1 ? undefined : { step: step - 1, endsAt: endsAt + DAY_MS };
    }
    return caller;
  }
}
