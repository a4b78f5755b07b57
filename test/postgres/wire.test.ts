/** The connection to the database is cut before and behind every message: each write is kept once, or refused. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { checked } from '../store/opened.ts';
import { Database, missing } from './database.ts';
import { WireProxy } from './proxy.ts';
import { addPet, replica, setKey } from './replicas.ts';

/** The longest conversation from a connection's first byte on, and every how manieth message of it is cut at. */
const MESSAGES = 60;
const EVERY = Number(process.env.FAULTS_SCALE ?? 1) > 1 ? 1 : 4;

describe('the wire to the database', { skip: missing }, () => {
  it('may be cut at any message', async (t) => {
    const database = await Database.start();
    t.after(() => database.stop());
    const proxy = new WireProxy(database.port);
    t.after(() => proxy.close());
    const port = await proxy.listen();
    const behind = await replica(t, `postgres://petstore@127.0.0.1:${port}/postgres?schema=cut`);
    const beside = await replica(t, database.url('cut'));
    const key = await setKey(behind.store, { perMinute: 1_000_000, perDay: 1_000_000 });
    await beside.limiter.fresh();
    const first = 1 + (Date.now() % EVERY);
    let made = 0;
    let cuts = 0;
    for (const passesLast of [false, true]) {
      for (let message = first; message <= MESSAGES; message += EVERY) {
        proxy.cutAt(message, passesLast);
        for (let round = 0; round < 2; round++) {
          const one = addPet(behind.store, `behind ${made}`);
          const other = addPet(beside.store, `beside ${made}`);
          const take = behind.limiter.take(key).catch((error) => error.failure);
          const [a, b, taken] = await Promise.all([one, other, take]);
          assert.ok(a !== b && (taken === 'unavailable' || taken.verdict === 'admitted'), `${a} ${b} ${taken}`);
          made += 2;
        }
        if (proxy.wasCut) cuts++;
        await beside.limiter.fresh();
        await behind.limiter.fresh().catch(() => behind.limiter.fresh()); // the cut may come as late as here
        assert.equal(behind.store.read.counts().pets, made, `cut at message ${message}`);
      }
    }
    assert.ok(cuts > MESSAGES / EVERY, `${cuts} cuts`);
    assert.ok(behind.journal.counts.doubts > 0, 'no outcome was unknown');
    assert.deepEqual(checked(behind.store), checked(beside.store));
    assert.deepEqual([behind.fatal, beside.fatal], [[], []]);
  });

  it('may carry nothing any more: 503 after two seconds, and another connection afterwards', async (t) => {
    const database = await Database.start();
    t.after(() => database.stop());
    const proxy = new WireProxy(database.port);
    t.after(() => proxy.close());
    const silenced = await replica(t, `postgres://petstore@127.0.0.1:${await proxy.listen()}/postgres?schema=mute`);
    const key = await setKey(silenced.store, { perMinute: 100, perDay: 100 });
    await silenced.limiter.fresh();
    assert.ok(silenced.limiter.isReady());
    proxy.isSilent = true;
    const began = performance.now();
    const write = addPet(silenced.store, 'kept in the end');
    await assert.rejects(silenced.limiter.take(key), { failure: 'unavailable' });
    const waited = performance.now() - began;
    assert.ok(waited > 1_900 && waited < 20_000, `${waited} ms`);
    assert.ok(!silenced.limiter.isReady());
    proxy.isSilent = false;
    assert.equal(await write, 1);
    assert.equal(silenced.journal.counts.doubts, 1);
  });
});
