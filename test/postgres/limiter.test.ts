/** The limiter on a real PostgreSQL does what SlotLimiter does, take by take, at every level of isolation. */
import assert from 'node:assert/strict';
import { it, type TestContext } from 'node:test';
import { SlotLimiter } from '../../src/access/limiter.ts';
import type { Limited } from '../../src/access/limits.ts';
import { DAY_MS, MINUTE_MS, systemClock } from '../../src/clock.ts';
import { PostgresLimiter } from '../../src/postgres/limiter.ts';
import { Link, type Statement } from '../../src/postgres/link.ts';
import { serverOf } from '../../src/postgres/server.ts';
import { BEGIN, COMMIT, TAKE } from '../../src/postgres/sql.ts';
import { openSchema } from '../../src/postgres/tables.ts';
import { SetClock } from '../clock.ts';
import { seeded } from '../faults/sim-disk.ts';
import { onDatabase } from './database.ts';
import { until } from './replicas.ts';

const MAX_WAITING = 10_000;
const SLOTS = 4;
const ROUNDS = 250;
/** When the tests' time begins in the database. */
const ORIGIN = Date.UTC(2026, 0, 1);
const FIRST = { perMinute: 5, perDay: 12 };

/** The database's clock is one that the test sets. */
class SetTimeLink extends Link {
  /** Called with each answer. */
  took = () => {};

  override ask(statements: Statement[]) {
    const timed = ({ name, text, values }: Statement) => ({ name, text: text.replaceAll('now()', 'clock()'), values });
    return super.ask(statements.map(timed)).finally(() => this.took());
  }
}

/** The real one, and what a test adds to it. */
class LateClock {
  #late = 0;
  now = () => systemClock.now() + this.#late;
  wall = systemClock.wall;
  advance(ms: number): void {
    this.#late += ms;
  }
}

it('ten thousand decisions wait for the database, and strangers take one place among them, however many they are', async (t) => {
  const takes = { rows: () => new Promise(() => {}) } as unknown as Link;
  const journal = { at: { batch: 0, id: '' }, arrived: async () => {} };
  const limiter = new PostgresLimiter({ clock: new SetClock(), takes, upkeep: takes, journal, warn: () => {} });
  t.after(() => limiter.close());
  const full: string[] = [];
  const asked = (one: Promise<unknown>) => void one.catch(({ message }) => full.push(message));
  asked(limiter.take({ slot: 1 }));
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve))); // it is in flight: all others wait
  for (let i = 0; i < 2 * MAX_WAITING; i++) asked(limiter.fresh());
  for (let i = 1; i < MAX_WAITING; i++) asked(limiter.take({ slot: 1 }));
  await new Promise(setImmediate);
  assert.deepEqual(full, []);
  asked(limiter.take({ slot: 1 }));
  await new Promise(setImmediate);
  assert.deepEqual(full, ['too many requests wait for the database']);
});

onDatabase('the limiter on PostgreSQL', (database) => {
  async function opened(t: TestContext, schema: string, banAfter?: number) {
    const link = new SetTimeLink(serverOf(database().url(schema)), 'test');
    await openSchema(link, schema);
    await database().query(`SET search_path = ${schema}; CREATE TABLE clocked AS SELECT now() AS at;
      CREATE FUNCTION clock() RETURNS timestamptz STABLE LANGUAGE sql AS 'SELECT at FROM clocked'`);
    const journal = { at: { batch: 0, id: '' }, arrived: async () => {}, catchUp: async () => {} };
    const warned: string[] = [];
    const warn = (text: string) => void warned.push(text);
    const clock = new LateClock();
    const options = { clock, banAfter, takes: link, upkeep: link, journal, warn };
    const limiter = new PostgresLimiter(options);
    t.after(() => limiter.close());
    t.after(() => link.close());
    const setTime = (at: number) =>
      link.rows({ text: 'UPDATE clocked SET at = to_timestamp($1::float8 / 1000)', values: [at] });
    const setPlan = ({ slot, perMinute, perDay }: Limited) => {
      const text = `INSERT INTO limits (slot, per_minute, per_day) VALUES ($1, $2, $3)
        ON CONFLICT (slot) DO UPDATE SET per_minute = $2, per_day = $3`;
      return link.rows({ text, values: [slot, perMinute, perDay] });
    };
    return { limiter, setTime, setPlan, warned, link, clock };
  }

  it('a take waits for one that is not yet committed, and counts it', async (t) => {
    const { setPlan } = await opened(t, 'waiting');
    await setPlan({ slot: 0, perMinute: 1, perDay: 10 });
    const [first, second] = ['first', 'second'].map((name) => new Link(serverOf(database().url('waiting')), name));
    for (const link of [first, second]) t.after(() => link.close());
    const take = { text: TAKE, values: [[0], [1], 0, -1] };
    const patience = { text: "SET LOCAL idle_in_transaction_session_timeout = '60s'" };
    const [, , { rows }] = await first.ask([{ text: BEGIN }, patience, take]);
    assert.equal(rows[0].g, 1);
    const later = second.rows(take);
    const waits = "SELECT 1 FROM pg_stat_activity WHERE application_name ~ ' second ' AND wait_event_type = 'Lock'";
    await until(async () => (await database().query(waits)).length > 0);
    await first.ask([{ text: COMMIT }]);
    assert.equal((await later)[0].g, 0, 'the one that there was is given');
  });

  it("says that the database's clock was set", async (t) => {
    const { limiter, setTime, setPlan, warned } = await opened(t, 'clock');
    await setPlan({ slot: 0, ...FIRST });
    for (const at of [ORIGIN, ORIGIN + 900, ORIGIN - 3_600_000]) {
      assert.deepEqual(warned, [], 'an answer may be 900 ms late');
      await setTime(at);
      await limiter.take({ slot: 0 });
    }
    assert.match(warned.join(), /^the database's clock was set by -36\d{5} ms/);
  });

  it('learns nothing of the clock from a statement that took longer than a step may be', async (t) => {
    const { limiter, setTime, setPlan, warned, link, clock } = await opened(t, 'slow');
    await setPlan({ slot: 0, ...FIRST });
    await setTime(ORIGIN);
    await limiter.take({ slot: 0 });
    link.took = () => clock.advance(5_000);
    await limiter.take({ slot: 0 }); // its time is of five seconds ago
    link.took = () => {};
    await setTime(ORIGIN + 5_000);
    await limiter.take({ slot: 0 });
    assert.deepEqual(warned, []);
  });

  it('a window ends no later than its length from now, also when a clock that was ahead is set back', async (t) => {
    const { limiter, setTime, setPlan } = await opened(t, 'back', 2);
    await setPlan({ slot: 0, perMinute: 1, perDay: 5 });
    await setTime(ORIGIN + DAY_MS);
    for (let n = 0; n < 3; n++) await limiter.take({ slot: 0 }); // the third is a ban's beginning
    await setTime(ORIGIN);
    const { minute, day, banEndsAt } = await limiter.look({ slot: 0, perMinute: 1, perDay: 5 });
    assert.deepEqual([minute.endsAt, day.endsAt], [ORIGIN + MINUTE_MS, ORIGIN + DAY_MS]);
    assert.equal(banEndsAt, ORIGIN + 2 * MINUTE_MS);
    assert.equal((await limiter.take({ slot: 0 })).retryAt, ORIGIN + 2 * MINUTE_MS);
    await setTime(ORIGIN + 2 * MINUTE_MS);
    assert.equal((await limiter.take({ slot: 0 })).verdict, 'admitted');
  });

  for (const [isolation, banAfter] of [
    ['read committed', undefined],
    ['repeatable read', 3],
    ['serializable', 0],
  ] as const) {
    it(`equals SlotLimiter over random takes, plans and pauses (${isolation}, ban after ${banAfter})`, async (t) => {
      await database().query(`ALTER ROLE petstore SET default_transaction_isolation = '${isolation}'`);
      const { limiter, setTime, setPlan } = await opened(t, `random_${banAfter ?? 'default'}`, banAfter);
      const seed = Number(process.env.SEED ?? Date.now() % 1e6);
      const fraction = seeded(seed);
      const random = (below: number) => Math.floor(fraction() * below);
      const clock = new SetClock(ORIGIN);
      const model = new SlotLimiter({ clock, unix: () => clock.wall(), banAfter });
      const callers: Limited[] = Array.from({ length: SLOTS }, (_, slot) => ({ slot, ...FIRST }));
      for (const caller of callers) await setPlan(caller);
      const spans = [1, 1_000, MINUTE_MS, 3 * MINUTE_MS, DAY_MS];
      const pause = () => [...spans.map(random), MINUTE_MS - 1, MINUTE_MS, DAY_MS, 3 * DAY_MS][random(9)];
      for (let round = 0; round < ROUNDS; round++) {
        const told = `seed ${seed}, round ${round}`;
        await setTime(clock.wall());
        const event = random(12);
        const some = random(SLOTS);
        if (event === 0) {
          callers[some] = { slot: some, perMinute: 1 + random(6), perDay: 1 + random(15) };
          await setPlan(callers[some]);
        } else if (event === 1) {
          await limiter.lift(callers[some]);
          model.lift(callers[some]);
        } else {
          const asked = Array.from({ length: 1 + random(16) }, () => callers[random(3) === 0 ? 0 : random(SLOTS)]);
          const given = await Promise.all(asked.map((caller) => limiter.take(caller)));
          const wanted = asked.map((caller) => structuredClone(model.take(caller)));
          assert.deepEqual(given, wanted, told);
        }
        for (const caller of callers) assert.deepEqual(await limiter.look(caller), model.look(caller), told);
        clock.advance(pause());
      }
    });
  }
});
