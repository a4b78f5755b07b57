/** What several replicas on one database promise together. */
import assert from 'node:assert/strict';
import { it, type TestContext } from 'node:test';
import { take } from '../../../src/access/limiter.ts';
import { DAY_MS, MINUTE_MS } from '../../../src/clock.ts';
import { type ApiKey, TABLES } from '../../../src/store/model.ts';
import { below, choose, seeded } from '../../../test/random.ts';
import { onDatabase } from './database.ts';
import { addKey, addPet, type Replica, replica } from './replicas.ts';

/** How many times more than in the ordinary run. */
const SCALE = Number(process.env.FAULTS_SCALE ?? 1);
const READS = 250 * SCALE;
const ACCOUNTS = 1_000 * SCALE;
/** The database ends a transaction that stands still for two seconds, as that of a large batch may on a busy machine. */
const ACCOUNTS_A_BATCH = 100;
const SEED = Number(process.env.LIMITS_SEED ?? 1 + Math.floor(Math.random() * 1e6));

onDatabase('replicas on one database', (database) => {
  let schemas = 0;
  const replicas = async (t: TestContext, count: number): Promise<Replica[]> => {
    const url = database().url(`s${++schemas}`);
    return Promise.all(Array.from({ length: count }, () => replica(t, url))); // all at once find no tables
  };

  it('a limit of N admits N: each remaining is told once, and the ban begins once', async (t) => {
    const all = await replicas(t, 4);
    const key = await addKey(all[0].store, { perMinute: 1_000, perDay: 5_000 });
    const given = await Promise.all(Array.from({ length: 7_000 }, (_, at) => all[at % 4].limiter.take(key)));
    const admitted = given.filter(({ verdict }) => verdict === 'admitted').map(({ minute }) => minute.remaining);
    assert.deepEqual(
      admitted.sort((a, b) => a - b),
      Array.from({ length: 1_000 }, (_, at) => at),
    );
    assert.equal(given.filter(({ banBegan }) => banBegan).length, 1);
    assert.equal(given.filter(({ verdict }) => verdict === 'limited').length, 4_999);
    for (const { limiter } of all) assert.equal((await limiter.look(key)).verdict, 'banned');
    await all[3].limiter.lift(key);
    for (const { limiter } of all) assert.equal((await limiter.take(key)).verdict, 'limited');
  });

  it(`${ACCOUNTS} accounts in any state: every take is that of one process (LIMITS_SEED=${SEED})`, async (t) => {
    const random = seeded(SEED);
    const banAfter = 3;
    const { store, limiter } = await replica(t, database().url(`s${++schemas}`), { banAfter });
    const now = store.now();
    /** Of a window of this length: it may be over, or end while the test runs. */
    const end = (length: number) =>
      choose(random, [0, now - below(random, length), now + below(random, 1_000), now + length]);
    const accounts = Array.from({ length: ACCOUNTS }, () => ({
      minuteUsed: below(random, 5),
      minuteEndsAt: end(MINUTE_MS),
      dayUsed: below(random, 5),
      dayEndsAt: end(DAY_MS),
      strikes: below(random, banAfter),
      bans: below(random, 7),
      banEndsAt: choose(random, [0, 0, end(DAY_MS), now - below(random, 5) * DAY_MS]),
    }));
    const keys: ApiKey[] = [];
    for (let from = 0; from < ACCOUNTS; from += ACCOUNTS_A_BATCH) {
      const adding = Array.from({ length: ACCOUNTS_A_BATCH }, (_, at) => {
        const [perMinute, perDay] = [1 + below(random, 6), 1 + below(random, 8)];
        return addKey(store, { name: `${from + at}`, perMinute, perDay });
      });
      const added = await Promise.all(adding);
      keys.push(...added);
      await store.write((tx) => {
        for (const { id, name } of added) tx.usage.put({ id, ...accounts[Number(name)] });
      });
    }
    let admitted = 0;
    for (let wave = 0; wave < 3; wave++) {
      const asked = keys.flatMap((key) => Array(below(random, 4)).fill(key) as typeof keys);
      const decisions = await Promise.all(asked.map((key) => limiter.take(key)));
      for (const [at, decision] of decisions.entries()) {
        const key = asked[at];
        const expected = take(accounts[Number(key.name)], key, decision.at, banAfter);
        assert.deepEqual(decision, expected, `key ${key.id}, wave ${wave}`);
        if (decision.verdict === 'admitted') admitted++;
      }
    }
    const rows = await database().query(`SELECT row::text FROM s${schemas}.usage ORDER BY id`);
    assert.deepEqual(
      rows.map(({ row }) => row),
      keys
        .toSorted((a, b) => a.id - b.id)
        .map(({ id, name }) => TABLES.usage.json(TABLES.usage.read({ id, ...accounts[Number(name)] }))),
      'to the byte what the store writes',
    );
    assert.ok(admitted > ACCOUNTS, `${admitted} admitted`);
  });

  it('answers at once whoever asks right behind the answer to another one', async (t) => {
    const [{ limiter }] = await replicas(t, 1);
    for (let turns = 0; turns < 8; turns++) {
      const took: number[] = [];
      for (let n = 0; n < 10; n++) {
        await limiter.refresh!();
        for (let turn = 0; turn < turns; turn++) await undefined;
        const began = performance.now();
        await limiter.refresh!();
        took.push(performance.now() - began);
      }
      const quickest = Math.min(...took.slice(1)); // the heartbeat may come at any time in the first
      assert.ok(quickest < 250, `${turns} turns behind: ${took} ms, as if each waited for the heartbeat`);
    }
  });

  it('takes of many keys by several replicas at once wait for each other in order: none is undone', async (t) => {
    const all = await replicas(t, 4);
    const before = database().log.length;
    const keys = await Promise.all(Array.from({ length: 300 }, () => addKey(all[0].store)));
    await Promise.all(
      all.map(async ({ limiter }, at) => {
        const order = at % 2 === 0 ? keys : keys.toReversed();
        for (let n = 0; n < 10; n++) await Promise.all(order.map((key) => limiter.take(key)));
      }),
    );
    assert.doesNotMatch(database().log.slice(before), /deadlock/);
    for (const key of [keys[0], keys[299]]) {
      assert.equal((await all[0].limiter.look(key)).minute.remaining, key.perMinute - 40);
    }
  });

  it(`what one has acknowledged, the next request at the other sees: ${READS} writes, none old`, async (t) => {
    const [a, b] = await replicas(t, 2);
    const key = await addKey(a.store);
    for (let n = 0; n < READS; n++) {
      const id = await addPet(a.store, `n ${n}`);
      await b.limiter.take(key);
      assert.equal(b.store.read.pets.get(id)?.name, `n ${n}`);
    }
  });

  it('counts in one row at four replicas: none is lost, and no reader sees it go back', async (t) => {
    const all = await replicas(t, 4);
    const key = await addKey(all[0].store);
    await all[0].store.write((tx) => tx.categories.put({ id: 1, name: '0' }));
    const valueAt = ({ store }: Replica) => Number(store.read.categories.get(1)?.name ?? 0);
    let isOver = false;
    const writer = async ({ store }: Replica) => {
      for (let n = 0; n < 25; n++) {
        await store.write((tx) => tx.categories.put({ id: 1, name: `${Number(tx.categories.get(1)!.name) + 1}` }));
      }
    };
    const reader = async (replica: Replica) => {
      for (let seen = 0; !isOver; ) {
        await replica.limiter.take(key);
        const value = valueAt(replica);
        assert.ok(value >= seen, `${value} after ${seen}`);
        seen = value;
        await new Promise(setImmediate);
        assert.ok(valueAt(replica) >= seen, `${valueAt(replica)} after ${seen}, without a request between`);
      }
    };
    const reading = Promise.all([...all, ...all].map(reader));
    await Promise.all([...all, ...all].map(writer));
    isOver = true;
    await reading;
    for (const one of all) {
      await one.limiter.refresh!();
      assert.equal(valueAt(one), 200);
    }
  });
});
