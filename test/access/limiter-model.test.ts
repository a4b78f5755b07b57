/** The limiter beside a plain model of it: whatever happens to both, they tell the same. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import fc from 'fast-check';
import { SlotLimiter } from '../../src/access/limiter.ts';
import type { Decision, Limited, Looked } from '../../src/access/limits.ts';
import { retryAfterSeconds } from '../../src/access/limits.ts';
import { DAY_MS, MINUTE_MS } from '../../src/clock.ts';
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
  readonly #callers = new Map<number, Caller>();

  get now(): number {
    return clock.wall();
  }

  take(limited: Limited, banAfter = 5 * limited.perMinute): Decision {
    const caller = this.#caller(limited);
    const before = this.#decision(limited);
    if (before.verdict === 'banned') return before;
    if (before.verdict === 'limited') {
      caller.strikes ??= { count: 0, endsAt: caller.minute?.endsAt ?? this.now + MINUTE_MS };
      caller.strikes.count++;
      if (banAfter === 0 || caller.strikes.count < banAfter) return before;
      const step = Math.min((caller.ban?.step ?? 0) + 1, BAN_MINUTES.length);
      caller.ban = { step, endsAt: this.now + BAN_MINUTES[step - 1] * MINUTE_MS };
      caller.strikes.count = 0; // their minute goes on: a ban that is lifted may end before it
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

  /** The minute in which strikes are counted goes on. */
  lift(limited: Limited): void {
    const caller = this.#caller(limited);
    caller.ban = undefined;
    if (caller.strikes !== undefined) caller.strikes.count = 0;
  }

  /** Minutes and strikes may start anew, nothing else. */
  restart(): void {
    for (const caller of this.#callers.values()) Object.assign(caller, { minute: undefined, strikes: undefined });
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

  #window(bucket: Caller['minute'], limit: number): Decision['minute'] {
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

const SLOTS = 3;
/** How often each thing happens, of 42 times. */
const OFTEN = { take: 24, pass: 10, lift: 1, refill: 1, plan: 2, advance: 2, restart: 2 };
type Kind = keyof typeof OFTEN;

const slot = fc.nat(SLOTS - 1);
const event = fc.record({
  do: fc.constantFrom(...(Object.keys(OFTEN) as Kind[]).flatMap((kind) => Array<Kind>(OFTEN[kind]).fill(kind))),
  slot,
  times: fc.integer({ min: 1, max: 12 }),
  ms: fc.oneof(
    fc.nat(MINUTE_MS),
    fc.constantFrom(1, MINUTE_MS - 1, MINUTE_MS, 2 * MINUTE_MS, DAY_MS - 1, DAY_MS),
    fc.nat(3 * DAY_MS),
  ),
  perMinute: fc.integer({ min: 1, max: 6 }),
  perDay: fc.integer({ min: 1, max: 15 }),
});
type Event = typeof event extends fc.Arbitrary<infer E> ? E : never;

/** The limiter and its model side by side; gives a way to take from both. */
function play(banAfter: number | undefined, events: Event[]): (slot: number) => Decision {
  clock = new SetClock();
  const fresh = () => new SlotLimiter({ clock, unix, banAfter });
  const model = new LimiterModel();
  let limiter = fresh();
  const callers: Limited[] = Array.from({ length: SLOTS }, (_, slot) => ({ slot, perMinute: 3, perDay: 4 }));
  const take = (slot: number) => {
    const decision = limiter.take(callers[slot]);
    assert.deepEqual(decision, model.take(callers[slot], banAfter));
    return decision;
  };
  const restart = () => {
    const before = limiter;
    limiter = fresh();
    for (const caller of callers) limiter.restore(caller, before.counted(caller));
    model.restart();
  };
  for (const { do: kind, slot, times, ms, perMinute, perDay } of events) {
    if (kind === 'take') for (let time = 0; time < times; time++) take(slot);
    else if (kind === 'plan') callers[slot] = { slot, perMinute, perDay };
    else if (kind === 'restart') restart();
    else if (kind === 'pass') clock.advance(ms);
    else for (const one of [limiter, model]) one[kind](callers[slot], ms);
    for (const one of callers) assert.deepEqual(limiter.look(one), model.look(one));
  }
  return take;
}

it('random sequences come to what the model says, and whoever waits as told is admitted', (t) => {
  const seed = Number(process.env.SEED ?? Date.now() % 2 ** 31);
  t.diagnostic(`SEED=${seed} plays the same again`);
  const banAfter = fc.constantFrom(undefined, 0, 1, 4);
  fc.assert(
    fc.property(banAfter, fc.array(event, { maxLength: 60, size: 'max' }), slot, (banAfter, events, slot) => {
      const take = play(banAfter, events);
      const { verdict, retryAt, at } = take(slot);
      if (verdict === 'admitted') return;
      clock.advance(1_000 * retryAfterSeconds(retryAt, at));
      assert.equal(take(slot).verdict, 'admitted');
    }),
    { numRuns: 200, seed },
  );
});
