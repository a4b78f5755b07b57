/** The limiter beside a plain model of it: whatever happens to both, they tell the same. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import fc from 'fast-check';
import { SlotLimiter } from '../../src/access/limiter.ts';
import type { Decision, Limited, Looked, WindowState } from '../../src/access/limits.ts';
import { DAY_MS, MINUTE_MS, retryAfterSeconds } from '../../src/access/limits.ts';
import { SetClock } from '../clock.ts';

const BAN_MINUTES = [2, 8, 32, 128, 512, 1_440];

interface Caller {
  minute?: { used: number; endsAt: number };
  day?: { used: number; endsAt: number };
  strikes?: { count: number; endsAt: number };
  ban?: { step: number; endsAt: number };
}

/** The limiter as one would first write it: an object a caller, what has ended is deleted. Slow, and easy to believe. */
class LimiterModel {
  readonly #banAfter: number | undefined;
  readonly #callers = new Map<number, Caller>();

  constructor(banAfter: number | undefined) {
    this.#banAfter = banAfter;
  }

  get now(): number {
    return clock.wall();
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

  advance(limited: Limited, ms: number): void {
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

let clock = new SetClock();
const unix = () => clock.now() + 1_700_000_000_000;
const limiterOf = (banAfter?: number) => new SlotLimiter({ clock, unix, banAfter });

const SLOTS = 3;

type Event =
  | { do: 'take'; slot: number; times: number }
  | { do: 'lift' | 'refill'; slot: number }
  | { do: 'plan'; slot: number; perMinute: number; perDay: number }
  | { do: 'pass'; ms: number }
  | { do: 'advance'; slot: number; ms: number }
  | { do: 'restart' };

const slot = fc.nat(SLOTS - 1);
const plan = { slot, perMinute: fc.integer({ min: 1, max: 6 }), perDay: fc.integer({ min: 1, max: 15 }) };
const ms = fc.oneof(
  fc.nat(MINUTE_MS),
  fc.constantFrom(1, MINUTE_MS - 1, MINUTE_MS, 2 * MINUTE_MS, DAY_MS - 1, DAY_MS),
  fc.nat(3 * DAY_MS),
);
const kind = <D extends string>(name: D) => fc.constant(name);
const event: fc.Arbitrary<Event> = fc.oneof(
  { weight: 12, arbitrary: fc.record({ do: kind('take'), slot, times: fc.integer({ min: 1, max: 12 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('lift' as const, 'refill' as const), slot }) },
  { weight: 1, arbitrary: fc.record({ do: kind('plan'), ...plan }) },
  { weight: 5, arbitrary: fc.record({ do: kind('pass'), ms }) },
  { weight: 1, arbitrary: fc.record({ do: kind('advance'), slot, ms }) },
  { weight: 1, arbitrary: fc.record({ do: kind('restart') }) },
);

/** The limiter and its model side by side. */
class Pair {
  readonly callers: Limited[] = Array.from({ length: SLOTS }, (_, slot) => ({ slot, perMinute: 3, perDay: 10 }));
  readonly #banAfter: number | undefined;
  readonly #model: LimiterModel;
  #limiter: SlotLimiter;

  constructor(banAfter: number | undefined) {
    this.#banAfter = banAfter;
    this.#model = new LimiterModel(banAfter);
    this.#limiter = limiterOf(banAfter);
  }

  apply(event: Event): void {
    const caller = 'slot' in event ? this.callers[event.slot] : this.callers[0];
    const both = [this.#limiter, this.#model];
    if (event.do === 'take') for (let time = 0; time < event.times; time++) this.take(caller);
    else if (event.do === 'plan') this.callers[event.slot] = event;
    else if (event.do === 'restart') this.#restart();
    else if (event.do === 'advance') for (const one of both) one.advance(caller, event.ms);
    else if (event.do === 'pass') clock.advance(event.ms);
    else for (const one of both) one[event.do](caller);
    for (const one of this.callers) assert.deepEqual(this.#limiter.look(one), this.#model.look(one));
  }

  take(caller: Limited): Decision {
    const decision = this.#limiter.take(caller);
    assert.deepEqual(decision, this.#model.take(caller));
    return decision;
  }

  #restart(): void {
    const before = this.#limiter;
    this.#limiter = limiterOf(this.#banAfter);
    for (const caller of this.callers) this.#limiter.restore(caller, before.counted(caller));
    this.#model.restart();
  }
}

it('random sequences come to what the model says, and whoever waits as told is admitted', (t) => {
  const seed = Number(process.env.SEED ?? Date.now() % 2 ** 31);
  t.diagnostic(`SEED=${seed} plays the same again`);
  const banAfter = fc.constantFrom(undefined, 0, 1, 4);
  fc.assert(
    fc.property(banAfter, fc.array(event, { maxLength: 60 }), slot, (banAfter, events, slot) => {
      clock = new SetClock();
      const pair = new Pair(banAfter);
      for (const event of events) pair.apply(event);
      const { verdict, retryAt, at } = pair.take(pair.callers[slot]);
      if (verdict === 'admitted') return;
      pair.apply({ do: 'pass', ms: 1_000 * retryAfterSeconds(retryAt, at) });
      assert.equal(pair.take(pair.callers[slot]).verdict, 'admitted');
    }),
    { numRuns: 300, seed },
  );
});
