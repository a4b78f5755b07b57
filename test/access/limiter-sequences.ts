/** Over any sequence of events a limiter does what the plain model does, and keeps its promises. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import fc from 'fast-check';
import type { Decision, Limited } from '../../src/access/limits.ts';
import { DAY_MS, MINUTE_MS, retryAfterSeconds } from '../../src/access/limits.ts';
import { Asked, fromNow, type MakeLimiter } from './limiter-contract.ts';
import { LimiterModel } from './limiter-model.ts';

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

export function randomSequences(name: string, make: MakeLimiter): void {
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
