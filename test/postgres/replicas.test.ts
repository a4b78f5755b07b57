/** What several replicas on one database promise together. */
import assert from 'node:assert/strict';
import { it, type TestContext } from 'node:test';
import { lifted } from '../../src/access/limiter.ts';
import { onDatabase } from './database.ts';
import { addKey, addPet, type Replica, replica } from './replicas.ts';

/** How many times more than in the ordinary run. */
const SCALE = Number(process.env.FAULTS_SCALE ?? 1);
const READS = 250 * SCALE;

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
    await all[3].limiter.change(key, lifted);
    for (const { limiter } of all) assert.equal((await limiter.take(key)).verdict, 'limited');
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
