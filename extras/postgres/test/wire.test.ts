/** The connection to the database is cut before and behind every message: each write is kept once, or refused. */
import assert from 'node:assert/strict';
import { it, type TestContext } from 'node:test';
import type { StoreError } from '../../../src/store/model.ts';
import { backedUp, proofOf, streamed } from '../../../test/store/contract.ts';
import { restoreIntoPostgres } from '../commands.ts';
import { concurrentlyOnDatabase } from './database.ts';
import { WireProxy } from './proxy.ts';
import { addKey, addPet, petsOf, replica, until, works } from './replicas.ts';

/** More messages than the longest conversation has, from a connection's first byte to the end of a write. */
const MESSAGES = 60;
const IS_LONG = Number(process.env.FAULTS_SCALE ?? 1) > 1;
/** Every how manieth message is cut at, from another one on in each run. A restore has more messages. */
const [EVERY, STEP] = IS_LONG ? [1, 1] : [5, 20];
/** Those about its COMMIT, each of which is tried. */
const LAST_MESSAGES = 8;

concurrentlyOnDatabase('the wire to the database', (database) => {
  async function behindProxy(t: TestContext, schema: string) {
    const proxy = new WireProxy(database().port);
    const port = await proxy.listen(t);
    return { proxy, ...(await replica(t, database().url(schema, port))) };
  }

  /** `kept`, or how it failed. */
  const ending = (write: unknown) =>
    Promise.resolve(write).then(
      () => 'kept',
      (error) => error.failure ?? error.stack,
    );

  it('may be cut at any message', async (t) => {
    const { proxy, ...behind } = await behindProxy(t, 'cut');
    const beside = await replica(t, database().url('cut'));
    const key = await addKey(behind.store);
    const ends: Record<string, number> = { kept: 0, unavailable: 0 };
    const first = 1 + (Date.now() % EVERY);
    let [tries, admitted, cuts] = [0, 0, 0];
    const expected: string[] = [];
    for (proxy.how of ['before', 'behind'] as const) {
      for (let message = first; message <= MESSAGES; message += EVERY) {
        proxy.left = message;
        for (let round = 0; round < 2; round++) {
          const [one, other] = [`behind ${++tries}`, `beside ${tries}`];
          const writes = [ending(addPet(behind.store, one)), ending(addPet(beside.store, other))];
          const take = ending(behind.limiter.take(key));
          const [a, b, taken] = await Promise.all([...writes, take]);
          ends[a]++;
          assert.equal(b, 'kept');
          expected.push(other);
          if (a === 'kept') expected.push(one);
          if (taken === 'kept') admitted++;
          else assert.equal(taken, 'unavailable');
        }
        if (proxy.left <= 0) cuts++;
        await beside.limiter.refresh!();
        const names = petsOf(beside.store).map(({ name }) => name);
        assert.deepEqual(names.sort(), expected.sort(), `cut at message ${message}`);
      }
    }
    assert.ok(cuts > MESSAGES / EVERY, `${cuts} cuts`);
    assert.ok(behind.count('doubts_total') > 0, 'no outcome was in doubt');
    assert.ok(ends.kept > 0 && ends.unavailable > 0, JSON.stringify(ends));
    proxy.left = Number.POSITIVE_INFINITY;
    await until(() => works(behind.limiter.refresh!()));
    assert.deepEqual(petsOf(behind.store), petsOf(beside.store));
    assert.deepEqual(
      petsOf(behind.store).map(({ id }) => id),
      expected.map((_, at) => at + 1),
    );
    const { limit, remaining } = (await beside.limiter.look(key)).day;
    assert.ok(limit - remaining >= admitted, `${limit - remaining} counted of ${admitted} admitted`);
    assert.deepEqual([behind.fatal, beside.fatal], [[], []]);
    await proofOf(beside);
    t.diagnostic(`${cuts} cuts: ${JSON.stringify(ends)}, ${behind.count('doubts_total')} in doubt`);
  });

  it('may be cut at any message of a restore: nothing is restored, or all, and it can be typed again', async (t) => {
    const source = await replica(t, database().url('source'));
    for (let n = 0; n < 6; n++) await addKey(source.store, { secrets: [{ digest: `${n}`.repeat(60) }] });
    const { pieces, proof } = await backedUp(source);
    const proxy = new WireProxy(database().port);
    const port = await proxy.listen(t);
    await (await replica(t, database().url('restored'))).close(); // the tables are there: that is not what is tried
    proxy.left = Number.MAX_SAFE_INTEGER;
    await restoreIntoPostgres(database().url('restored', port), streamed(pieces));
    const messages = Number.MAX_SAFE_INTEGER - proxy.left;
    const places = Array.from({ length: messages }, (_, at) => at + 1);
    const first = Date.now() % STEP;
    const isTried = (message: number) => message % STEP === first || message > messages - LAST_MESSAGES;
    let [all, nothing] = [0, 0];
    for (const message of places.filter(isTried)) {
      const schema = `restored_${message}`;
      await (await replica(t, database().url(schema))).close();
      Object.assign(proxy, { left: message, how: message % 2 === 0 ? 'ended' : 'before' });
      const tried = await restoreIntoPostgres(database().url(schema, port), streamed(pieces)).then(
        () => 'done',
        ({ failure, message }: StoreError) => `${failure}: ${message}`,
      );
      proxy.left = Number.POSITIVE_INFINITY;
      const again = await restoreIntoPostgres(database().url(schema), streamed(pieces)).then(
        (proof) => proof.digest,
        (error: Error) => error.message,
      );
      if (again === proof.digest) {
        nothing++;
        continue;
      }
      all++;
      assert.match(again, /is not empty/, `cut at message ${message}: ${tried}`);
      assert.match(tried, /^(?:done|unknown)/, 'nobody is told that nothing was restored');
      const engine = await replica(t, database().url(schema));
      assert.equal((await proofOf(engine)).digest, proof.digest, `cut at message ${message}: ${tried}`);
      await engine.close();
    }
    assert.ok(nothing > 1 && all > 1, `${nothing} times nothing, ${all} times all`);
  });

  it('may bring the answer to the COMMIT of a restore after replicas have counted: it is proved before that', async (t) => {
    const source = await replica(t, database().url('counted'));
    const key = await addKey(source.store);
    await source.limiter.take(key);
    const { pieces, proof } = await backedUp(source);
    const serving = await replica(t, database().url('counting'));
    const proxy = new WireProxy(database().port);
    const port = await proxy.listen(t);
    proxy.holdsCommit = true;
    const restoring = restoreIntoPostgres(database().url('counting', port), streamed(pieces));
    await until(() => works(serving.limiter.take(key)));
    proxy.release();
    assert.deepEqual(await restoring, proof);
    assert.notEqual((await proofOf(serving)).digest, proof.digest);
  });

  it('may bring the answer to a COMMIT after the batches that followed it: no reader sees a row go back', async (t) => {
    const { proxy, store, limiter } = await behindProxy(t, 'late');
    const beside = await replica(t, database().url('late'));
    const name = (of: typeof store, name: string) => of.write((tx) => tx.categories.put({ id: 1, name }));
    await name(store, 'first');
    proxy.holdsCommit = true;
    const write = name(store, 'second');
    await until(async () => {
      await beside.limiter.refresh!();
      return beside.store.read.categories.get(1)?.name === 'second';
    });
    await name(beside.store, 'third');
    await limiter.refresh!();
    assert.equal(store.read.categories.get(1)?.name, 'third');
    proxy.release();
    await write;
    assert.equal(store.read.categories.get(1)?.name, 'third');
  });

  it('may be down while the tail is trimmed: all rows are read anew', async (t) => {
    const { proxy, ...away } = await behindProxy(t, 'away');
    const other = await replica(t, database().url('away'));
    const names = ['before', 'meanwhile', 'and again'];
    for (const [at, name] of names.entries()) {
      await addPet(other.store, name);
      if (at > 0) continue;
      await other.store.write((tx) => tx.categories.put({ id: 1, name: 'gone meanwhile' }));
      await away.limiter.refresh!();
      proxy.isDown = true;
    }
    await other.store.write((tx) => tx.categories.delete(1));
    await database().query("UPDATE away.changes SET at = now() - interval '2 hours'");
    assert.equal(away.store.read.categories.size, 1);
    await other.compact();
    proxy.isDown = false;
    await until(() => away.store.read.pets.size === 3 || away.fatal.length > 0);
    assert.deepEqual([petsOf(away.store), away.store.read.categories.size], [petsOf(other.store), 0]);
    assert.equal(await addPet(away.store, 'next'), 4);
    assert.deepEqual(away.fatal, []);
  });

  it('may be down while the tail is trimmed: others write while all rows are read anew', async (t) => {
    const { proxy, ...away } = await behindProxy(t, 'busy');
    const other = await replica(t, database().url('busy'));
    const name = (of: typeof away.store, name: string) => of.write((tx) => tx.categories.put({ id: 1, name }));
    const trim = async () => {
      await database().query("UPDATE busy.changes SET at = now() - interval '2 hours'");
      await other.compact();
    };
    proxy.isDown = true;
    for (const text of ['first', 'second']) await name(other.store, text);
    await trim();
    const client = await database().client();
    t.after(() => client.end());
    await client.query('BEGIN; LOCK TABLE busy.pets'); // it holds up who reads all rows
    const isThere = async (lock: string) => (await database().query(`SELECT FROM pg_locks WHERE ${lock}`)).length > 0;
    proxy.isDown = false;
    await until(() => isThere("relation = 'busy.pets'::regclass AND NOT granted"));
    for (const text of ['third', 'fourth']) await name(other.store, text);
    await trim();
    // Its transaction may wait for two seconds, which a busy machine may exceed: then the write is refused, and sent again.
    const write = name(away.store, 'last').catch((error) => {
      assert.ok(['unavailable', 'unknown'].includes(error.failure), error);
      return name(away.store, 'last');
    });
    await until(() => isThere("relation = 'busy.head'::regclass AND mode = 'RowShareLock'")); // that of the write
    await client.query('ROLLBACK');
    await write;
    await other.limiter.refresh!();
    for (const { store, fatal } of [away, other]) {
      assert.deepEqual([store.read.categories.get(1)?.name, fatal], ['last', []]);
    }
  });

  const silentFrom = async (t: TestContext, message: number) => {
    const { proxy, ...engine } = await behindProxy(t, `silent_${message}`);
    const { store, limiter, ready } = engine;
    const key = await addKey(store);
    await limiter.refresh!(); // on a loaded machine the last answer may be old
    assert.equal(ready(), true);
    Object.assign(proxy, { left: message, how: 'silent' });
    const write = ending(addPet(store, 'perhaps'));
    await until(() => proxy.isSilent);
    const began = performance.now();
    assert.equal(await ending(limiter.take(key)), 'unavailable');
    assert.equal(ready(), false);
    const outcome = await write;
    t.diagnostic(`${outcome} after ${Math.round(performance.now() - began)} ms`);
    Object.assign(proxy, { left: Number.POSITIVE_INFINITY, isSilent: false });
    await until(() => works(limiter.refresh!()));
    const isKept = petsOf(store).some(({ name }) => name === 'perhaps');
    assert.ok(['kept', 'unknown', 'unavailable'].includes(outcome), outcome);
    if (outcome !== 'unknown') assert.equal(isKept, outcome === 'kept');
    assert.equal(await addPet(store, 'next'), isKept ? 2 : 1);
    proxy.isSilent = true;
    const closing = performance.now();
    await engine.close();
    assert.ok(performance.now() - closing < 10_000, 'a silent database keeps nobody from ending');
  };

  it('may carry nothing any more from some message on: 503, and all is well afterwards', async (t) => {
    await Promise.all([10, 25, 40].map((message) => silentFrom(t, message)));
  });
});
