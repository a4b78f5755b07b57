/** Who is at the other end: what a server that is not the one that was meant learns, and what an operator is told. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import path from 'node:path';
import { it, type TestContext } from 'node:test';
import { createSecureContext, TLSSocket } from 'node:tls';
import { Link, type LinkError } from '../../src/postgres/link.ts';
import { serverOf } from '../../src/postgres/server.ts';
import { program, temporary } from '../program.ts';
import { onDatabase } from './database.ts';
import { replica, until } from './replicas.ts';

const PASSWORD = 'secret-of-the-database';
const TLS_REQUEST = 80_877_103;

const message = (type: string, body: string) => {
  const bytes = Buffer.from(`${type}\0\0\0\0${body}`, 'latin1');
  bytes.writeInt32BE(bytes.length - 1, 1);
  return bytes;
};
const REFUSED = message('E', 'SFATAL\0C28P01\0Mgo away\x1b[31m\0\0');
const WAYS = {
  'in clear': message('R', '\0\0\0\x03'),
  'as MD5': message('R', '\0\0\0\x05salt'),
  'by SCRAM': message('R', '\0\0\0\x0aSCRAM-SHA-256\0\0'),
};

/** What a server sends second, from the message of the client that it got. */
type Script = (message: string) => Buffer;

/** A server that is not PostgreSQL, asks for the password and keeps what it hears. */
async function impostor(
  t: TestContext,
  answer: Buffer,
  certificate?: { key: Buffer; cert: Buffer },
  next: Script = () => REFUSED,
) {
  let heard = '';
  const listen = (socket: Socket) => {
    let answers = next;
    socket
      .on('error', () => {})
      .on('data', (bytes) => {
        heard += bytes.toString('latin1');
        if (bytes.length >= 8 && bytes.readInt32BE(4) === TLS_REQUEST) {
          if (!certificate) return void socket.write('N');
          socket.removeAllListeners('data').write('S');
          listen(new TLSSocket(socket, { isServer: true, secureContext: createSecureContext(certificate) }));
        } else if (bytes[0] === 0) socket.write(answer);
        else {
          socket.write(answers(bytes.toString('latin1')));
          answers = () => REFUSED;
        }
      });
  };
  let connections = 0;
  const server = createServer(listen).on('connection', () => connections++);
  t.after(() => server.close());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  return {
    url: `postgres://shop:${PASSWORD}@127.0.0.1:${port}/shop`,
    heard: () => heard,
    connections: () => connections,
  };
}

/** What the link says of a URL that cannot be used, and whether it gives up at once. */
async function refusal(t: TestContext, url: string): Promise<[message: string, isFinal: boolean]> {
  const link = new Link(serverOf(url), 'test');
  t.after(() => link.close());
  const { message, isFinal } = await link.rows({ text: 'SELECT 1' }).then(
    () => assert.fail('it connected'),
    (error: LinkError) => error,
  );
  return [message, isFinal];
}

function certificate(dir: string) {
  const [key, cert] = ['key', 'cert'].map((name) => path.join(dir, name));
  const words = `req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=db -keyout ${key} -out ${cert}`.split(' ');
  assert.equal(spawnSync('openssl', words).status, 0);
  return { key: readFileSync(key), cert: readFileSync(cert) };
}

for (const [way, answer] of Object.entries(WAYS)) {
  it(`a server that has not proved who it is never hears the password, asked for ${way}`, async (t) => {
    const tls = certificate(await temporary(t));
    for (const [sslmode, by] of [
      ['', undefined],
      ['?sslmode=require', tls],
      ['?sslmode=verify-full', tls],
      ['?sslmode=verify-full', undefined],
    ] as const) {
      const { url, heard, connections } = await impostor(t, answer, by);
      const [why] = await refusal(t, url + sslmode);
      assert.equal(connections(), 1, 'trying again would come to the same');
      assert.doesNotMatch(heard(), /secret|md5[0-9a-f]{32}/, why);
      assert.doesNotMatch(why, /secret|shop:/);
      const wanted = { '': /in clear or as MD5|refuses this user/, '?sslmode=require': /in clear or as MD5|refuses/ };
      const fits = wanted[sslmode as ''] ?? /certificate is not from an authority|does not speak TLS/;
      assert.match(why, fits, sslmode);
    }
  });
}

/** The first message of a SCRAM server, on that of the client. */
const scramFirst = (rounds: string) => (clientFirst: string) => {
  const nonce = /r=(.*)$/.exec(clientFirst)?.[1] ?? '';
  return message('R', `\0\0\0\x0br=${nonce}theirs,s=c2FsdA==,i=${rounds}`);
};
/** Ways to get at the password of a client that has taken up SCRAM: the next message of the server. */
const SECOND_QUESTIONS: Record<string, Script> = {
  'in clear after SCRAM has begun': () => WAYS['in clear'],
  'as MD5 after SCRAM has begun': () => WAYS['as MD5'],
  'for a proof of one round': scramFirst('1'),
  'for a proof of 4,095 rounds': scramFirst('4095'),
  'for a proof of 4,096 rounds that end as one': scramFirst('4096,i=1'),
};
for (const [way, next] of Object.entries(SECOND_QUESTIONS)) {
  it(`nor a server that asks ${way}`, async (t) => {
    const tls = certificate(await temporary(t));
    for (const [sslmode, by] of [
      ['?sslmode=disable', undefined],
      ['?sslmode=require', tls],
    ] as const) {
      const { url, heard, connections } = await impostor(t, WAYS['by SCRAM'], by, next);
      const [why] = await refusal(t, url + sslmode);
      assert.equal(connections(), 1, 'trying again would come to the same');
      assert.match(heard(), /SCRAM-SHA-256.*r=/s, 'SCRAM had begun');
      assert.doesNotMatch(heard(), /secret|md5[0-9a-f]{32}|p=/);
      assert.match(why, /in clear or as MD5, and has not proved|fewer than 4096 rounds.*proved/);
    }
  });
}

it('a server that does as PostgreSQL does gets the proof by SCRAM', async (t) => {
  const { url, heard } = await impostor(t, WAYS['by SCRAM'], undefined, scramFirst('4096'));
  await refusal(t, url);
  assert.match(heard(), /c=biws,r=.*theirs,p=/);
});

it('no value of --store is printed, whatever is wrong with it', async (t) => {
  const { url } = await impostor(t, WAYS['in clear']);
  for (const store of [
    url,
    `mysql://u:${PASSWORD}@h/d`,
    `postgres://u:${PASSWORD}@h`,
    `postgres://u:12/${PASSWORD}@h/d`,
    `postgres://secret:12#${PASSWORD}@h/d`,
  ]) {
    for (const words of [
      ['verify', '--store', store],
      ['verify', store],
      ['serve', '--port', '0', '--store', store],
    ]) {
      const { exit, stdout, stderr } = await program(words, { cwd: await temporary(t) });
      assert.ok(exit === 1 || exit === 2, `${words}: ${exit}`);
      assert.doesNotMatch(stdout + stderr, /secret/, `${words}`);
    }
  }
});

it('each host that was tried is named with its reason, and a missing password is called that', async (t) => {
  const asks = await impostor(t, WAYS['by SCRAM']);
  const port = new URL(asks.url).port;
  const [both] = await refusal(t, `postgres://u@127.0.0.1:1,127.0.0.1:${port}/d`);
  assert.match(
    both,
    /127\.0\.0\.1:1: connection refused; 127\.0\.0\.1:\d+: it asks for a password, and --store has none/,
  );
});

onDatabase('a connection to PostgreSQL', (database) => {
  it('a schema may have the name of a keyword', async (t) => {
    const { store } = await replica(t, database().url('user'));
    assert.equal(store.read.counts().pets, 0);
  });

  it('is refused where a pooler between drops what was asked for', async (t) => {
    const pooler = createServer((client) => {
      const { port } = database();
      const server = new (client.constructor as typeof Socket)().connect(port, '127.0.0.1');
      client.once('data', (first) => {
        const start = first.toString('latin1').replace(/options\0[^\0]*\0/, '');
        const bytes = Buffer.from(start, 'latin1');
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
    const url = `postgres://petstore@127.0.0.1:${port}/postgres?schema=pooled`;
    const { exit, stderr } = await program(['keys', 'create', '--plan', 'free', '--store', url]);
    assert.deepEqual([exit, /a pooler between drops "options".*search_path/.test(stderr)], [1, true], stderr);
    const made = await database().query("SELECT FROM pg_tables WHERE tablename = 'log' AND schemaname = 'public'");
    assert.equal(made.length, 0, 'no table was made where nobody asked for it');
  });

  it('a database that there is not is told at once', async (t) => {
    const url = database().url('x').replace('/postgres?', '/nowhere?');
    const [why, isFinal] = await refusal(t, url);
    assert.match(why, /it has no such database/);
    assert.equal(isFinal, true);
  });

  it('a user who may not enter a database is told so at once', async (t) => {
    await database().query('CREATE ROLE stranger LOGIN');
    await database().query('CREATE DATABASE closed');
    await database().query('REVOKE CONNECT ON DATABASE closed FROM PUBLIC');
    const url = database().url('x').replace('petstore@', 'stranger@').replace('/postgres?', '/closed?');
    const [why, isFinal] = await refusal(t, url);
    assert.match(why, /it does not let this user into the database/);
    assert.equal(isFinal, true);
  });

  it('is not kept from a time when the database was read-only', { timeout: 60_000 }, async (t) => {
    await database().query('CREATE DATABASE frozen');
    const { limiter } = await replica(t, database().url('x').replace('/postgres?', '/frozen?'));
    await database().query('ALTER DATABASE frozen SET default_transaction_read_only = on');
    const end = () =>
      database().query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'frozen'");
    const why = () =>
      limiter.fresh().then(
        () => '',
        (error: Error) => error.message,
      );
    // Again and again: one that is just being opened with the old setting is not listed yet.
    await until(async () => t.signal.aborted || /read-only/.test((await end()) && (await why())));
    await database().query('ALTER DATABASE frozen RESET default_transaction_read_only');
    await until(async () => t.signal.aborted || (await why()) === '');
  });
});
