/** The engine on PostgreSQL as commands use it: opened by URL, verified, trimmed, moved to a directory and back. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import pg from 'pg';
import { systemClock as clock } from '../../../src/clock.ts';
import { openFileStore, restoreInto } from '../../../src/store/file/store.ts';
import { SetClock } from '../../../test/clock.ts';
import { backedUp, proofOf, streamed } from '../../../test/store/contract.ts';
import { PLACED_AT } from '../../../test/store/plain-model.ts';
import { temporary } from '../../program.ts';
import { addressOf } from '../address.ts';
import { restoreIntoPostgres } from '../commands.ts';
import { databaseTime } from '../open.ts';
import { onDatabase } from './database.ts';
import { addKey, addPet, petsOf, type Replica, replica } from './replicas.ts';

const HOUR_MS = 3_600_000;
const log = { info: () => {}, warn: () => {}, error: () => {} };

it("store time is the database's, where a replica's own clock is years off or stood still", () => {
  const clock = new SetClock();
  const at = clock.wall() + 10_000 * HOUR_MS;
  const time = databaseTime(clock, at);
  assert.equal(time.now(), at);
  clock.advance(500);
  assert.equal(time.now(), at + 500);
  time.observe(at); // an answer may be late
  assert.equal(time.now(), at + 500);
  clock.advance(400);
  assert.equal(time.now(), at + 500);
  clock.advance(400);
  assert.equal(time.now(), at + 800);
});

it("store time follows the database's clock, which jumps forth and back: replicas that saw it agree with the others", () => {
  const clock = new SetClock();
  const at = clock.wall();
  const [witness, other] = [databaseTime(clock, at), databaseTime(clock, at)];
  witness.observe(at + 5 * HOUR_MS);
  assert.equal(witness.now(), at + 5 * HOUR_MS);
  clock.advance(1_000);
  for (const time of [witness, other]) time.observe(at + 1_000);
  assert.deepEqual([witness.now(), other.now()], [at + 1_000, at + 1_000]);
  clock.advance(HOUR_MS);
  assert.deepEqual([witness.now(), other.now()], [at + 1_000 + HOUR_MS, at + 1_000 + HOUR_MS]);
});

onDatabase('the engine on PostgreSQL', (database) => {
  let schemas = 0;
  const newUrl = () => database().url(`e${++schemas}`);

  /** Something of everything that a store holds. Of the keys the first is banned, the third was never used. */
  async function filled({ store, limiter }: Replica) {
    for (let n = 0; n < 40; n++) await addPet(store, `n ${n} é 🐕`);
    const keys = [await addKey(store, { perMinute: 2, perDay: 9 }), await addKey(store, { perMinute: 3, perDay: 9 })];
    await addKey(store, { revokedAt: 5, secrets: [{ digest: 'a', endsAt: 7 }, { digest: 'b' }] });
    await store.write((tx) => {
      tx.pets.put({ ...tx.pets.get(3)!, status: 'pending' });
      tx.orders.add({ petId: 3, status: 'placed', placedAt: PLACED_AT });
      tx.pets.delete(7);
      tx.pets.delete(tx.pets.add({ name: 'gone again', categoryId: 1, status: 'sold' }).id);
      for (const id of [-(2n ** 63n), 2n ** 63n - 1n, 0, -1]) tx.categories.put({ id, name: `category ${id}` });
      const replay = { keyId: 1, digest: 'd', status: 201, body: '{"id":1}', location: '/pets/1' };
      tx.replays.put({ ...replay, id: 'addPet k1 one', at: store.now() });
      tx.replays.put({ ...replay, id: 'addPet k1 old', at: store.now() - 25 * HOUR_MS });
    });
    for (let n = 0; n < 14; n++) await limiter.take(keys[0]);
    await limiter.take(keys[1]);
    return keys;
  }

  it('moves to a directory and back with the same counts and digest, day counts and bans included', async (t) => {
    const dir = await temporary(t);
    const engine = await replica(t, newUrl());
    assert.match(engine.warned.join(), /no synchronous standby/);
    const keys = await filled(engine);
    assert.deepEqual([engine.took.length, engine.count('up')], [44, 1]);
    const proof = await proofOf(engine);
    assert.deepEqual(proof.counts, { pets: 39, orders: 1, categories: 4, keys: 3, replays: 1, usage: 3 });

    const first = await backedUp(engine);
    assert.deepEqual(first.proof, proof);
    assert.deepEqual(await restoreInto(`${dir}/data`, streamed(first.pieces)), proof);
    const onFile = await openFileStore(`${dir}/data`, { clock, log });
    const second = await backedUp(onFile);
    assert.deepEqual([await proofOf(onFile), second.proof], [proof, proof]);
    await onFile.close();

    const url = newUrl();
    const waiting = await replica(t, url);
    assert.deepEqual(await restoreIntoPostgres(url, streamed(second.pieces)), proof);
    await assert.rejects(restoreIntoPostgres(url, streamed(second.pieces)), /e2 is not empty/);
    const back = await replica(t, url);
    await waiting.limiter.refresh!(); // it reads all rows anew
    assert.deepEqual(petsOf(waiting.store), petsOf(back.store));
    assert.deepEqual(await proofOf(back), proof);
    const looked = await back.limiter.look(keys[0]);
    assert.deepEqual([looked.verdict, looked.day.remaining, looked.bans], ['banned', 7, 1]);
    assert.equal(back.store.read.replays.get('addPet k1 one')?.location, '/pets/1');
    assert.equal(await addPet(back.store, 'next'), 42, 'no id is given twice, though its row is gone');
    assert.equal(await addPet(waiting.store, 'and again'), 43);
    assert.deepEqual(waiting.fatal, []);
  });

  it('of two restores into one schema at once one is done, and the other refused in words', async (t) => {
    const engine = await replica(t, newUrl());
    await filled(engine);
    const { pieces, proof } = await backedUp(engine);
    const url = newUrl();
    const both = await Promise.allSettled([1, 2].map(() => restoreIntoPostgres(url, streamed(pieces))));
    const reasons = both.flatMap((one) => (one.status === 'rejected' ? [one.reason.message] : []));
    assert.equal(reasons.length, 1);
    assert.match(reasons[0], /is not empty|already exists/);
    assert.deepEqual(await proofOf(await replica(t, url)), proof);
  });

  it('psql shows real tables', async (t) => {
    await filled(await replica(t, newUrl()));
    const of = (what: string, from: string) => database().query(`SELECT ${what} FROM e${schemas}.${from}`);
    const text = '{"id":3,"name":"n 2 é 🐕","categoryId":9007199254740993,"status":"pending"}';
    assert.deepEqual(await of('id, row::text', 'pets WHERE id = 3'), [{ id: '3', row: text }]);
    assert.deepEqual(await of("row->>'name' AS name", "pets WHERE row->>'status' = 'pending'"), [{ name: 'n 2 é 🐕' }]);
    assert.deepEqual(await of('id', 'categories ORDER BY id'), [
      { id: '-9223372036854775808' },
      { id: '-1' },
      { id: '0' },
      { id: '9223372036854775807' },
    ]);
    assert.deepEqual(await of("row->'secrets' AS secrets, row->>'revokedAt' AS ended", 'keys WHERE id = 3'), [
      { secrets: [{ digest: 'a', endsAt: 7 }, { digest: 'b' }], ended: '5' },
    ]);
    assert.deepEqual(await of('batch, pets, orders, keys', 'head'), [
      { batch: '44', pets: '41', orders: '1', keys: '3' },
    ]);
  });

  it('compact trims the tail, and what has ended', async (t) => {
    const url = newUrl();
    const other = await replica(t, url);
    await filled(other);
    await database().query(`UPDATE e${schemas}.changes SET at = now() - interval '2 hours'`);
    assert.match(await other.compact(), /^removed 45 rows/); // 44 batches, and the replay that has ended
    const [{ count, first }] = await database().query(`SELECT count(*), min(batch) AS first FROM e${schemas}.changes`);
    assert.deepEqual([count, first], ['1', '44']);
    await proofOf(other);
    assert.equal(await addPet(other.store, 'goes on'), 42);
  });

  it('verify finds what does not fit, and says so as damage', async (t) => {
    const url = newUrl();
    const engine = await replica(t, url);
    await filled(engine);
    const within = (table: string, from: string, to: string, id: number) =>
      `${table} SET row = replace(row::text, '${from}', '${to}')::json WHERE id = ${id}`;
    const damages: [change: string, back: string, what: RegExp][] = [
      [within('pets', 'available', 'lost', 9), within('pets', 'lost', 'available', 9), /pets, row 9: .*one of/],
      [within('orders', 'petId', 'animal', 1), within('orders', 'animal', 'petId', 1), /orders, row 1: petId/],
      ['pets SET id = 99 WHERE id = 9', 'pets SET id = 9 WHERE id = 99', /pets, row 99: its id is 9/],
      ['head SET pets = 5', 'head SET pets = 41', /the last id of pets is 40, and the head says 5/],
    ];
    await proofOf(engine);
    for (const [change, back, what] of damages) {
      await database().query(`UPDATE e${schemas}.${change}`);
      await assert.rejects(
        proofOf(engine),
        (error: Error) => what.test(error.message) && /^damaged data/.test(error.message),
      );
      if (back !== '') await database().query(`UPDATE e${schemas}.${back}`);
    }
  });

  it('a lift concerns one key, and is what the next request meets', async (t) => {
    const engine = await replica(t, newUrl());
    const [key, other] = await filled(engine);
    for (let n = 0; n < 3; n++) await engine.limiter.take(other);
    const before = await engine.limiter.look(key);
    assert.ok(before.banEndsAt > 0);
    await engine.limiter.lift(key);
    assert.equal((await engine.limiter.take(key)).verdict, 'limited', 'what is used stays used');
    assert.equal((await engine.limiter.take(other)).verdict, 'limited');
    const { day, bans, banEndsAt } = await engine.limiter.look(key);
    assert.deepEqual([day.remaining, bans, banEndsAt], [before.day.remaining, 0, 0]);
  });

  it('is not made by a command that only looks', async (t) => {
    const url = newUrl();
    await assert.rejects(replica(t, url, { mustExist: true }), /there is no store in schema e\d+/);
    const [{ made }] = await database().query(`SELECT to_regnamespace('e${schemas}') IS NOT NULL AS made`);
    assert.equal(made, false);
  });

  it('refuses a store that another version wrote, and a URL that says too little', async (t) => {
    const url = newUrl();
    await (await replica(t, url)).close();
    for (const [format, age] of [
      [99, 'a newer version of petstore'],
      [2, 'an older version of petstore'],
    ]) {
      await database().query(`UPDATE e${schemas}.head SET format = ${format}`);
      await assert.rejects(replica(t, url), new RegExp(`by ${age}.* format ${format}`));
    }
    const wrong: [why: RegExp, ...urls: string[]][] = [
      [/must look like/, 'mysql://a/b', 'postgres://host', 'postgres://host/', 'postgres://host:99999/b'],
      [/must look like/, 'postgres://a,b/c', 'postgres://u:12/ss@host/b', 'postgres://u:a?b@host/c'],
      [/must look like/, 'postgres://u:a@b@host/c'],
      [/schema must be/, 'postgres://host/b?schema=A-b'],
      [/sslmode must be/, 'postgres://host/b?sslmode=maybe'],
      [/schema and sslmode alone/, 'postgres://host/b?other=1'],
      [/%/, 'postgres://u:p%zz@host/b'],
    ];
    for (const [why, ...urls] of wrong) for (const text of urls) assert.throws(() => addressOf(text), why, text);
    const clientOf = (text: string) => {
      const { url, ssl, schema } = addressOf(text);
      const { host, port, user, password, database } = new pg.Client({ connectionString: url, ssl });
      return { host, port, user, password, database, schema };
    };
    const { host, ...rest } = clientOf('postgresql://u%40x:p%2F%3F%23%25@[::1]:7/shop?schema=dogs');
    assert.deepEqual(rest, { port: 7, user: 'u@x', password: 'p/?#%', database: 'shop', schema: 'dogs' });
    assert.deepEqual([host, clientOf('postgres://%2Frun%2Fpg/shop').host], ['::1', '/run/pg']);
    const tls = (text: string) => {
      const { ssl, warning } = addressOf(text);
      return [ssl ? ssl.rejectUnauthorized : ssl, warning && /sslmode=\w+/.exec(warning)![0]];
    };
    for (const host of ['localhost', '127.0.0.9', '[::1]', '%2Frun%2Fpg']) {
      assert.deepEqual(tls(`postgres://${host}/d`), [false, undefined], host);
    }
    for (const host of ['a', '127.evil.example', '10.0.0.1']) {
      assert.deepEqual(tls(`postgres://${host}/d`), [true, undefined], host);
    }
    assert.deepEqual(tls('postgres://a/d?sslmode=disable'), [false, 'sslmode=disable']);
    assert.deepEqual(tls('postgres://a/d?sslmode=require'), [false, 'sslmode=require']);
    assert.deepEqual(tls('postgres://[::1]/d?sslmode=verify-full'), [true, undefined]);
  });

  it('ends when a newer version has taken the store over: at its next write, and at a row that it cannot read', async (t) => {
    const url = newUrl();
    const [writer, reader] = [await replica(t, url), await replica(t, url)];
    const other = await replica(t, url);
    // In one transaction: no replica sees the one without the other.
    await database().query(`BEGIN; SET LOCAL search_path TO e${schemas};
      UPDATE head SET format = 6, batch = batch + 1, id = 'of a newer version';
      INSERT INTO changes (batch, id, rows) SELECT batch, id, '{"crc":"00000000","of":"a newer version"}' FROM head; COMMIT`);
    const refused = { failure: 'closed', message: /written by a newer version of petstore, in format 6/ };
    await assert.rejects(async () => reader.limiter.refresh!(), refused);
    await assert.rejects(addPet(other.store, 'never'), refused);
    await assert.rejects(addPet(writer.store, 'never'), refused);
    for (const { fatal } of [writer, reader, other]) assert.match(fatal[0].message, refused.message);
  });

  it('is ready as soon as whoever asked the database has the answer', async (t) => {
    const clock = new SetClock();
    const { limiter, ready } = await replica(t, newUrl(), { clock });
    for (let n = 0; n < 20; n++) {
      clock.advance(HOUR_MS);
      assert.equal(ready(), false);
      await limiter.refresh!();
      assert.equal(ready(), true);
    }
  });
});
