/** The limiter beside a plain model of it: whatever happens to both, they tell the same. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import fc from 'fast-check';
import {
  type Account,
  type Decision,
  type Limits,
  look,
  newAccount,
  retryAfterSeconds,
  take as takeFrom,
} from '../../src/access/limiter.ts';
import { DAY_MS, MINUTE_MS } from '../../src/clock.ts';

const START = 1_700_000_000_000;
const BAN_MINUTES = [2, 8, 32, 128, 512, 1_440];

interface Caller {
  minute?: { used: number; endsAt: number };
  day?: { used: number; endsAt: number };
  strikes?: { count: number; endsAt: number };
  ban?: { step: number; endsAt: number };
}

/** The limiter as one would first write it: an object, from which what has ended is deleted. Slow, and easy to believe. */
class LimiterModel {
  #state: Caller = {};
  now = START;

  take(limits: Limits, banAfter = 5 * limits.perMinute): Decision {
    const caller = this.#caller();
    const before = this.#decision(limits);
    if (before.verdict === 'banned') return before;
    if (before.verdict === 'limited') {
      caller.strikes ??= { count: 0, endsAt: caller.minute?.endsAt ?? this.now + MINUTE_MS };
      caller.strikes.count++;
      if (banAfter === 0 || caller.strikes.count < banAfter) return this.#decision(limits);
      const step = Math.min((caller.ban?.step ?? 0) + 1, BAN_MINUTES.length);
      caller.ban = { step, endsAt: this.now + BAN_MINUTES[step - 1] * MINUTE_MS };
      caller.strikes.count = 0; // their minute goes on: a ban that is lifted may end before it
      return { ...this.#decision(limits), banBegan: true };
    }
    if (caller.minute === undefined) caller.strikes = undefined;
    caller.minute ??= { used: 0, endsAt: this.now + MINUTE_MS };
    caller.day ??= { used: 0, endsAt: this.now + DAY_MS };
    caller.minute.used++;
    caller.day.used++;
    return { ...this.#decision(limits), verdict: 'admitted', retryAt: this.now };
  }

  look(limits: Limits): Decision {
    return this.#decision(limits);
  }

  /** The minute in which strikes are counted goes on. */
  lift(): void {
    const caller = this.#caller();
    caller.ban = undefined;
    if (caller.strikes !== undefined) caller.strikes.count = 0;
  }

  advance(ms: number): void {
    const { minute, day, strikes, ban } = this.#caller();
    for (const part of [minute, day, strikes, ban]) if (part !== undefined) part.endsAt -= ms;
  }

  /** What a take would answer now, and by which counts. */
  #decision(limits: Limits): Decision {
    const caller = this.#caller();
    const minute = this.#window(caller.minute, limits.perMinute);
    const day = this.#window(caller.day, limits.perDay);
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
      strikes: caller.strikes?.count ?? 0,
      bans: caller.ban?.step ?? 0,
      banEndsAt: banEndsAt > this.now ? banEndsAt : 0,
    };
  }

  #window(bucket: Caller['minute'], limit: number): Decision['minute'] {
    if (bucket === undefined) return { limit, remaining: limit, endsAt: this.now };
    return { limit, remaining: Math.max(0, limit - bucket.used), endsAt: bucket.endsAt };
  }

  /** The caller as it is now: what has ended is gone, what is forgiven is forgiven. */
  #caller(): Caller {
    const caller = this.#state;
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

/** What `Limiter.change` may make of an account; the model has a method of that name. */
type Changes = { readonly [Name in 'lift' | 'advance']?: (account: Readonly<Account>, ms: number) => Account };

/** How often each thing happens, of 40 times. */
const OFTEN = { take: 24, pass: 10, lift: 1, plan: 2, advance: 2, restart: 1 };
type Kind = keyof typeof OFTEN;

const kinds = (Object.keys(OFTEN) as Kind[]).flatMap((kind) => Array<Kind>(OFTEN[kind]).fill(kind));
const event = fc.record({
  do: fc.constantFrom(...kinds),
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

/** The limiter and its model side by side; returns a way to take from both. */
function play(changes: Changes, banAfter: number | undefined, events: Event[]) {
  const model = new LimiterModel();
  let account = newAccount();
  let limits: Limits = { perMinute: 3, perDay: 4 };
  const take = () => {
    const decision = takeFrom(account, limits, model.now, banAfter);
    assert.deepEqual(decision, model.take(limits, banAfter));
    return decision;
  };
  for (const { do: kind, times, ms, perMinute, perDay } of events) {
    if (kind === 'take') for (let time = 0; time < times; time++) take();
    else if (kind === 'plan') limits = { perMinute, perDay };
    else if (kind === 'restart') account = JSON.parse(JSON.stringify(account));
    else if (kind === 'pass') model.now += ms;
    else if (changes[kind] !== undefined) {
      model[kind](ms);
      account = changes[kind](account, ms);
    }
    assert.deepEqual(look(account, limits, model.now), model.look(limits));
  }
  return { take, pass: (ms: number) => (model.now += ms) };
}

/** Random sequences of takes, time and these changes come to what the model says, and who waits as told is admitted. */
export function checkAgainstModel(t: TestContext, changes: Changes): void {
  const seed = Number(process.env.SEED ?? Date.now() % 2 ** 31);
  t.diagnostic(`SEED=${seed} plays the same again`);
  const banAfter = fc.constantFrom(undefined, 0, 1, 4);
  const property = fc.property(banAfter, fc.array(event, { maxLength: 60, size: 'max' }), (banAfter, events) => {
    const { take, pass } = play(changes, banAfter, events);
    const { verdict, retryAt, at } = take();
    if (verdict === 'admitted') return;
    pass(1_000 * retryAfterSeconds(retryAt, at));
    assert.equal(take().verdict, 'admitted');
  });
  fc.assert(property, { numRuns: 500, seed });
}
