/** The engine on PostgreSQL as the program uses it: opened by URL, verified, compacted, moved to a directory and back. */
import assert from 'node:assert/strict';
import path from 'node:path';
import { it, type TestContext } from 'node:test';
import { systemClock as clock } from '../../src/clock.ts';
import type { Engine } from '../../src/engine.ts';
import { openPostgres, restorePostgres } from '../../src/postgres/engine.ts';
import { serverOf } from '../../src/postgres/server.ts';
import { backup, restore } from '../../src/store/file/tools.ts';
import { program, temporary } from '../program.ts';
import { onDatabase } from './database.ts';
import { addPet, orderPet, setKey } from './replicas.ts';

/** What an engine has told, and how long each batch took. */
interface Heard {
  warned: string[];
  took: number[];
}

onDatabase('the engine on PostgreSQL', (database) => {
  let schemas = 0;
  const newUrl = () => database().url(`e${++schemas}`);

  async function opened(t: TestContext, url: string, fatal?: unknown[]): Promise<Engine & Heard> {
    const [warned, took]: [string[], number[]] = [[], []];
    const onBatch = (ms: number) => void took.push(ms);
    const log = { info: () => {}, error: () => {}, warn: (text: string) => void warned.push(text) };
    const onFatal = fatal && ((error: unknown) => void fatal.push(error));
    const engine = await openPostgres(url, { clock, log, onFatal, onBatch }, fatal && (async () => {}));
    t.after(() => engine.close());
    return Object.assign(engine, { warned, took });
  }

  /** Something of everything that a store holds. */
  async function filled(engine: Engine) {
    const { store, limiter } = engine;
    for (let n = 0; n < 40; n++) await addPet(store, `n ${n} \u0000 é 🐕`, n % 2 ? `once ${n}` : undefined);
    await orderPet(store, 3);
    await store.write(() => ({ op: 'setCategory', category: { id: -(2n ** 63n), name: 'lowest' } }));
    const keys = [await setKey(store, { perMinute: 2, perDay: 9 }), await setKey(store, { perMinute: 3, perDay: 9 })];
    for (let n = 0; n < 14; n++) await limiter.take(keys[0]);
    await limiter.take(keys[1]);
    await setKey(store, { perMinute: 3, perDay: 9 }); // never used
    return keys;
  }

  it('moves to a directory and back with the same counts and digest, day counts and bans included', async (t) => {
    const dir = await temporary(t);
    const engine = await opened(t, newUrl());
    const keys = await filled(engine);
    assert.equal((await engine.limiter.look(keys[0])).verdict, 'banned');
    const batches = [...engine.metrics()].find(({ name }) => name === 'petstore_postgres_batches_total');
    assert.deepEqual([engine.took.length, Math.min(...engine.took) > 0], [batches?.value, true]);
    const proof = await engine.upkeep.verify();
    assert.deepEqual([proof.pets, proof.orders, proof.categories, proof.keys], [40, 1, 1, 3]);

    assert.deepEqual(await engine.upkeep.backup(path.join(dir, 'one')), proof);
    assert.deepEqual((await restore(path.join(dir, 'one'), path.join(dir, 'data'))).proof, proof);
    assert.deepEqual(await backup(path.join(dir, 'data'), path.join(dir, 'two')), proof);
    const url = newUrl();
    assert.deepEqual(await restorePostgres(path.join(dir, 'two'), url), proof);
    await assert.rejects(restorePostgres(path.join(dir, 'two'), url), /not empty/);
    await assert.rejects(engine.upkeep.backup(path.join(dir, 'one')), /exists/);

    const back = await opened(t, url);
    assert.deepEqual(await back.upkeep.verify(), proof);
    const looked = await back.limiter.look(keys[0]);
    assert.deepEqual([looked.verdict, looked.day.remaining, looked.bans], ['banned', 7, 1]);
    assert.equal(await addPet(back.store, 'the same once', 'once 39'), 40);
    assert.equal(await addPet(back.store, 'next'), 41);
  });

  it('a restore begins another history: a replica that waits on the empty schema ends', async (t) => {
    const dir = await temporary(t);
    const source = await opened(t, newUrl());
    await filled(source);
    await source.upkeep.backup(path.join(dir, 'file'));
    const url = newUrl();
    const fatal: unknown[] = [];
    const waiting = await opened(t, url, fatal);
    await restorePostgres(path.join(dir, 'file'), url);
    await assert.rejects(addPet(waiting.store, 'never'), /another one/);
    assert.ok(fatal.length > 0);
  });

  it('a snapshot takes the place of the log: two are kept, and who opens reads the newest', async (t) => {
    const url = newUrl();
    for (let round = 1; round <= 3; round++) {
      const engine = await opened(t, url);
      await addPet(engine.store, `before ${round}`);
      await engine.upkeep.compact();
      await engine.close();
    }
    const engine = await opened(t, url);
    assert.deepEqual(
      engine.store.read.pets.page(0, 9).items.map(({ name }) => name),
      ['before 1', 'before 2', 'before 3'],
    );
    const left = await database().query(`SELECT (SELECT array_agg(batch ORDER BY batch) FROM e${schemas}.log) AS log,
      (SELECT array_agg(DISTINCT batch) FROM e${schemas}.snapshot) AS snapshots, (SELECT count(*) FROM e${schemas}.work) AS work`);
    assert.deepEqual(left, [{ log: ['2', '3'], snapshots: ['2', '3'], work: '0' }]);
    await database().query(`INSERT INTO e${schemas}.work VALUES ('snapshot', 'other', now() + interval '1 minute')`);
    await assert.rejects(engine.upkeep.compact(), /another process/);
  });

  it('verify finds what does not fit, and ends with the status of damage', async (t) => {
    const url = newUrl();
    const engine = await opened(t, url);
    await filled(engine);
    await engine.close();
    const damages: [change: string, back: string, what: RegExp][] = [
      ['limits SET per_day = 10 WHERE slot = 1', 'limits SET per_day = 9 WHERE slot = 1', /key k2 and its row/],
      ["head SET id = 'x' || id", 'head SET id = substr(id, 2)', /the head is not the last batch/],
      ['log SET batch = 99 WHERE batch = 7', 'log SET batch = 7 WHERE batch = 99', /batch 7 is missing/],
      ["log SET body = replace(body, 'n 7', 'n 8')", '', /batch 8: a checksum is wrong/],
    ];
    for (const [change, back, what] of damages) {
      await database().query(`UPDATE e${schemas}.${change}`);
      const { exit, stderr } = await program(['verify', '--store', url]);
      assert.deepEqual([exit, what.test(stderr), /damaged data/.test(stderr)], [3, true, true], stderr);
      if (back !== '') await database().query(`UPDATE e${schemas}.${back}`);
    }
    await database().query(`DELETE FROM e${schemas}.log WHERE batch = 0`);
    assert.equal((await program(['verify', '--store', url])).exit, 3);
  });

  it("the lab's clock moves one key; its reset fills the store anew", async (t) => {
    const engine = await opened(t, newUrl());
    const [key, other] = await filled(engine);
    for (let n = 0; n < 3; n++) await engine.limiter.take(other);
    await engine.advance(key, 121_000);
    const verdicts = [key, other].map(async (one) => (await engine.limiter.take(one)).verdict);
    assert.deepEqual(await Promise.all(verdicts), ['admitted', 'limited']);
    assert.equal(engine.store.read.keys.get(key.id)!.ahead, 121_000);
    const pets = [{ name: 'first', categoryId: 1, status: 'available' as const }];
    const batch = () => [...engine.metrics()].find(({ name }) => name === 'petstore_postgres_batches_total')!.value;
    const before = batch();
    await engine.reset(engine.store.read.keys.get(key.id)!, { categories: [], pets });
    assert.equal(batch(), before + 1, 'one record: a crash leaves no half of it');
    const { limit, remaining } = (await engine.limiter.look(key)).day;
    const counts = { pets: 1, orders: 0, categories: 0, keys: 3 };
    assert.deepEqual([engine.store.read.counts(), limit - remaining], [counts, 0]);
    assert.ok(!engine.store.read.keys.get(key.id)!.ahead);
  });

  it('tells whether it is ready, and numbers; a server is warned that there is no standby', async (t) => {
    const engine = await opened(t, newUrl(), []);
    await engine.limiter.fresh?.();
    assert.ok(engine.ready());
    assert.match(engine.warned.join(), /no synchronous standby/);
    await filled(engine);
    const metrics = new Map([...engine.metrics()].map(({ name, value }) => [name, value]));
    assert.deepEqual([metrics.get('petstore_postgres_batches_total'), metrics.get('petstore_postgres_up')], [45, 1]);
  });

  it('of two restores into one schema at once one is done, and the other refused in words', async (t) => {
    const file = path.join(await temporary(t), 'backup');
    const engine = await opened(t, newUrl());
    await filled(engine);
    const proof = await engine.upkeep.backup(file);
    const url = newUrl();
    const both = await Promise.allSettled([restorePostgres(file, url), restorePostgres(file, url)]);
    const done = both.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    const refused = both.flatMap((one) => (one.status === 'rejected' ? [one.reason.message] : []));
    assert.deepEqual(done, [proof]);
    assert.match(
      refused.join(),
      /^(another process is writing to the store|the store) in schema e\d+( is not empty)?$/,
    );
  });

  it('makes no tables where there must be a store', async () => {
    const url = newUrl();
    const log = { info: () => {}, error: () => {}, warn: () => {} };
    await assert.rejects(
      openPostgres(url, { clock, log, mustExist: true }),
      /^Error: there is no store in schema e\d+$/,
    );
    const [{ made }] = await database().query(`SELECT to_regnamespace('e${schemas}') IS NOT NULL AS made`);
    assert.equal(made, false);
  });

  it('refuses a store that a newer program wrote, a database that is not there, and a URL that says too little', async (t) => {
    const url = newUrl();
    await (await opened(t, url)).close();
    await database().query(`UPDATE e${schemas}.meta SET format = 2`);
    await assert.rejects(opened(t, url), /newer version of petstore.* format 2/);
    const wrong = [
      ['mysql://a/b', /must look like/],
      ['postgres://host', /must look like/],
      ['postgres://host/', /must look like/],
      ['postgres://host/b?schema=A-b', /schema must be/],
      ['postgres://host/b?sslmode=maybe', /sslmode must be/],
      ['postgres://host/b?other=1', /not other/],
      ['postgres://u:p%zz@host/b', /%/],
      ['postgres://host:99999/b', /must look like/],
      ['postgres://a,,c/b', /must look like/],
    ] as const;
    for (const [text, why] of wrong) assert.throws(() => serverOf(text), why, text);
    assert.deepEqual(serverOf('postgresql://u%40x:p%2F@a,[::1]:7,%2Frun%2Fpg/shop?schema=dogs&sslmode=require'), {
      hosts: [
        { host: 'a', port: 5432 },
        { host: '::1', port: 7 },
        { host: '/run/pg', port: 5432 },
      ],
      user: 'u@x',
      password: 'p/',
      database: 'shop',
      schema: 'dogs',
      ssl: { rejectUnauthorized: false },
    });
  });
});
