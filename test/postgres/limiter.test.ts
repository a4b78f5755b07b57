/** The limiter on a real PostgreSQL does what SlotLimiter does, take by take, at every level of isolation. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import pg from 'pg';
import { SlotLimiter } from '../../src/access/limiter.ts';
import type { Limited } from '../../src/access/limits.ts';
import { DAY_MS, MINUTE_MS } from '../../src/access/limits.ts';
import { systemClock } from '../../src/clock.ts';
import { PostgresLimiter } from '../../src/postgres/limiter.ts';
import { Link, type Statement } from '../../src/postgres/link.ts';
import { serverOf } from '../../src/postgres/server.ts';
import { TAKE } from '../../src/postgres/sql.ts';
import { openSchema } from '../../src/postgres/tables.ts';
import { SetClock } from '../clock.ts';
import { onDatabase } from './database.ts';

const SLOTS = 4;
const ROUNDS = 700;
/** When the tests' time begins in the database. */
const ORIGIN = Date.UTC(2026, 0, 1);
const FIRST = { perMinute: 5, perDay: 12 };

/** The database's clock is one that the test sets. */
class SetTimeLink extends Link {
  override ask(statements: Statement[]) {
    const timed = ({ name, text, values }: Statement) => ({ name, text: text.replaceAll('now()', 'clock()'), values });
    return super.ask(statements.map(timed));
  }
}

function seeded(seed: number): (below: number) => number {
  return (below) => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((seed / 2 ** 32) * below);
  };
}

onDatabase('the limiter on PostgreSQL', (database) => {
  async function opened(schema: string, banAfter?: number) {
    const place = serverOf(database().url(schema));
    const link = new SetTimeLink(place, 'test');
    await openSchema(link, schema);
    const made = [
      'CREATE TABLE clocked AS SELECT now() AS at',
      "CREATE FUNCTION clock() RETURNS timestamptz STABLE LANGUAGE sql AS 'SELECT at FROM clocked'",
    ];
    for (const text of made) await database().query(`SET search_path = ${schema}; ${text}`);
    const journal = { at: { batch: 0, id: '' }, arrived: async () => {}, catchUp: async () => {} };
    const warned: string[] = [];
    const limiter = new PostgresLimiter({
      clock: systemClock,
      banAfter,
      takes: link,
      upkeep: link,
      journal,
      warn: (text) => void warned.push(text),
    });
    const setTime = (at: number) =>
      link.rows({ text: 'UPDATE clocked SET at = to_timestamp($1::float8 / 1000)', values: [at] });
    const setPlan = ({ slot, perMinute, perDay }: Limited) =>
      link.rows({
        text: 'INSERT INTO limits (slot, per_minute, per_day) VALUES ($1, $2, $3) ON CONFLICT (slot) DO UPDATE SET per_minute = $2, per_day = $3',
        values: [slot, perMinute, perDay],
      });
    return { link, limiter, setTime, setPlan, warned, close: () => limiter.close() };
  }

  it('a take waits for one that is not yet committed, and counts it', async (t) => {
    await database().query("ALTER ROLE petstore SET default_transaction_isolation = 'read committed'");
    const { setPlan, close } = await opened('waiting');
    t.after(close);
    await setPlan({ slot: 0, perMinute: 1, perDay: 10 });
    const place = { host: '127.0.0.1', port: database().port, user: 'petstore', database: 'postgres' };
    const [first, second] = await Promise.all(
      ['first', 'second'].map(async (application_name) => {
        const client = new pg.Client({ ...place, application_name });
        t.after(() => client.end());
        await client.connect();
        await client.query('SET search_path = waiting');
        return client;
      }),
    );
    const take = async (client: pg.Client) => (await client.query(TAKE, [[0], [1], 0, -1])).rows[0].g;
    await first.query('BEGIN');
    assert.equal(await take(first), 1);
    const later = take(second);
    const waits = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'second' AND wait_event_type = 'Lock'";
    while ((await database().query(waits)).length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    await first.query('COMMIT');
    assert.equal(await later, 0, 'the one that there was is given');
  });

  it("says that the database's clock was set", async (t) => {
    const { limiter, setTime, setPlan, warned, close } = await opened('clock');
    t.after(close);
    const caller = { slot: 0, ...FIRST };
    await setPlan(caller);
    await setTime(ORIGIN);
    await limiter.take(caller);
    await setTime(ORIGIN + 900); // as far as an answer may be late
    await limiter.take(caller);
    assert.deepEqual(warned, []);
    await setTime(ORIGIN - 3_600_000);
    await limiter.take(caller);
    assert.match(warned.join(), /^the database's clock was set by -36\d{5} ms/);
  });

  for (const [isolation, banAfter] of [
    ['read committed', undefined],
    ['repeatable read', 3],
    ['serializable', 0],
  ] as const) {
    it(`equals SlotLimiter over random takes, plans and pauses (${isolation}, ban after ${banAfter})`, async (t) => {
      await database().query(`ALTER ROLE petstore SET default_transaction_isolation = '${isolation}'`);
      const { limiter, setTime, setPlan, close } = await opened(`random_${banAfter ?? 'default'}`, banAfter);
      t.after(close);
      const seed = Date.now() % 1e6;
      const random = seeded(seed);
      const clock = new SetClock(ORIGIN);
      const model = new SlotLimiter({ clock, unix: () => clock.wall(), banAfter });
      const callers: Limited[] = Array.from({ length: SLOTS }, (_, slot) => ({ slot, ...FIRST }));
      for (const caller of callers) await setPlan(caller);
      let takes = 0;
      const pauses = [
        () => 0,
        () => 1 + random(1_000),
        () => MINUTE_MS - 1,
        () => MINUTE_MS,
        () => random(3 * MINUTE_MS),
        () => random(DAY_MS),
        () => DAY_MS,
        () => 3 * DAY_MS,
      ];
      for (let round = 0; round < ROUNDS; round++) {
        await setTime(clock.wall());
        const event = random(12);
        if (event === 0) {
          const slot = random(SLOTS);
          callers[slot] = { slot, perMinute: 1 + random(6), perDay: 1 + random(15) };
          await setPlan(callers[slot]);
        } else if (event === 1) {
          const caller = callers[random(SLOTS)];
          await limiter.lift(caller);
          model.lift(caller);
        } else {
          const asked = Array.from({ length: 1 + random(16) }, () => callers[random(3) === 0 ? 0 : random(SLOTS)]);
          const given = await Promise.all(asked.map((caller) => limiter.take(caller)));
          const wanted = asked.map((caller) => structuredClone(model.take(caller)));
          assert.deepEqual(given, wanted, `seed ${seed}, round ${round}`);
          takes += asked.length;
        }
        for (const caller of callers) {
          assert.deepEqual(await limiter.look(caller), model.look(caller), `seed ${seed}, round ${round}`);
        }
        clock.advance(pauses[random(pauses.length)]());
      }
      assert.ok(takes > ROUNDS * 5, `${takes} takes`);
    });
  }
});
