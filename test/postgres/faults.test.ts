/** Faults of servers and database, with a synchronous standby: nothing acknowledged is lost, doubled or given back. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { afterEach, beforeEach, describe, it, type TestContext } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { digestOf, makeKey } from '../../src/access/keys.ts';
import { Link } from '../../src/postgres/link.ts';
import { serverOf } from '../../src/postgres/server.ts';
import { openSchema } from '../../src/postgres/tables.ts';
import { columnsOf } from '../../src/store/changes.ts';
import { command, program, serving, temporary } from '../program.ts';
import { checked, pet } from '../store/opened.ts';
import { Database, missing } from './database.ts';
import { addPet, RICH, replica, setKey, until } from './replicas.ts';

/** Each way in turn: SIGTERM, SIGKILL, the end of its backend. The first of each way surely comes in the middle. */
const RESTORES = Number(process.env.FAULTS_SCALE ?? 1) > 1 ? 12 : 6;
const HELD_RESTORES = 3;
const RESTORED = 7_000;
/** So long a restore of them takes, about, once it has begun to write. */
const MOMENT_MS = 60;
const KILLS = Number(process.env.FAULTS_SCALE ?? 1) > 1 ? 10 : 2;

describe('faults of the database', { skip: missing }, () => {
  let servers: Database[] = [];
  beforeEach(async () => {
    servers = await Database.cluster(3);
    for (const server of servers) await server.start();
  });
  afterEach(async () => {
    for (const server of servers) await server.stop();
  });

  async function replicated(t: TestContext, standbys: string) {
    const [primary, ...others] = servers;
    await primary.reload({ synchronous_standby_names: standbys });
    const url = primary.url('shop', ...others);
    const replicas = [await replica(t, url), await replica(t, url)];
    const key = await setKey(replicas[0].store, RICH);
    for (const { limiter } of replicas) await limiter.fresh();
    return { url, replicas, key };
  }

  it(`kill -9 of server and database, ${KILLS} times; then a standby is promoted, and its standby`, async (t) => {
    const [primary, standby, last] = servers;
    const { url, replicas } = await replicated(t, 'FIRST 1 (standby1)');
    const text = makeKey('production');
    const key = await setKey(replicas[0].store, { ...RICH, secrets: [{ digest: digestOf(text) }] });
    const start = () => serving(t, ['--store', url]);
    const programs = [await start(), await start()];
    const acknowledged = new Map<string, number>();
    const told = new Set<string>();
    let admitted = 0;
    let isOver = false;
    t.after(() => (isOver = true));
    /** Asks again under the same Idempotency-Key, at whichever server answers. */
    const client = async (n: number) => {
      for (let made = 0, tries = 0; !isOver; tries++) {
        const name = `${n}-${made}`;
        const headers = {
          authorization: `Bearer ${text}`,
          'content-type': 'application/json',
          'idempotency-key': name,
        };
        const init = { method: 'POST', headers, body: JSON.stringify({ name, categoryId: 1 }) };
        const reply = await fetch(`${programs[(n + tries) % 2].url}/pets`, init).catch(() => wait(20));
        if (!reply) continue;
        const { id, code } = (await reply.json()) as { id: number; code?: string };
        told.add(`${code ?? 'made'} ${reply.headers.get('retry-after') ?? ''}`.trim());
        if (reply.headers.get('x-ratelimit-limit') === String(RICH.perMinute)) admitted++;
        if (reply.status !== 201) continue;
        acknowledged.set(name, id);
        made++;
      }
    };
    const clients = Promise.all([0, 1, 2, 3, 4, 5, 6, 7].map(client));
    /** Resolves when fifty more are acknowledged. */
    const goesOn = (wanted = acknowledged.size + 50) => until(() => acknowledged.size >= wanted);
    const status = async (path: string) => (await fetch(new URL(path, programs[0].url))).status;
    for (let kill = 0; kill < KILLS; kill++) {
      await goesOn();
      await programs[kill % 2].kill();
      programs[kill % 2] = await start();
      await goesOn();
      await primary.kill();
      await until(async () => told.has('unavailable 1') && (await status('/readyz')) === 503);
      assert.equal(await status('/healthz'), 200);
      await primary.start();
    }
    await goesOn();
    await last.follow(standby);
    await standby.reload({ synchronous_standby_names: 'FIRST 1 (standby2)' });
    await primary.kill();
    await standby.query('SELECT pg_promote()');
    await goesOn();
    await standby.kill();
    await last.query('SELECT pg_promote()');
    await goesOn();
    isOver = true;
    await clients;
    for (const one of told) assert.match(one, /^(made|unavailable 1|outcome_unknown|idempotency_in_flight( \d+)?)$/);

    await Promise.all(replicas.map(({ limiter }) => limiter.fresh()));
    for (const { store, fatal } of replicas) {
      const pets = store.read.pets.page(0, Number.MAX_SAFE_INTEGER).items;
      const ids = new Map(pets.map(({ name, id }) => [name, id]));
      assert.equal(ids.size, pets.length, 'something was made twice');
      assert.equal(pets.at(-1)?.id, pets.length, 'an id was left out');
      for (const [name, id] of acknowledged) assert.equal(ids.get(name), id, name);
      assert.deepEqual(fatal, []);
      assert.deepEqual(checked(store), checked(replicas[0].store));
    }
    const { limit, remaining } = (await replicas[0].limiter.look(key)).day;
    assert.ok(limit - remaining >= admitted, `${limit - remaining} counted of ${admitted} admitted`);
    for (const program of programs) assert.equal((await program.stop()).exit, 0);
  });

  it('a standby that lagged is promoted: the replicas end before they answer anybody', async (t) => {
    const [primary, standby] = servers;
    const { replicas, key } = await replicated(t, '');
    await addPet(replicas[0].store, 'with the standby');
    const [{ lsn }] = await primary.query('SELECT pg_current_wal_flush_lsn() AS lsn');
    const has = () => standby.query(`SELECT 1 WHERE pg_last_wal_replay_lsn() >= '${lsn}'`);
    await until(async () => (await has()).length > 0);
    await standby.stop();
    await addPet(replicas[1].store, 'lost');
    for (const { limiter } of replicas) await limiter.fresh();
    await primary.kill();
    await standby.start();
    await standby.query('SELECT pg_promote()');
    const answers = replicas.flatMap(({ store, limiter }) => [limiter.take(key), addPet(store, 'never')]);
    for (const { status } of await Promise.allSettled(answers)) assert.equal(status, 'rejected');
    for (const { fatal } of replicas) assert.match(String(fatal[0]), /not the one this replica has read/);
    const again = await replica(t, standby.url('shop')); // started anew, it has the history that is left
    assert.equal(await addPet(again.store, 'second'), 2);
  });

  /** Makes an empty store of which one table is locked until what this returns is called. */
  async function heldTable(server: Database, schema: string, table: string): Promise<() => Promise<void>> {
    const link = new Link(serverOf(server.url(schema)), 'test');
    await openSchema(link, schema);
    link.close();
    const holder = await server.client();
    await holder.query(`BEGIN; LOCK TABLE "${schema}".${table}`);
    return () => holder.end();
  }

  it(`a restore is ended, or its backend, ${RESTORES} times: whole or nothing, and typed again it completes`, async (t) => {
    const [primary, standby] = servers;
    const { replicas } = await replicated(t, 'FIRST 1 (standby1)');
    const pets = columnsOf(Array.from({ length: RESTORED }, (_, n) => ({ ...pet(0, `animal ${n}`) })));
    await replicas[0].store.write(() => ({ op: 'fill', at: 1, categories: [], pets }));
    const backup = path.join(await temporary(t), 'backup');
    const { digest } = await replicas[1].upkeep.backup(backup);
    const [file, ...words] = await command();
    const restoring =
      "FROM pg_stat_activity WHERE application_name LIKE 'petstore restore%' AND xact_start IS NOT NULL";
    const ends = { SIGTERM: 0, SIGKILL: 0, backend: 0 };
    let [whole, nothing] = [0, 0];
    for (let n = 0; n < RESTORES; n++) {
      const target = `restored_${n}`;
      // Its animals are written by then, and the allowances, which a restore writes last, have to wait.
      const isHeld = n < HELD_RESTORES;
      const release = isHeld ? await heldTable(primary, target, 'limits') : undefined;
      const at = isHeld ? `${restoring} AND wait_event_type = 'Lock'` : restoring;
      const how = (Object.keys(ends) as (keyof typeof ends)[])[n % 3];
      const child = spawn(file, [...words, 'restore', backup, '--store', primary.url(target, standby)]);
      const ended = once(child, 'close');
      await until(async () => child.exitCode !== null || (await primary.query(`SELECT 1 ${at}`)).length > 0);
      if (!isHeld) await wait(MOMENT_MS * Math.random());
      if (how === 'backend') await primary.query(`SELECT pg_terminate_backend(pid) ${at}`);
      else child.kill(how);
      await ended;
      await release?.();
      ends[how]++;
      await addPet(replicas[n % 2].store, 'beside'); // which nothing of this disturbs
      const again = await program(['restore', backup, '--store', primary.url(target, standby), '--json']);
      const isDone = again.exit === 0;
      assert.ok(isDone || (!isHeld && /is not empty/.test(again.stderr)), again.stderr);
      if (isDone) nothing++;
      else whole++;
      for (const host of [primary.url(target, standby), primary.url(target)]) {
        const one = await replica(t, host);
        assert.equal((await one.upkeep.verify()).digest, digest, `${how}: ${again.stderr}`);
        await one.close();
      }
    }
    t.diagnostic(`${JSON.stringify(ends)}: ${nothing} times nothing, ${whole} times all`);
    await Promise.all(replicas.map(({ limiter }) => limiter.fresh()));
    assert.deepEqual(checked(replicas[0].store), checked(replicas[1].store));
  });

  it('without its standby the primary answers nobody, and goes on when the standby is back', async (t) => {
    const [primary, standby] = servers;
    const { replicas, key } = await replicated(t, 'FIRST 1 (standby1)');
    const [{ store, ready, count }, other] = replicas;
    assert.equal(await addPet(store, 'before'), 1);
    await standby.stop();
    const write = addPet(store, 'meanwhile');
    const began = performance.now();
    for (const one of replicas) await assert.rejects(one.limiter.take(key), { failure: 'unavailable' });
    assert.ok(performance.now() - began < 30_000);
    assert.ok(!ready());
    // Somebody cancels what waits: it stands in the log, but nobody may be told so.
    await primary.query(`SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`);
    await until(() => count('doubts_total') > 0 || store.read.counts().pets > 1);
    assert.equal(store.read.counts().pets, 1);
    await standby.start();
    assert.equal(await write, 2);
    assert.equal(count('doubts_total'), 1);
    await other.limiter.fresh();
    assert.equal(other.store.read.pets.get(2)?.name, 'meanwhile');
    assert.deepEqual(checked(store), checked(other.store));
  });
});
