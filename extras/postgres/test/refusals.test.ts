/** A database that cannot be used, or refuses: what clients get, and what an operator is told. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import path from 'node:path';
import { it, type TestContext } from 'node:test';
import { createSecureContext, TLSSocket } from 'node:tls';
import { systemClock as clock } from '../../../src/clock.ts';
import { asApiError } from '../../../src/service/failures.ts';
import { DamagedError } from '../../../src/store/engine.ts';
import { proofOf } from '../../../test/store/contract.ts';
import { temporary } from '../../program.ts';
import { openPostgres } from '../open.ts';
import { onDatabase } from './database.ts';
import { addKey, addPet, replica, until, works } from './replicas.ts';

const PASSWORD = 'secret-of-the-database';
const TLS_REQUEST = 80_877_103;
const log = { info: () => {}, warn: () => {}, error: () => {} };

/** Why a store could not be opened. */
async function reasonOf(url: string): Promise<string> {
  const opened = openPostgres(url, { clock, log, mustExist: true });
  const { message } = await opened.then(
    () => assert.fail('it was opened'),
    (error: Error) => error,
  );
  assert.doesNotMatch(message, /secret|shop:/);
  return message;
}

/** A server that is not PostgreSQL, asks for the password and keeps what it hears. */
async function impostor(t: TestContext, certificate?: { key: Buffer; cert: Buffer }) {
  let heard = '';
  const listen = (socket: Socket) => {
    socket
      .on('error', () => {})
      .on('data', (bytes) => {
        heard += bytes.toString('latin1');
        if (bytes.length >= 8 && bytes.readInt32BE(4) === TLS_REQUEST) {
          if (!certificate) return void socket.write('N');
          socket.removeAllListeners('data').write('S');
          listen(new TLSSocket(socket, { isServer: true, secureContext: createSecureContext(certificate) }));
        } else socket.write(Buffer.from('R\0\0\0\x08\0\0\0\x03', 'latin1'));
      });
  };
  const server = createServer(listen);
  t.after(() => server.close());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  return { url: `postgres://shop:${PASSWORD}@127.0.0.1:${port}/shop?sslmode=verify-full`, heard: () => heard };
}

it('a server that must prove its identity, and does not, never hears the password', async (t) => {
  const dir = await temporary(t);
  const [key, cert] = ['key', 'cert'].map((name) => path.join(dir, name));
  const words = `req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=db -keyout ${key} -out ${cert}`.split(' ');
  assert.equal(spawnSync('openssl', words).status, 0);
  const unknown = await impostor(t, { key: readFileSync(key), cert: readFileSync(cert) });
  assert.match(await reasonOf(unknown.url), /certificate does not prove its identity/);
  const plain = await impostor(t);
  assert.match(await reasonOf(plain.url), /does not support SSL/);
  for (const { heard } of [unknown, plain]) assert.doesNotMatch(heard(), /secret/);
});

onDatabase('a database that refuses', (database) => {
  it('is told of at the start in words', async () => {
    const url = (to: string) => database().url('x').replace('/postgres?', to);
    assert.match(await reasonOf(url('/nowhere?')), /there is no such database/);
    await database().query('CREATE ROLE shop LOGIN');
    await database().query('CREATE DATABASE closed');
    await database().query('REVOKE CONNECT ON DATABASE closed FROM PUBLIC');
    assert.match(await reasonOf(url('/closed?').replace('petstore@', `shop:${PASSWORD}@`)), /lacks a right/);
    assert.match(await reasonOf(url('/postgres?')), /there is no store in schema x/);
    await database().query('CREATE DATABASE frozen');
    await database().query('ALTER DATABASE frozen SET default_transaction_read_only = on');
    assert.match(await reasonOf(url('/frozen?')), /it is read-only/);
    await database().query('CREATE DATABASE secret ALLOW_CONNECTIONS false');
    assert.match(await reasonOf(url('/secret?')), /accepts no connections/);
    await database().query('CREATE ROLE secret LOGIN CONNECTION LIMIT 0');
    assert.match(await reasonOf(url('/postgres?').replace('petstore@', 'secret@')), /too many connections/);
    await database().query("CREATE DATABASE western TEMPLATE template0 ENCODING 'LATIN1'");
    assert.match(await reasonOf(url('/western?')), /must have the encoding UTF8/);
  });

  it('a schema may have the name of a keyword', async (t) => {
    const { store } = await replica(t, database().url('user'));
    assert.equal(await addPet(store, 'first'), 1);
  });

  it('a pooler that drops what was asked for is refused, and no table is made', async (t) => {
    const pooler = createServer((client) => {
      const { port } = database();
      const server = new (client.constructor as typeof Socket)().connect(port, '127.0.0.1');
      client.once('data', (first) => {
        const bytes = Buffer.from(first.toString('latin1').replace(/options\0[^\0]*\0/, ''), 'latin1');
        bytes.writeInt32BE(bytes.length);
        server.write(bytes);
        client.pipe(server).pipe(client);
      });
      for (const one of [client, server]) one.on('error', () => {});
      client.on('close', () => server.destroy());
    });
    t.after(() => pooler.close());
    await new Promise<void>((resolve) => pooler.listen(0, '127.0.0.1', resolve));
    const { port } = pooler.address() as { port: number };
    await assert.rejects(replica(t, database().url('pooled', port)), /a pooler between drops the settings/);
    const made = await database().query("SELECT FROM pg_tables WHERE tablename = 'head' AND schemaname <> 'user'");
    assert.equal(made.length, 0);
  });

  it('a full disk refuses writes as full, and what cannot be counted; then it goes on', async (t) => {
    const { store, limiter } = await replica(t, database().url('full'));
    const key = await addKey(store);
    await database().query(`CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
      $$BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END$$`);
    const fill = (table: string) =>
      database().query(
        `CREATE TRIGGER no_room BEFORE INSERT OR UPDATE ON "full".${table} EXECUTE FUNCTION full_disk()`,
      );
    await fill('changes');
    await assert.rejects(addPet(store, 'x'), { failure: 'full', message: 'the database: its disk is full' });
    await limiter.take(key);
    await fill('usage');
    await assert.rejects(async () => limiter.take(key), { failure: 'unavailable' });
    await database().query('DROP FUNCTION full_disk CASCADE');
    assert.equal(await addPet(store, 'y'), 1);
    assert.equal((await limiter.take(key)).verdict, 'admitted');
  });

  it('a key without its row of usage, or with one of a wrong value, is refused; others are served', async (t) => {
    const engine = await replica(t, database().url('rows'));
    const [gone, wrong, other] = [await addKey(engine.store), await addKey(engine.store), await addKey(engine.store)];
    const refused = (key: typeof gone) =>
      Promise.resolve(engine.limiter.take(key)).then(
        () => assert.fail('it was admitted'),
        (error: Error) => error,
      );
    const [{ row }] = await database().query('SELECT row::text FROM rows.usage WHERE id = 2');
    for (const ruined of [row.replace('"bans":0', '"bans":-1'), row.replace('"bans":0', '"bans":"x"'), '[]', '{}']) {
      await database().query(`UPDATE rows.usage SET row = '${ruined}' WHERE id = 2`);
      assert.equal(asApiError(await refused(wrong))?.code, 'unavailable');
      assert.equal((await engine.limiter.take(other)).verdict, 'admitted');
      await assert.rejects(proofOf(engine), /damaged data: .*table usage, row 2: /);
    }
    await database().query(`UPDATE rows.usage SET row = '${row}' WHERE id = 2; DELETE FROM rows.usage WHERE id = 1`);
    const [error, { verdict }] = await Promise.all([refused(gone), engine.limiter.take(other)]); // in one trip
    assert.ok(error instanceof DamagedError && /key k1 has no row of usage/.test(error.message), error.stack);
    assert.deepEqual([asApiError(error)?.code, verdict], ['unavailable', 'admitted']);
    await assert.rejects(proofOf(engine), /damaged data: .*key k1 has no row of usage/);
    assert.match(engine.warned.join(), /requests are refused: damaged data/);
  });

  const REFUSED: [what: string, begin: string, end: string, why: RegExp][] = [
    [
      'is read-only',
      "ALTER SYSTEM SET default_transaction_read_only = 'on'; SELECT pg_reload_conf()",
      "SET default_transaction_read_only = 'off'; ALTER SYSTEM RESET default_transaction_read_only; SELECT pg_reload_conf()",
      /^requests are refused: .*read-only/,
    ],
    [
      'has lost the schema',
      'ALTER SCHEMA told RENAME TO hidden',
      'ALTER SCHEMA hidden RENAME TO told',
      /^requests are refused: .*does not exist/,
    ],
  ];
  for (const [what, begin, end, why] of REFUSED) {
    it(`a database that ${what}: the reason is told once, and it goes on`, async (t) => {
      const { store, limiter, warned } = await replica(t, database().url('told'));
      const key = await addKey(store);
      const client = await database().client();
      t.after(() => client.end());
      const all = async (statements: string) => {
        for (const one of statements.split('; ')) await client.query(one);
      };
      await all(begin);
      await until(async () => !(await works(limiter.take(key))));
      await assert.rejects(addPet(store, 'never'), { failure: 'unavailable' });
      await all(end);
      await until(() => works(limiter.take(key)));
      await addPet(store, 'again');
      assert.match(warned.filter((text) => text.startsWith('requests')).join('\n'), why);
      assert.equal(warned.filter((text) => text.startsWith('requests')).length, 1);
    });
  }

  it('somebody else holds the head: writes are refused after four seconds, and requests are served', async (t) => {
    const { store, limiter, warned } = await replica(t, database().url('locked'));
    const key = await addKey(store);
    const client = await database().client();
    t.after(() => client.end());
    await client.query('BEGIN; SELECT FROM locked.head FOR UPDATE');
    const write = assert.rejects(addPet(store, 'never'), { failure: 'unavailable' });
    assert.equal((await limiter.take(key)).verdict, 'admitted');
    await write;
    await client.query('ROLLBACK');
    assert.equal(await addPet(store, 'after'), 1);
    assert.match(warned.join('\n'), /^writes are refused: the database: .*lock timeout/m);
  });
});
