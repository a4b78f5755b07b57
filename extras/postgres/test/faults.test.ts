/** Faults of processes and of the database: nothing acknowledged is lost, doubled or given back. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once as event } from 'node:events';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { describe, it, type TestContext } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { proofOf } from '../../../test/store/contract.ts';
import { temporary } from '../../program.ts';
import { Database, missing } from './database.ts';
import { WireProxy } from './proxy.ts';
import { addKey, addPet, petsOf, type Replica, replica, until } from './replicas.ts';

/** How many times more than in the ordinary run. */
const SCALE = Number(process.env.FAULTS_SCALE ?? 1);
const [KILLS, STOPS] = [2 * SCALE, Math.ceil(SCALE / 3)];
const CHILD = fileURLToPath(new URL('child.ts', import.meta.url));
const REQUIRE = "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);";

/** `child.ts` as one file, which starts in a quarter of the time. */
async function bundled(t: TestContext): Promise<string> {
  const outfile = path.join(await temporary(t), 'child.mjs');
  const options = { entryPoints: [CHILD], outfile, bundle: true, external: ['pg-native'], banner: { js: REQUIRE } };
  await build({ ...options, platform: 'node', format: 'esm' });
  return outfile;
}

class Child {
  readonly process: ChildProcess;
  readonly kept = new Map<string, number>();
  readonly refused = new Set<string>();
  admitted = 0;
  fatal = '';
  readonly closed: Promise<unknown>;

  constructor(t: Pick<TestContext, 'after'>, file: string, url: string, writers: number, keyId: number) {
    const words = [file, url, String(writers), String(keyId)];
    this.process = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'inherit'] });
    this.closed = event(this.process, 'close');
    t.after(() => this.process.kill('SIGKILL'));
    createInterface({ input: this.process.stdout! }).on('line', (line) => {
      const [what, ...words] = line.split(' ');
      if (what === 'kept') this.kept.set(words[0], Number(words[1]));
      else if (what === 'refused') this.refused.add(words[0]);
      else if (what === 'admitted') this.admitted++;
      else if (what === 'fatal') this.fatal = words.join(' ');
    });
  }

  async kill(): Promise<void> {
    this.process.kill('SIGKILL');
    await this.closed;
  }

  /** Resolves when so many more writes are acknowledged. */
  async goesOn(more = 20): Promise<void> {
    const wanted = this.kept.size + more;
    await until(() => this.kept.size >= wanted || this.process.exitCode !== null);
    assert.equal(this.process.exitCode, null, this.fatal);
  }
}

// Most of them wait most of the time.
describe('faults of processes and of the database', { skip: missing, concurrency: true }, () => {
  /** A primary and its standby, until the test ends. */
  async function cluster(t: TestContext): Promise<Database[]> {
    const servers = await Database.cluster(2);
    t.after(async () => {
      for (const server of servers) await server.stop();
    });
    for (const server of servers) await server.start();
    return servers;
  }

  /** Each acknowledged write is there once; ids have no gaps; what was admitted is counted. */
  async function checkAll(children: Child[], { store, limiter, backup }: Replica): Promise<void> {
    await limiter.refresh!();
    const pets = petsOf(store);
    const ids = new Map(pets.map(({ name, id }) => [name, id]));
    assert.equal(ids.size, pets.length, 'something was made twice');
    assert.equal(pets.at(-1)?.id, pets.length, 'an id was left out');
    let admitted = 0;
    for (const child of children) {
      for (const [name, id] of child.kept) assert.equal(ids.get(name), id, name);
      admitted += child.admitted;
    }
    const { limit, remaining } = (await limiter.look(store.read.keys.get(1)!)).day;
    assert.ok(limit - remaining >= admitted, `${limit - remaining} counted of ${admitted} admitted`);
    await proofOf({ backup });
  }

  it(`kill -9 of replicas and of the database, ${KILLS} times; then a standby is promoted`, async (t) => {
    const [primary, standby] = await cluster(t);
    await primary.reload({ synchronous_standby_names: 'FIRST 1 (standby1)' });
    const proxy = new WireProxy(primary.port);
    const url = primary.url('shop', await proxy.listen(t));
    const looker = await replica(t, url);
    await addKey(looker.store);
    const all: Child[] = [];
    const file = await bundled(t);
    const start = () => {
      const child = new Child(t, file, url, 4, 1);
      all.push(child);
      return child;
    };
    const running = [start(), start()];
    const goOn = () => Promise.all(running.map((child) => child.goesOn()));
    for (let kill = 0; kill < KILLS; kill++) {
      await goOn();
      await wait(50 * Math.random());
      await running[kill % 2].kill();
      running[kill % 2] = start();
      await goOn();
      await primary.kill();
      await until(() => !looker.ready());
      await primary.start();
    }
    await goOn();
    await primary.kill();
    await standby.query('SELECT pg_promote()');
    proxy.target = standby.port;
    await goOn();
    for (const child of running) await child.kill();
    await until(() => looker.ready());
    await checkAll(all, looker);
    assert.deepEqual(looker.fatal, []);
    const refused = new Set(all.flatMap((child) => [...child.refused]));
    for (const one of refused) assert.match(one, /^(unavailable|unknown)$/);
    t.diagnostic(`${all.reduce((sum, { kept }) => sum + kept.size, 0)} acknowledged; refused: ${[...refused]}`);
  });

  it('a replica that is stopped in the middle of a batch holds up the others for two seconds at most', async (t) => {
    const [primary] = await cluster(t);
    const beside = await replica(t, primary.url('shop'));
    await addKey(beside.store);
    const child = new Child(t, await bundled(t), primary.url('shop'), 8, 1);
    await child.goesOn();
    for (let hits = 0; hits < STOPS; ) {
      child.process.kill('SIGSTOP');
      const began = performance.now();
      await addPet(beside.store, `beside ${hits} ${began}`);
      const waited = performance.now() - began;
      if (waited > 1_500) hits++; // it had locked the head; a lock that is held for four seconds is an error
      child.process.kill('SIGCONT');
      await child.goesOn();
    }
    await child.kill();
    await checkAll([child], beside);
  });

  it('a standby that lagged is promoted: the replicas end before they answer anybody', async (t) => {
    const [primary, standby] = await cluster(t);
    const proxy = new WireProxy(primary.port);
    const url = primary.url('shop', await proxy.listen(t));
    const replicas = [await replica(t, url), await replica(t, url)];
    const key = await addKey(replicas[0].store);
    await addPet(replicas[0].store, 'with the standby');
    const [{ lsn }] = await primary.query('SELECT pg_current_wal_flush_lsn() AS lsn');
    await until(async () => (await standby.query(`SELECT 1 WHERE pg_last_wal_replay_lsn() >= '${lsn}'`)).length > 0);
    await standby.stop();
    await addPet(replicas[1].store, 'lost');
    for (const { limiter } of replicas) await limiter.refresh!();
    await primary.kill();
    await standby.start();
    await standby.query('SELECT pg_promote()');
    const again = await replica(t, standby.url('shop')); // started anew, it has the history that is left
    assert.equal(await addPet(again.store, 'second'), 2);
    proxy.target = standby.port;
    const answers = replicas.flatMap(({ store, limiter }) => [limiter.take(key), addPet(store, 'never')]);
    for (const { status } of await Promise.allSettled(answers)) assert.equal(status, 'rejected');
    await until(() => replicas.every(({ fatal }) => fatal.length > 0));
    for (const { fatal } of replicas) assert.match(fatal[0].message, /not the one that this replica has read/);
    assert.equal(await addPet(again.store, 'third'), 3);
  });

  it('without its standby the primary answers nobody, and goes on when the standby is back', async (t) => {
    const [primary, standby] = await cluster(t);
    await primary.reload({ synchronous_standby_names: 'FIRST 1 (standby1)' });
    const [{ store, limiter, ready, count }, other] = [
      await replica(t, primary.url('shop')),
      await replica(t, primary.url('shop')),
    ];
    const key = await addKey(store);
    assert.equal(await addPet(store, 'before'), 1);
    await standby.stop();
    const write = addPet(store, 'meanwhile').then(String, (error) => error.failure);
    // Somebody cancels what waits: it stands in the table, but nobody may be told so.
    const cancel = `SELECT pg_cancel_backend(pid) FROM pg_stat_activity
      WHERE wait_event = 'SyncRep' AND application_name = 'petstore batches'`;
    await until(async () => (await primary.query(cancel)).length > 0);
    for (const one of [limiter, other.limiter]) {
      await assert.rejects(async () => one.take(key), { failure: 'unavailable' });
    }
    assert.equal(await write, 'unknown');
    assert.ok(count('doubts_total') > 0);
    await standby.start();
    await until(() => ready());
    const next = await addPet(store, 'next');
    await other.limiter.refresh!();
    assert.deepEqual(petsOf(other.store), petsOf(store));
    assert.equal(petsOf(store).length, next);
  });
});
