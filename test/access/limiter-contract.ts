/** What every limiter must do, whatever stands behind it: each engine's test calls this with its factory. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import fc from 'fast-check';
import type { Decision, Limited, Limiter, Looked } from '../../src/access/limits.ts';
import { DAY_MS, MINUTE_MS, retryAfterSeconds } from '../../src/access/limits.ts';
import { LimiterModel } from './limiter-model.ts';

/** A limiter whose time stands still until the test moves it. What is optional, an engine need not have. */
export interface Tested {
  limiter: Limiter;
  advance(ms: number): void | Promise<void>;
  /** These are from now on the limits of the caller: asked before each take and look. */
  set?(caller: Limited): void | Promise<void>;
  /** Ends, and begins again with what was written down. */
  restart?(): void | Promise<void>;
  /** The lab: lets time pass for one caller, or forgets all about it. */
  passFor?(caller: Limited, ms: number): void | Promise<void>;
  refill?(caller: Limited): void | Promise<void>;
}
export type MakeLimiter = (options: { banAfter?: number }) => Tested | Promise<Tested>;

/** Asks the limiter under test. A decision outlives the next call only as a copy. */
class Asked {
  readonly tested: Tested;

  constructor(tested: Tested) {
    this.tested = tested;
  }

  async take(caller: Limited, times = 1): Promise<Decision> {
    await this.tested.set?.(caller);
    for (let time = 1; time < times; time++) await this.tested.limiter.take(caller);
    return structuredClone(await this.tested.limiter.take(caller));
  }

  async look(caller: Limited): Promise<Looked> {
    await this.tested.set?.(caller);
    return this.tested.limiter.look(caller);
  }

  async advance(ms: number): Promise<void> {
    await this.tested.advance(ms);
  }
}

/** Moments as they lie from now: clocks differ. */
export function fromNow<D extends Decision | Looked>(decision: D): D {
  const { at, minute, day, retryAt } = decision;
  const [minuteFromNow, dayFromNow] = [minute, day].map((window) => ({ ...window, endsAt: window.endsAt - at }));
  const told = { ...decision, at: 0, minute: minuteFromNow, day: dayFromNow, retryAt: retryAt - at };
  return 'banEndsAt' in told && told.banEndsAt !== 0 ? { ...told, banEndsAt: told.banEndsAt - at } : told;
}

const SLOTS = 3;

type Event =
  | { do: 'take'; slot: number; times: number }
  | { do: 'lift' | 'refill'; slot: number }
  | { do: 'plan'; slot: number; perMinute: number; perDay: number }
  | { do: 'advance'; ms: number }
  | { do: 'passFor'; slot: number; ms: number }
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
  { weight: 5, arbitrary: fc.record({ do: kind('advance'), ms }) },
  { weight: 1, arbitrary: fc.record({ do: kind('passFor'), slot, ms }) },
  { weight: 1, arbitrary: fc.record({ do: kind('restart') }) },
);

/** The limiter and its model side by side. */
class Pair {
  readonly asked: Asked;
  readonly model: LimiterModel;
  readonly callers: Limited[] = Array.from({ length: SLOTS }, (_, slot) => ({ slot, perMinute: 3, perDay: 10 }));

  constructor(asked: Asked, banAfter: number | undefined) {
    this.asked = asked;
    this.model = new LimiterModel(banAfter);
  }

  async apply(event: Event): Promise<void> {
    const { asked, model, callers } = this;
    const { tested } = asked;
    const caller = 'slot' in event ? callers[event.slot] : callers[0];
    switch (event.do) {
      case 'take':
        for (let time = 0; time < event.times; time++) await this.take(caller);
        break;
      case 'plan':
        callers[event.slot] = event;
        break;
      case 'advance':
        await asked.advance(event.ms);
        model.now += event.ms;
        break;
      case 'passFor':
        await tested.passFor?.(caller, event.ms);
        if (tested.passFor) model.passFor(caller, event.ms);
        break;
      case 'restart':
        await tested.restart?.();
        if (tested.restart) model.restart();
        break;
      case 'refill':
        await tested.refill?.(caller);
        if (tested.refill) model.refill(caller);
        break;
      default:
        await tested.limiter.lift(caller);
        model.lift(caller);
    }
    for (const caller of callers) assert.deepEqual(fromNow(await asked.look(caller)), fromNow(model.look(caller)));
  }

  async take(caller: Limited): Promise<Decision> {
    const decision = await this.asked.take(caller);
    assert.deepEqual(fromNow(decision), fromNow(this.model.take(caller)));
    return decision;
  }
}

const free: Limited = { slot: 0, perMinute: 60, perDay: 1_000 };
const small: Limited = { slot: 3, perMinute: 2, perDay: 5 };

/** The promises that are published; then, over any sequence of events, the limiter does what the plain model does. */
export function limiterContract(name: string, make: MakeLimiter): void {
  const promise = (title: string, run: (asked: Asked) => Promise<void>, banAfter?: number) => {
    it(`${name} ${title}`, async () => run(new Asked(await make({ banAfter }))));
  };

  promise('admits 60 of 61 requests 20 ms apart', async (asked) => {
    const verdicts: string[] = [];
    for (let n = 0; n < 61; n++, await asked.advance(20)) verdicts.push((await asked.take(free)).verdict);
    assert.deepEqual(verdicts, [...Array(60).fill('admitted'), 'limited']);
  });

  promise('opens both windows full at the first request admitted, and ends them one length later', async (asked) => {
    const first = fromNow(await asked.take(free));
    assert.deepEqual(first.minute, { limit: 60, remaining: 59, endsAt: MINUTE_MS });
    assert.deepEqual(first.day, { limit: 1_000, remaining: 999, endsAt: DAY_MS });
    await asked.advance(MINUTE_MS - 1);
    assert.equal((await asked.take(free)).minute.remaining, 58);
    await asked.advance(1);
    const next = fromNow(await asked.take(free));
    assert.deepEqual(next.minute, { limit: 60, remaining: 59, endsAt: MINUTE_MS });
    assert.deepEqual(next.day, { limit: 1_000, remaining: 997, endsAt: DAY_MS - MINUTE_MS });
    await asked.advance(DAY_MS);
    const { minute, day } = fromNow(await asked.look(free));
    const full = [minute, day].map(({ limit, remaining, endsAt }) => remaining === limit && endsAt === 0);
    assert.deepEqual(full, [true, true], 'a window that is not open is full, and ends now');
  });

  promise('admits 2N - 1 in a span of one length at the worst, and no more', async (asked) => {
    const caller = { slot: 1, perMinute: 5, perDay: 100 };
    await asked.take(caller);
    await asked.advance(MINUTE_MS - 1);
    assert.equal((await asked.take(caller, 4)).verdict, 'admitted');
    await asked.advance(1);
    assert.equal((await asked.take(caller, 5)).verdict, 'admitted');
    assert.equal((await asked.take(caller)).verdict, 'limited');
  });

  promise('bans at 5 times the limit a minute, for 2 minutes, and says so once', async (asked) => {
    assert.equal((await asked.take(small, 11)).verdict, 'limited');
    assert.equal((await asked.look(small)).strikes, 9);
    const tenth = fromNow(await asked.take(small));
    assert.deepEqual([tenth.verdict, tenth.banBegan, tenth.retryAt], ['banned', true, 2 * MINUTE_MS]);
    await asked.advance(2 * MINUTE_MS - 1);
    const during = fromNow(await asked.take(small, 50));
    assert.deepEqual([during.verdict, during.banBegan, during.retryAt], ['banned', false, 1]);
    assert.deepEqual([during.minute.remaining, during.day.remaining], [2, 3], 'both windows as they stand');
    await asked.advance(1);
    assert.equal((await asked.take(small)).verdict, 'admitted');
    const { strikes, bans, banEndsAt } = await asked.look(small);
    assert.deepEqual([strikes, bans, banEndsAt], [0, 1, 0]);
  });

  const escalates = async (asked: Asked) => {
    const caller = { slot: 0, perMinute: 1, perDay: 1_000 };
    const banMinutes = async () => {
      const banned = fromNow(await asked.take(caller, 2));
      assert.equal(banned.banBegan, true);
      await asked.advance(banned.retryAt);
      return banned.retryAt / MINUTE_MS;
    };
    for (const minutes of [2, 8, 32, 128, 512, 1_440, 1_440]) assert.equal(await banMinutes(), minutes);
    await asked.advance(DAY_MS - 1);
    assert.equal(await banMinutes(), 1_440, 'a day is not yet over');
    await asked.advance(3 * DAY_MS);
    assert.equal(await banMinutes(), 128, 'three of six forgiven: the fourth comes');
    await asked.advance(30 * DAY_MS);
    assert.equal(await banMinutes(), 2, 'all forgiven, and never less than none');
  };
  promise('bans for 2, 8, 32, 128, 512 minutes, then a day, and forgives a step a day', escalates, 1);

  it(`${name}: random sequences come to what the model says, and whoever waits as told is admitted`, async (t) => {
    const seed = Number(process.env.SEED ?? Date.now() % 2 ** 31);
    t.diagnostic(`SEED=${seed} plays the same again`);
    const banAfter = fc.constantFrom(undefined, 0, 1, 4);
    await fc.assert(
      fc.asyncProperty(banAfter, fc.array(event, { maxLength: 60 }), slot, async (banAfter, events, slot) => {
        const pair = new Pair(new Asked(await make({ banAfter })), banAfter);
        for (const event of events) await pair.apply(event);
        const { verdict, retryAt, at } = await pair.take(pair.callers[slot]);
        if (verdict === 'admitted') return;
        await pair.apply({ do: 'advance', ms: 1_000 * retryAfterSeconds(retryAt, at) });
        assert.equal((await pair.take(pair.callers[slot])).verdict, 'admitted');
      }),
      { numRuns: 300, seed },
    );
  });
}
