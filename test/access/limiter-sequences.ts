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
  /** How many each window has admitted, by the caller and by what ends it. */
  readonly #admitted = new Map<string, number>();

  constructor(asked: Asked, banAfter: number | undefined) {
    this.asked = asked;
    this.model = new LimiterModel(banAfter);
  }

  async apply(event: Event): Promise<void> {
    const { asked, model, callers } = this;
    const { tested } = asked;
    if (event.do === 'advance') {
      await asked.advance(event.ms);
      model.now += event.ms;
    } else if (event.do === 'restart') {
      if (tested.restart === undefined) return;
      await tested.restart();
      model.restart();
      this.#admitted.clear(); // minute windows may start anew
    } else {
      const caller = callers[event.slot];
      if (event.do === 'take') for (let time = 0; time < event.times; time++) await this.take(caller);
      if (event.do === 'plan') callers[event.slot] = event;
      if (event.do === 'lift') {
        await tested.limiter.lift(caller);
        model.lift(caller);
      } else if (event.do === 'refill' && tested.refill !== undefined) {
        await tested.refill(caller);
        model.refill(caller);
        this.#admitted.clear();
      } else if (event.do === 'passFor' && tested.passFor !== undefined) {
        await tested.passFor(caller, event.ms);
        model.passFor(caller, event.ms);
        this.#admitted.clear();
      }
    }
    for (const caller of callers) assert.deepEqual(fromNow(await asked.look(caller)), fromNow(model.look(caller)));
  }

  async take(caller: Limited): Promise<Decision> {
    const decision = await this.asked.take(caller);
    assert.deepEqual(fromNow(decision), fromNow(this.model.take(caller)));
    for (const name of ['minute', 'day'] as const) {
      if (decision.verdict !== 'admitted') break;
      const window = `${caller.slot} ${name} ${decision[name].endsAt}`;
      const used = (this.#admitted.get(window) ?? 0) + 1;
      this.#admitted.set(window, used);
      assert.ok(used <= decision[name].limit, `${used} admitted of ${decision[name].limit} in one ${name}`);
    }
    return decision;
  }
}

export function randomSequences(name: string, make: MakeLimiter, numRuns: number): void {
  it(`${name}: random sequences come to what the model says, and whoever waits as told is admitted`, async (t) => {
    const seed = Number(process.env.SEED ?? Date.now() % 2 ** 31);
    t.diagnostic(`SEED=${seed} plays the same again`);
    const banAfter = fc.constantFrom(undefined, 0, 1, 4);
    await fc.assert(
      fc.asyncProperty(banAfter, fc.array(event, { maxLength: 60 }), slot, async (banAfter, events, slot) => {
        const pair = new Pair(new Asked(await make({ banAfter })), banAfter);
        for (const event of events) await pair.apply(event);
        const { verdict, retryAt, at } = await pair.take(pair.callers[slot]);
        if (verdict !== 'admitted') {
          await pair.apply({ do: 'advance', ms: 1_000 * retryAfterSeconds(retryAt, at) });
          assert.equal((await pair.take(pair.callers[slot])).verdict, 'admitted');
        }
        await pair.asked.tested.close?.();
      }),
      { numRuns, seed },
    );
  });
}
