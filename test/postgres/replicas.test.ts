/** What several replicas on one database promise together. */
import assert from 'node:assert/strict';
import { it, type TestContext } from 'node:test';
import { testJournal } from '../store/journal-contract.ts';
import { onDatabase } from './database.ts';
import { addPet, type Replica, RICH, replica, setKey } from './replicas.ts';

/** How many times more than in the ordinary run. */
const SCALE = Number(process.env.FAULTS_SCALE ?? 1);
const READS = 300 * SCALE;
const MAX_BYTES = 100_000;

onDatabase('replicas on one database', (database) => {
  let schemas = 0;
  const replicas = async (t: TestContext, count: number): Promise<Replica[]> => {
    const url = database().url(`s${++schemas}`);
    return Promise.all(Array.from({ length: count }, () => replica(t, url))); // all at once find no tables
  };

  for (const isolation of ['read committed', 'repeatable read', 'serializable']) {
    testJournal({
      name: isolation,
      stores: 3,
      async keep(t) {
        await database().query(`ALTER ROLE petstore SET default_transaction_isolation = '${isolation}'`);
        t.after(() => database().query('ALTER ROLE petstore RESET default_transaction_isolation'));
        const url = database().url(`s${++schemas}`);
        return async () => {
          const { store, fatal } = await replica(t, url);
          t.after(() => assert.deepEqual(fatal, []));
          return store;
        };
      },
    });
  }

  it('the bytes of the store and the share of a key are bounded over all replicas, also for one that starts later', async (t) => {
    const url = database().url(`s${++schemas}`);
    const open = () => replica(t, url, { maxBytes: MAX_BYTES });
    const all = [await open(), await open()];
    let id = 0;
    const add = ({ store }: Replica, by: string) => {
      const category = { id: ++id, name: 'a long name '.repeat(20) };
      return store.write(() => ({ op: 'setCategory', category, by }));
    };
    /** Adds at one replica after the other, until one refuses; then all of them do. */
    const fill = async (by: string, why: RegExp) => {
      const failed = async () => {
        while (id < MAX_BYTES / 50) for (const one of all) await add(one, by);
      };
      await assert.rejects(failed, why);
      for (const one of all) await assert.rejects(add(one, by), why, 'at each replica');
    };
    await fill('k1', /this key has used up its share of the store/);
    await fill('k2', /the store has reached its maximum/);
    await (await open()).upkeep.compact();
    all.push(await open());
    for (const one of all) {
      await one.limiter.fresh();
      const { bytes } = one.store.read;
      assert.ok(bytes.total <= MAX_BYTES && bytes.total > 0.9 * MAX_BYTES, `${bytes.total}`);
      const { bytes: same } = all[0].store.read;
      for (const by of ['k1', 'k2']) assert.equal(bytes.addedBy(by), same.addedBy(by));
      assert.equal(bytes.total, same.total);
      await assert.rejects(add(one, 'k3'), /the store has reached its maximum/);
    }
  });

  it('who is second again and again locks the head of the log', { timeout: 120_000 }, async (t) => {
    const all = await replicas(t, 4);
    const isMet = (name: string) => all.some(({ count }) => count(name) > 0);
    while (!isMet('conflicts_total') || !isMet('locks_total')) {
      await Promise.all(all.map(({ store }) => addPet(store, 'at once with others')));
    }
  });

  it('a limit of N admits N: each remaining is told once, and the ban begins once', async (t) => {
    const all = await replicas(t, 4);
    const key = await setKey(all[0].store, { perMinute: 1_000, perDay: 5_000 });
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

  it('takes of many keys by several replicas at once wait for each other in order: none is undone', async (t) => {
    const all = await replicas(t, 4);
    const before = database().log.length;
    const keys = await Promise.all(Array.from({ length: 300 }, () => setKey(all[0].store, RICH)));
    await Promise.all(
      all.map(async ({ limiter }, at) => {
        const order = at % 2 === 0 ? keys : keys.toReversed();
        for (let n = 0; n < 30; n++) await Promise.all(order.map((key) => limiter.take(key)));
      }),
    );
    assert.doesNotMatch(database().log.slice(before), /deadlock/);
    for (const key of [keys[0], keys[299]]) {
      assert.equal((await all[0].limiter.look(key)).minute.remaining, RICH.perMinute - 120);
    }
  });

  it(`what one has acknowledged, the next request at the other sees: ${READS} writes, none old`, async (t) => {
    const [a, b] = await replicas(t, 2);
    const key = await setKey(a.store, RICH);
    for (let n = 0; n < READS; n++) {
      const id = await addPet(a.store, `n ${n}`);
      await b.limiter.take(key);
      assert.equal(b.store.read.pets.get(id)?.name, `n ${n}`);
    }
  });

  it("a key's new limits are in force everywhere with the commit, and what it has used stays used", async (t) => {
    const [a, b] = await replicas(t, 2);
    const key = await setKey(a.store, { perMinute: 5, perDay: 10 });
    for (let n = 0; n < 3; n++) await b.limiter.take(key);
    assert.deepEqual(b.store.read.keys.get(key.id), key);
    await setKey(a.store, { ...key, perMinute: 4 });
    const { verdict, minute } = await b.limiter.take(key);
    assert.deepEqual([verdict, minute.limit, minute.remaining], ['admitted', 4, 0]);
    assert.equal((await b.limiter.take(key)).verdict, 'limited');
  });

  it('a replica that knows another history, or one that was trimmed, ends before it answers anybody', async (t) => {
    const [a, b, c] = await replicas(t, 3);
    const key = await setKey(a.store, RICH);
    for (const { limiter } of [b, c]) await limiter.fresh();
    await addPet(a.store, 'x');
    await c.limiter.fresh();
    const schema = `s${schemas}`;
    await database().query(`UPDATE ${schema}.head SET id = 'x' || id`);
    await assert.rejects(addPet(a.store, 'y'), /head of the log does not fit/);
    // b stands at batch 1 and c at 2; a is closed, as whoever lost the history would be.
    await a.close();
    await database().query(`UPDATE ${schema}.log SET id = 'other' WHERE batch = 2;
      UPDATE ${schema}.head SET id = 'other'; DELETE FROM ${schema}.log WHERE batch = 1`);
    await assert.rejects(c.limiter.take(key), /another one/);
    await assert.rejects(addPet(b.store, 'y'), /not there|another one/); // its heartbeat may have brought it to 2
    assert.ok(b.fatal.length > 0 && c.fatal.length > 0);
  });

  it('a full disk refuses writes as full, and what cannot be counted as unavailable; then it goes on', async (t) => {
    const [{ store, limiter }] = await replicas(t, 1);
    const key = await setKey(store, RICH);
    const schema = `s${schemas}`;
    const fill = (event: string) =>
      database().query(`CREATE TRIGGER no_room BEFORE ${event}
      EXECUTE FUNCTION ${schema}.no_room()`);
    await database().query(`CREATE FUNCTION ${schema}.no_room() RETURNS trigger LANGUAGE plpgsql AS
      $$BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END$$`);
    await fill(`INSERT ON ${schema}.log`);
    await assert.rejects(addPet(store, 'x'), { failure: 'full' });
    await limiter.take(key);
    await fill(`UPDATE ON ${schema}.limits`);
    await assert.rejects(limiter.take(key), { failure: 'unavailable' });
    await database().query(`DROP FUNCTION ${schema}.no_room CASCADE`);
    assert.equal(await addPet(store, 'y'), 1);
    assert.equal((await limiter.take(key)).verdict, 'admitted');
  });
});
