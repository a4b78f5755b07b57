/** Over any sequence of events, the limiter does what the model does, and keeps its promises. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import fc from 'fast-check';
import { SlotLimiter } from '../../src/access/limiter.ts';
import type { Decision, Limited } from '../../src/access/limits.ts';
import { DAY_MS, MINUTE_MS, retryAfterSeconds } from '../../src/access/limits.ts';
import { SetClock } from '../../src/clock.ts';
import { LimiterModel } from './limiter-model.ts';

const SLOTS = 3;
const ROUNDS = 400;

type Event =
  | { do: 'take'; slot: number; cost: number; times: number }
  | { do: 'look'; slot: number }
  | { do: 'lift'; slot: number }
  | { do: 'plan'; slot: number; perMinute: number; perDay: number }
  | { do: 'advance'; ms: number }
  | { do: 'setWall'; ms: number }
  | { do: 'restart'; ms: number };

const slot = fc.nat(SLOTS - 1);
const perMinute = fc.integer({ min: 1, max: 6 });
const perDay = fc.integer({ min: 1, max: 15 });
const jump = fc.oneof(fc.constant(0), fc.integer({ min: -3 * DAY_MS, max: 3 * DAY_MS }));
const pause = fc.oneof(
  fc.nat(MINUTE_MS),
  fc.constantFrom(1, MINUTE_MS - 1, MINUTE_MS, 2 * MINUTE_MS, DAY_MS - 1, DAY_MS),
  fc.nat(3 * DAY_MS),
);
const event: fc.Arbitrary<Event> = fc.oneof(
  { weight: 12, arbitrary: fc.record({ do: fc.constant('take' as const), slot, cost: small(3), times: small(12) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('look' as const), slot }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('lift' as const), slot }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('plan' as const), slot, perMinute, perDay }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('advance' as const), ms: pause }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('setWall' as const), ms: jump }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('restart' as const), ms: jump }) },
);
const events = fc.array(event, { maxLength: 60 });
const banAfter = fc.constantFrom(undefined, 0, 1, 4);

function small(max: number): fc.Arbitrary<number> {
  return fc.integer({ min: 1, max });
}

/** The limiter and its model side by side, and what the promises are checked by. */
class Pair {
  readonly clock = new SetClock();
  readonly banAfter: number | undefined;
  limiter: SlotLimiter;
  readonly model: LimiterModel;
  readonly callers: Limited[] = Array.from({ length: SLOTS }, (_, slot) => ({ slot, perMinute: 3, perDay: 10 }));

  constructor(banAfter: number | undefined) {
    this.banAfter = banAfter;
    this.limiter = new SlotLimiter({ clock: this.clock, banAfter });
    this.model = new LimiterModel(this.clock, banAfter);
  }

  apply(event: Event): void {
    if (event.do === 'take') {
      for (let time = 0; time < event.times; time++) this.take(this.callers[event.slot], event.cost);
    } else if (event.do === 'look') {
      const caller = this.callers[event.slot];
      assert.deepEqual(this.limiter.look(caller), this.model.look(caller, 1));
    } else if (event.do === 'lift') {
      this.limiter.lift(this.callers[event.slot]);
      this.model.lift(this.callers[event.slot]);
    } else if (event.do === 'plan') this.callers[event.slot] = event;
    else if (event.do === 'advance') this.clock.advance(event.ms);
    else if (event.do === 'setWall') this.clock.setWall(this.clock.wall() + event.ms);
    else this.restart(event.ms);
    for (const caller of this.callers) {
      assert.deepEqual(this.limiter.counted(caller), this.model.counted(caller));
      assert.equal(this.limiter.strikes(caller), this.model.strikes(caller));
    }
  }

  take(caller: Limited, cost: number): Decision {
    const decision = structuredClone(this.limiter.take(caller, cost));
    assert.deepEqual(decision, this.model.take(caller, cost));
    return decision;
  }

  restart(jump: number): void {
    const counted = this.callers.map((caller) => this.limiter.counted(caller));
    this.clock.setWall(this.clock.wall() + jump);
    this.limiter = new SlotLimiter({ clock: this.clock, banAfter: this.banAfter });
    for (const caller of this.callers) this.limiter.restore(caller, counted[caller.slot]);
    this.model.restart(jump);
  }
}

it('does what the plain model does, step by step', () => {
  fc.assert(
    fc.property(banAfter, events, (banAfter, events) => {
      const pair = new Pair(banAfter);
      for (const event of events) pair.apply(event);
    }),
    { numRuns: ROUNDS },
  );
});

it('never admits more than the limit in a window, whatever happens', () => {
  fc.assert(
    fc.property(banAfter, events, (banAfter, events) => {
      const pair = new Pair(banAfter);
      const admitted = new Map<string, number>();
      const take = pair.take.bind(pair);
      pair.take = (caller, cost) => {
        const decision = take(caller, cost);
        if (decision.verdict !== 'admitted') return decision;
        for (const name of ['minute', 'day'] as const) {
          const { limit, remaining, endsAt } = decision[name];
          const window = `${caller.slot} ${name} ${endsAt}`;
          const used = (admitted.get(window) ?? 0) + cost;
          admitted.set(window, used);
          assert.ok(used <= limit, `${used} admitted of ${limit} in the ${window}`);
          assert.equal(used + remaining, limit);
        }
        return decision;
      };
      // A minute window may start anew with a restart; one that ends at the same moment is another window then.
      for (const event of events) {
        if (event.do === 'restart') {
          for (const window of admitted.keys()) if (window.includes('minute')) admitted.delete(window);
          pair.apply({ ...event, ms: 0 });
        } else pair.apply(event);
      }
    }),
    { numRuns: ROUNDS },
  );
});

it('admits at most 2N - 1 in any span of one window length', () => {
  fc.assert(
    fc.property(perMinute, fc.array(fc.nat(20_000), { maxLength: 80 }), (limit, pauses) => {
      const clock = new SetClock();
      const limiter = new SlotLimiter({ clock, banAfter: 0 });
      const times: number[] = [];
      for (const ms of pauses) {
        clock.advance(ms);
        if (limiter.take({ slot: 0, perMinute: limit, perDay: 1_000 }).verdict === 'admitted') times.push(clock.now());
      }
      for (const [first, start] of times.entries()) {
        const inSpan = times.slice(first).filter((time) => time < start + MINUTE_MS);
        assert.ok(inSpan.length <= 2 * limit - 1, `${inSpan.length} admitted in a minute`);
      }
    }),
    { numRuns: ROUNDS },
  );
});

it('a refusal changes no window and nothing that is remembered, unless it begins a ban', () => {
  fc.assert(
    fc.property(banAfter, events, small(3), (banAfter, events, cost) => {
      const pair = new Pair(banAfter);
      for (const event of events) pair.apply(event);
      pair.limiter.changed(SLOTS);
      for (const caller of pair.callers) {
        const before = structuredClone(pair.limiter.look(caller));
        const counted = pair.limiter.counted(caller);
        const refused = structuredClone(pair.limiter.take(caller, cost));
        if (refused.verdict === 'admitted') continue;
        assert.deepEqual([refused.minute, refused.day], [before.minute, before.day]);
        if (refused.banBegan) continue;
        assert.deepEqual(pair.limiter.counted(caller), counted);
        assert.ok(!pair.limiter.changed(SLOTS).includes(caller.slot));
      }
    }),
    { numRuns: ROUNDS },
  );
});

it('whoever waits exactly Retry-After is admitted, wherever it stood and however the wall clock jumped', () => {
  fc.assert(
    fc.property(banAfter, events, slot, jump, (banAfter, events, slot, jump) => {
      const pair = new Pair(banAfter);
      for (const event of events) pair.apply(event);
      const caller = pair.callers[slot];
      const decision = pair.take(caller, 1);
      if (decision.verdict === 'admitted') return;
      pair.clock.setWall(pair.clock.wall() + jump);
      pair.clock.advance(1_000 * retryAfterSeconds(decision.retryAt, pair.clock.now()));
      assert.equal(pair.take(caller, 1).verdict, 'admitted');
    }),
    { numRuns: ROUNDS },
  );
});
