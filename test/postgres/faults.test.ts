/** Faults of the database under load, with a synchronous standby: nothing acknowledged is lost, doubled or given back. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it, type TestContext } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import type { ApiKey } from '../../src/store/model.ts';
import { checked } from '../store/opened.ts';
import { Database, missing } from './database.ts';
import { addPet, type Replica, replica, setKey } from './replicas.ts';

const SCALE = Number(process.env.FAULTS_SCALE ?? 1);
const KILLS = SCALE > 1 ? 5 : 2;
const RICH = { perMinute: 1_000_000, perDay: 10_000_000 };

/** Writers at every replica that ask again, under the same Idempotency-Key, until they are answered. */
class Load {
  readonly acknowledged = new Map<string, number>();
  admitted = 0;
  #stop = false;
  readonly #done: Promise<unknown>;

  constructor(name: string, replicas: Replica[], key: ApiKey) {
    const writers = replicas.flatMap((one, at) => [0, 1, 2].map((n) => this.#write(`${name} ${at} ${n}`, one, key)));
    this.#done = Promise.all(writers);
  }

  async #write(name: string, { store, limiter }: Replica, key: ApiKey): Promise<void> {
    for (let n = 0; !this.#stop; n++) {
      for (let isDone = false; !isDone && !this.#stop; ) {
        try {
          if ((await limiter.take(key)).verdict === 'admitted') this.admitted++;
          this.acknowledged.set(`${name} ${n}`, await addPet(store, `${name} ${n}`, `${name} ${n}`));
          isDone = true;
        } catch (error) {
          assert.match((error as { failure: string }).failure, /^(unavailable|unknown)$/, String(error));
          await wait(20);
        }
      }
    }
  }

  /** Resolves when so many more are acknowledged. */
  async goesOn(more = 20): Promise<void> {
    for (const wanted = this.acknowledged.size + more; this.acknowledged.size < wanted; ) await wait(5);
  }

  async end(): Promise<void> {
    this.#stop = true;
    await this.#done;
  }
}

async function nothingLost(replicas: Replica[], loads: Load[], key: ApiKey): Promise<void> {
  await Promise.all(replicas.map(({ limiter }) => limiter.fresh()));
  for (const { store, fatal } of replicas) {
    const pets = store.read.pets.page(0, Number.MAX_SAFE_INTEGER).items;
    const ids = new Map(pets.map(({ name, id }) => [name, id]));
    assert.equal(ids.size, pets.length, 'something was made twice');
    assert.equal(pets.at(-1)?.id, pets.length, 'an id was left out');
    for (const { acknowledged } of loads) for (const [name, id] of acknowledged) assert.equal(ids.get(name), id, name);
    assert.deepEqual(fatal, []);
    assert.deepEqual(checked(store), checked(replicas[0].store));
  }
  const { day } = await replicas[0].limiter.look(key);
  const admitted = loads.reduce((sum, load) => sum + load.admitted, 0);
  assert.ok(day.limit - day.remaining >= admitted, `${day.limit - day.remaining} counted of ${admitted} admitted`);
}

describe('faults of the database', { skip: missing }, () => {
  let servers: Database[] = [];
  beforeEach(async () => {
    servers = await Database.cluster(3);
    for (const server of servers) await server.start();
  });
  afterEach(async () => {
    for (const server of servers) await server.stop();
  });

  async function serving(t: TestContext, standbys: string) {
    const [primary, ...others] = servers;
    await primary.reload({ synchronous_standby_names: standbys });
    const url = primary.url('shop', ...others);
    const replicas = [await replica(t, url), await replica(t, url)];
    const key = await setKey(replicas[0].store, RICH);
    for (const { limiter } of replicas) await limiter.fresh();
    return { replicas, key };
  }

  it(`kill -9 and restart, ${KILLS} times; then the standby is promoted, and that one's standby`, async (t) => {
    const [primary, standby, last] = servers;
    const { replicas, key } = await serving(t, 'FIRST 1 (standby1)');
    const loads = [new Load('kill', replicas, key)];
    for (let kill = 0; kill < KILLS; kill++) {
      await loads[0].goesOn();
      await primary.kill();
      await wait(100);
      await primary.start();
    }
    await loads[0].goesOn();
    await loads[0].end();
    await nothingLost(replicas, loads, key);

    loads.push(new Load('promotion', replicas, key));
    await loads[1].goesOn();
    await last.followInstead(standby);
    await standby.reload({ synchronous_standby_names: 'FIRST 1 (standby2)' });
    await primary.kill();
    await standby.promote();
    await loads[1].goesOn();
    await standby.kill();
    await last.promote();
    await loads[1].goesOn();
    await loads[1].end();
    await nothingLost(replicas, loads, key);
  });

  it('a standby that lagged is promoted: the replicas end before they answer anybody', async (t) => {
    const [primary, standby] = servers;
    const { replicas, key } = await serving(t, '');
    await addPet(replicas[0].store, 'with the standby');
    const [{ lsn }] = await primary.query('SELECT pg_current_wal_flush_lsn() AS lsn');
    const has = () => standby.query(`SELECT 1 WHERE pg_last_wal_replay_lsn() >= '${lsn}'`);
    while ((await has()).length === 0) await wait(20);
    await standby.stop();
    await addPet(replicas[1].store, 'lost');
    for (const { limiter } of replicas) await limiter.fresh();
    await primary.kill();
    await standby.start();
    await standby.promote();
    const answers = replicas.flatMap(({ store, limiter }) => [limiter.take(key), addPet(store, 'never')]);
    for (const { status } of await Promise.allSettled(answers)) assert.equal(status, 'rejected');
    for (const { fatal } of replicas) assert.match(String(fatal[0]), /not the one this replica has read/);
    const again = await replica(t, standby.url('shop')); // started anew, it has the history that is left
    assert.equal(await addPet(again.store, 'second'), 2);
  });

  it('without its standby the primary answers nobody, and goes on when the standby is back', async (t) => {
    const [primary, standby] = servers;
    const { replicas, key } = await serving(t, 'FIRST 1 (standby1)');
    const [{ store, limiter, journal }, other] = replicas;
    assert.equal(await addPet(store, 'before'), 1);
    await standby.stop();
    const write = addPet(store, 'meanwhile');
    const began = performance.now();
    for (const one of replicas) await assert.rejects(one.limiter.take(key), { failure: 'unavailable' });
    assert.ok(performance.now() - began < 30_000);
    assert.ok(!limiter.isReady());
    // Somebody cancels what waits: it stands in the log, but nobody may be told so.
    await primary.query(`SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`);
    await wait(200);
    assert.equal(store.read.counts().pets, 1);
    await standby.start();
    assert.equal(await write, 2);
    assert.equal(journal.counts.doubts, 1);
    await other.limiter.fresh();
    assert.equal(other.store.read.pets.get(2)?.name, 'meanwhile');
    assert.deepEqual(checked(store), checked(other.store));
  });
});
