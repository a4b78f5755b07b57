/** The connection to the database is cut before and behind every message: each write is kept once, or refused. */
import assert from 'node:assert/strict';
import { connect, createServer, type Socket } from 'node:net';
import path from 'node:path';
import { it, type TestContext } from 'node:test';
import { restorePostgres } from '../../src/postgres/engine.ts';
import { temporary } from '../program.ts';
import { checked } from '../store/opened.ts';
import { onDatabase } from './database.ts';
import { addPet, RICH, replica, setKey, until } from './replicas.ts';

/** The longest conversation from a connection's first byte on, and every how manieth message of it is cut at. */
const MESSAGES = 60;
/** Of the conversation of a restore, more messages come at a time. */
const STEP = Number(process.env.FAULTS_SCALE ?? 1) > 1 ? 1 : 3;
const EVERY = Number(process.env.FAULTS_SCALE ?? 1) > 1 ? 1 : 4;

const ENDED = Buffer.from('E\0\0\0\x22SFATAL\0C57P01\0Mended by hand\0\0', 'latin1');

/** Gives whole messages of PostgreSQL's protocol. The first that a client sends has no type before its length. */
function messagesOf(side: 'sent' | 'answered') {
  let rest = Buffer.alloc(0);
  let type = side === 'sent' ? 0 : 1;
  return function* (bytes: Buffer) {
    rest = Buffer.concat([rest, bytes]);
    while (rest.length >= type + 4) {
      const length = type + rest.readInt32BE(type);
      if (rest.length < length) return;
      yield rest.subarray(0, length);
      rest = rest.subarray(length);
      type = 1;
    }
  };
}

/** Stands between a replica and its database. */
class WireProxy {
  /** Every message is one; the one that makes it 0 is the last that passes, or the first that does not. */
  left = Number.POSITIVE_INFINITY;
  passesLast = false;
  /** The database says that somebody ended the connection, right behind its last answer: between two statements. */
  isEnded = false;
  /** Nothing passes any more, and nothing is closed: as when a host has vanished. */
  isSilent = false;

  async listen(t: TestContext, target: number): Promise<number> {
    const sockets = new Set<Socket>();
    const server = createServer((client) => {
      const database = connect(target, '127.0.0.1');
      this.#pass('sent', client, database);
      this.#pass('answered', database, client);
      for (const one of [client, database]) sockets.add(one);
    });
    t.after(() => {
      server.close();
      for (const socket of sockets) socket.destroy();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return (server.address() as { port: number }).port;
  }

  #pass(side: 'sent' | 'answered', from: Socket, to: Socket): void {
    const cut = () => {
      for (const one of [from, to]) one.destroy();
    };
    const messages = messagesOf(side);
    from.on('error', cut).on('close', cut);
    from.on('data', (bytes) => {
      for (const message of messages(bytes)) {
        if (this.isSilent || to.destroyed) return;
        const isCut = --this.left === 0;
        if (isCut && side === 'answered' && this.isEnded) to.write(Buffer.concat([message, ENDED]));
        else if (!isCut || this.passesLast) to.write(message);
        if (isCut && (this.passesLast || this.isEnded)) setTimeout(cut, 1);
        else if (isCut) return cut();
      }
    });
  }
}

onDatabase('the wire to the database', (database) => {
  async function behindProxy(t: TestContext, schema: string) {
    const proxy = new WireProxy();
    const port = await proxy.listen(t, database().port);
    return { proxy, ...(await replica(t, `postgres://petstore@127.0.0.1:${port}/postgres?schema=${schema}`)) };
  }

  it('may be cut at any message', async (t) => {
    const { proxy, ...behind } = await behindProxy(t, 'cut');
    const beside = await replica(t, database().url('cut'));
    const key = await setKey(behind.store, RICH);
    await beside.limiter.fresh();
    const first = 1 + (Date.now() % EVERY);
    let made = 0;
    let cuts = 0;
    for (proxy.passesLast of [false, true]) {
      for (let message = first; message <= MESSAGES; message += EVERY) {
        proxy.left = message;
        for (let round = 0; round < 2; round++) {
          const one = addPet(behind.store, `behind ${made}`);
          const other = addPet(beside.store, `beside ${made}`);
          const take = behind.limiter.take(key).catch((error) => error.failure);
          const [a, b, taken] = await Promise.all([one, other, take]);
          assert.ok(a !== b && (taken === 'unavailable' || taken.verdict === 'admitted'), `${a} ${b} ${taken}`);
          made += 2;
        }
        if (proxy.left <= 0) cuts++;
        await beside.limiter.fresh();
        await behind.limiter.fresh().catch(() => behind.limiter.fresh()); // the cut may come as late as here
        assert.equal(behind.store.read.counts().pets, made, `cut at message ${message}`);
      }
    }
    assert.ok(cuts > MESSAGES / EVERY, `${cuts} cuts`);
    assert.ok(behind.count('doubts_total') > 0, 'no outcome was unknown');
    assert.deepEqual(checked(behind.store), checked(beside.store));
    assert.deepEqual([behind.fatal, beside.fatal], [[], []]);
  });

  it('may be cut at any message of a restore: nothing is restored, or all, and it can be typed again', async (t) => {
    const dir = await temporary(t);
    const source = await replica(t, database().url('source'));
    await setKey(source.store, RICH);
    for (let n = 0; n < 6; n++) await setKey(source.store, { secrets: [{ digest: `${n}`.repeat(2 ** 18) }] });
    const file = path.join(dir, 'backup');
    const { digest } = await source.upkeep.backup(file);
    const proxy = new WireProxy();
    const port = await proxy.listen(t, database().port);
    const url = (schema: string) => `postgres://petstore@127.0.0.1:${port}/postgres?schema=${schema}`;
    let [whole, nothing] = [0, 0];
    for (let message = 1 + (Date.now() % STEP), isCut = true; isCut; message += STEP) {
      const schema = `restored_${message}`;
      const target = database().url(schema);
      await (await replica(t, target)).close(); // the tables are there: that is not what is tried
      Object.assign(proxy, { left: message, passesLast: message % 2 === 0, isEnded: true });
      const first = await restorePostgres(file, url(schema)).then(
        () => 'done',
        (error: Error) => error.message,
      );
      isCut = proxy.left <= 0;
      proxy.left = Number.POSITIVE_INFINITY;
      const again = await restorePostgres(file, target).then(
        (proof) => proof.digest,
        (error: Error) => error.message,
      );
      const engine = await replica(t, target);
      const verified = await engine.upkeep.verify();
      await engine.close();
      assert.equal(verified.digest, digest, `cut at message ${message}: ${first}; ${again}`);
      if (again === digest) nothing++;
      else whole++;
      assert.ok(again === digest || /is not empty/.test(again), again);
    }
    assert.ok(nothing > 5 && whole > 0, `${nothing} times nothing, ${whole} times all`);
  });

  it('may carry nothing any more: 503 after two seconds, a write is unknown after ten, and kept in the end', async (t) => {
    const { proxy, store, limiter, ready, count } = await behindProxy(t, 'mute');
    const key = await setKey(store, RICH);
    assert.ok(ready());
    proxy.isSilent = true;
    const began = performance.now();
    const write = assert.rejects(addPet(store, 'kept in the end'), { failure: 'unknown' });
    await assert.rejects(limiter.take(key), { failure: 'unavailable' });
    const waited = performance.now() - began;
    assert.ok(waited > 1_900 && waited < 20_000, `${waited} ms`);
    assert.ok(!ready());
    await write;
    proxy.isSilent = false;
    await until(() => store.read.pets.get(1)?.name === 'kept in the end');
    assert.equal(count('doubts_total'), 1);
    assert.equal(await addPet(store, 'next'), 2);
  });
});
