/** The engine on PostgreSQL as the program uses it: opened by URL, verified, compacted, moved to a directory and back. */
import assert from 'node:assert/strict';
import path from 'node:path';
import { it } from 'node:test';
import { systemClock } from '../../src/clock.ts';
import { restorePostgres } from '../../src/postgres/engine.ts';
import { serverOf } from '../../src/postgres/server.ts';
import { columnsOf } from '../../src/store/changes.ts';
import { openStore } from '../../src/store/file/open.ts';
import { backup, restore } from '../../src/store/file/tools.ts';
import { program, temporary } from '../program.ts';
import { aKey, order } from '../store/opened.ts';
import { onDatabase } from './database.ts';
import { addPet, type Replica, replica, setKey } from './replicas.ts';

onDatabase('the engine on PostgreSQL', (database) => {
  let schemas = 0;
  const newUrl = () => database().url(`e${++schemas}`);

  /** Something of everything that a store holds. Of the keys the first is banned, the third was never used. */
  async function filled({ store, limiter }: Replica) {
    for (let n = 0; n < 40; n++) await addPet(store, `n ${n} \u0000 é 🐕`, n % 2 ? `once ${n}` : undefined);
    await order(store, 3);
    await store.write(() => ({ op: 'setCategory', category: { id: -(2n ** 63n), name: 'lowest' } }));
    const keys = [await setKey(store, { perMinute: 2, perDay: 9 }), await setKey(store, { perMinute: 3, perDay: 9 })];
    for (let n = 0; n < 14; n++) await limiter.take(keys[0]);
    await limiter.take(keys[1]);
    await setKey(store, { perMinute: 3, perDay: 9 });
    return keys;
  }

  it('moves to a directory and back with the same counts and digest, day counts and bans included', async (t) => {
    const dir = await temporary(t);
    const engine = await replica(t, newUrl());
    assert.match(engine.warned.join(), /no synchronous standby/);
    const keys = await filled(engine);
    const { took, count } = engine;
    assert.deepEqual([took.length, Math.min(...took) > 0], [45, true]);
    assert.deepEqual([engine.ready(), count('batches_total'), count('up')], [true, 45, 1]);
    const proof = await engine.upkeep.verify();
    assert.deepEqual([proof.pets, proof.orders, proof.categories, proof.keys], [40, 1, 1, 3]);

    assert.deepEqual(await engine.upkeep.backup(path.join(dir, 'one')), proof);
    assert.deepEqual((await restore(path.join(dir, 'one'), path.join(dir, 'data'))).proof, proof);
    assert.deepEqual(await backup(path.join(dir, 'data'), path.join(dir, 'two')), proof);
    const url = newUrl();
    const waiting = await replica(t, url);
    assert.deepEqual(await restorePostgres(path.join(dir, 'two'), url), proof);
    await assert.rejects(restorePostgres(path.join(dir, 'two'), url), /not empty/);
    await assert.rejects(engine.upkeep.backup(path.join(dir, 'one')), /exists/);

    await assert.rejects(addPet(waiting.store, 'never'), /another one/, 'who waited on the empty schema');
    assert.ok(waiting.fatal.length > 0);
    const back = await replica(t, url);
    assert.deepEqual(await back.upkeep.verify(), proof);
    const looked = await back.limiter.look(keys[0]);
    assert.deepEqual([looked.verdict, looked.day.remaining, looked.bans], ['banned', 7, 1]);
    assert.equal(await addPet(back.store, 'the same once', 'once 39'), 40);
    assert.equal(await addPet(back.store, 'next'), 41);
  });

  it('a snapshot takes the place of the log: two are kept, and who opens reads the newest', async (t) => {
    const url = newUrl();
    for (let round = 1; round <= 3; round++) {
      const { store, upkeep, close } = await replica(t, url);
      await addPet(store, `before ${round}`);
      await upkeep.compact();
      await close();
    }
    const { store, upkeep } = await replica(t, url);
    const names = store.read.pets.page(0, 9).items.map(({ name }) => name);
    assert.deepEqual(names, ['before 1', 'before 2', 'before 3']);
    const left = await database().query(`SELECT (SELECT array_agg(batch ORDER BY batch) FROM e${schemas}.log) AS log,
      (SELECT array_agg(DISTINCT batch) FROM e${schemas}.snapshot) AS snapshots, (SELECT count(*) FROM e${schemas}.work) AS work`);
    assert.deepEqual(left, [{ log: ['2', '3'], snapshots: ['2', '3'], work: '0' }]);
    await database().query(`INSERT INTO e${schemas}.work VALUES ('snapshot', 'other', now() + interval '1 minute')`);
    await assert.rejects(upkeep.compact(), /another process/);
    await database().query(`UPDATE e${schemas}.work SET until = now() + interval '1 day'`);
    await upkeep.compact(); // the lease of a process that has died, from a clock that was ahead and is set back
  });

  it('verify finds what does not fit, and ends with the status of damage', async (t) => {
    const url = newUrl();
    const engine = await replica(t, url);
    await filled(engine);
    await engine.close();
    const damages: [change: string, back: string, what: string][] = [
      ['limits SET per_day = 10 WHERE slot = 1', 'limits SET per_day = 9 WHERE slot = 1', 'key k2 and its row'],
      ["head SET id = 'x' || id", 'head SET id = substr(id, 2)', 'the head is not the last batch'],
      ['log SET batch = 99 WHERE batch = 7', 'log SET batch = 7 WHERE batch = 99', 'batch 7 is missing'],
      ["log SET body = replace(body, 'n 7', 'n 8')", '', 'batch 8: a checksum is wrong'],
    ];
    for (const [change, back, what] of damages) {
      await database().query(`UPDATE e${schemas}.${change}`);
      const verified = replica(t, url).then(({ upkeep }) => upkeep.verify());
      await assert.rejects(verified, new RegExp(`damaged data in the database: ${what}`));
      if (back !== '') await database().query(`UPDATE e${schemas}.${back}`);
    }
    await database().query(`DELETE FROM e${schemas}.log WHERE batch = 0`);
    const { exit, stderr } = await program(['verify', '--store', url]);
    assert.deepEqual([exit, /damaged data/.test(stderr)], [3, true], stderr);
  });

  it("the lab's clock moves one key; its reset fills the store anew", async (t) => {
    const engine = await replica(t, newUrl());
    const { store, limiter, count } = engine;
    const [key, other] = await filled(engine);
    for (let n = 0; n < 3; n++) await limiter.take(other);
    await engine.advance(key, 121_000);
    assert.equal((await limiter.take(key)).verdict, 'admitted');
    assert.equal((await limiter.take(other)).verdict, 'limited');
    const before = count('batches_total');
    const advanced = store.read.keys.get(key.id)!;
    const pets = columnsOf([{ name: 'first', categoryId: 1, status: 'available' }]);
    await engine.reset(advanced, { categories: [], pets });
    assert.equal(count('batches_total'), before + 1, 'one record: a crash leaves no half of it');
    const { limit, remaining } = (await limiter.look(key)).day;
    const counts = { pets: 1, orders: 0, categories: 0, keys: 3 };
    assert.deepEqual([store.read.counts(), limit - remaining], [counts, 0]);
    assert.deepEqual([advanced.clockAdvanceMs, store.read.keys.get(key.id)!.clockAdvanceMs], [121_000, undefined]);
  });

  it("snapshot and backup can be read back after the lab's clock has moved a key by years", async (t) => {
    const dir = await temporary(t);
    const url = newUrl();
    const engine = await replica(t, url);
    const key = await setKey(engine.store, { perMinute: 3, perDay: 9 });
    await engine.advance(key, 3_650 * 86_400_000);
    await engine.limiter.take(key);
    const proof = await engine.upkeep.verify();
    await engine.upkeep.compact();
    assert.deepEqual(await (await replica(t, url)).upkeep.verify(), proof);
    assert.deepEqual(await engine.upkeep.backup(path.join(dir, 'one')), proof);
    assert.deepEqual((await restore(path.join(dir, 'one'), path.join(dir, 'data'))).proof, proof);
  });

  it("store time is the database's, also after a year without a record, and where a replica's own clock stood still", async (t) => {
    const url = newUrl();
    const [year, hour] = [366 * 86_400_000, 3_600_000];
    const isNow = ({ store }: Replica) => Math.abs(store.unix() - Date.now()) < hour / 2;
    const began = await replica(t, url);
    const at = began.store.unix() - year - hour;
    await began.store.write(() => ({ op: 'setKey', at, key: aKey(0) }));

    let stoodStillMs = 0;
    const clock = { now: () => systemClock.now() - stoodStillMs, wall: systemClock.wall };
    const slept = await replica(t, url, { clock });
    assert.deepEqual([isNow(slept), slept.warned.filter((text) => text.includes('last record'))], [true, []]);
    stoodStillMs = hour;
    assert.ok(!isNow(slept));
    await slept.limiter.take(aKey(0));
    assert.ok(isNow(slept), 'as soon as the database was asked');
    await slept.limiter.take(aKey(0));
    assert.ok(isNow(slept), 'and no further');
  });

  it('a replaced secret that has ended does not work again in a directory, where nothing but reads came for a year', async (t) => {
    const dir = await temporary(t);
    const [year, day] = [366 * 86_400_000, 86_400_000];
    const engine = await replica(t, newUrl());
    const at = engine.store.unix() - year - 2 * day;
    const { secrets, ...key } = aKey(0);
    const replaced = { digest: 'an older one', endsAt: at + day };
    await engine.store.write(() => ({ op: 'setKey', at, key: { ...key, secrets: [...secrets, replaced] } }));
    await engine.upkeep.backup(path.join(dir, 'backup'));
    await restore(path.join(dir, 'backup'), path.join(dir, 'data'));
    const notices: string[] = [];
    const { store } = await openStore(path.join(dir, 'data'), { onNotice: (text) => notices.push(text) });
    const isOver = store.unix() > replaced.endsAt;
    await store.close();
    assert.deepEqual([isOver, notices], [true, []]);
  });

  it('of two restores into one schema at once one is done, and the other refused in words', async (t) => {
    const file = path.join(await temporary(t), 'backup');
    const engine = await replica(t, newUrl());
    await filled(engine);
    const proof = await engine.upkeep.backup(file);
    const url = newUrl();
    const both = await Promise.allSettled([restorePostgres(file, url), restorePostgres(file, url)]);
    const [refused, ...others] = both.flatMap((one) => (one.status === 'rejected' ? [one.reason.message] : []));
    assert.deepEqual([both.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : [])), others], [[proof], []]);
    assert.match(refused, /^(another process is writing to the store|the store) in schema e\d+( is not empty)?$/);
  });

  it('is not made by a command that only looks', async () => {
    const { exit, stderr } = await program(['verify', '--store', newUrl()]);
    assert.deepEqual([exit, stderr], [1, `there is no store in schema e${schemas}\n`]);
    const [{ made }] = await database().query(`SELECT to_regnamespace('e${schemas}') IS NOT NULL AS made`);
    assert.equal(made, false);
  });

  it('refuses a store that another version wrote, and a URL that says too little', async (t) => {
    const url = newUrl();
    await (await replica(t, url)).close();
    for (const [format, age] of [
      [3, 'a newer'],
      [1, 'an older'],
    ]) {
      await database().query(`UPDATE e${schemas}.meta SET format = ${format}`);
      await assert.rejects(replica(t, url), new RegExp(`by ${age} version of petstore.* format ${format}`));
    }
    const wrong: [why: RegExp, ...urls: string[]][] = [
      [/must look like/, 'mysql://a/b', 'postgres://host', 'postgres://host/', 'postgres://host:99999/b'],
      [/must look like/, 'postgres://a,,c/b'],
      [/schema must be/, 'postgres://host/b?schema=A-b'],
      [/sslmode must be/, 'postgres://host/b?sslmode=maybe'],
      [/schema and sslmode alone/, 'postgres://host/b?other=1'],
      [/must look like/, 'postgres://u:12/ss@host/b', 'postgres://u:a?b@host/c', 'postgres://u:a@b@host/c'],
      [/%/, 'postgres://u:p%zz@host/b'],
    ];
    for (const [why, ...urls] of wrong) for (const text of urls) assert.throws(() => serverOf(text), why, text);
    const several = 'postgresql://u%40x:p%2F@a,[::1]:7,%2Frun%2Fpg/shop?schema=dogs';
    const { hosts, ...rest } = serverOf(several);
    const places = hosts.map(({ host, port }) => `${host} ${port}`);
    assert.deepEqual(places, ['a 5432', '::1 7', '/run/pg 5432']);
    assert.deepEqual(rest, { user: 'u@x', password: 'p/', database: 'shop', schema: 'dogs' });
    const held = (text: string) =>
      serverOf(text).hosts.map(({ ssl, doubt, isProven }) => [
        ssl ? ssl.rejectUnauthorized : ssl,
        doubt?.slice(0, 10),
        isProven,
      ]);
    const near = [false, undefined, false];
    const socket = [false, undefined, true];
    assert.deepEqual(held(several), [[true, undefined, true], near, socket]);
    assert.deepEqual(held('postgres://localhost,127.0.0.9,127.evil.example/d'), [near, near, [true, undefined, true]]);
    assert.deepEqual(held('postgres://a,[::1]/d?sslmode=disable'), [[false, 'is not enc', false], near]);
    assert.deepEqual(held('postgres://a,[::1]/d?sslmode=require'), [[false, 'is not ver', false], near]);
    assert.deepEqual(held('postgres://[::1]/d?sslmode=verify-full'), [[true, undefined, true]]);
  });
});
