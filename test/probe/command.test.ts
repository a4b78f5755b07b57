/** `petstore probe`: what it prints, keeps and compares, how it ends, and before what it stays upright. */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import net, { type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { freePort, program, temporary } from '../program.ts';
import { exchange } from '../raw.ts';
import { type Fault, proxyFor } from './proxy.ts';

/** The command before a gateway with a fault. */
async function gatewayWith(t: TestContext, fault: Fault) {
  const port = await freePort();
  const through = await proxyFor(t, port, fault);
  const run = (...words: string[]) => probe(port, through, ...words);
  return { port, through, run };
}
const probe = (port: number, through: string, ...words: string[]) =>
  program(['probe', 'gateway', '--listen', `127.0.0.1:${port}`, '--through', through, ...words]);

/** A listener that does this with each connection. */
async function listener(t: TestContext, serve: (socket: net.Socket) => void): Promise<string> {
  const sockets = new Set<net.Socket>();
  const server = net.createServer((socket) => {
    sockets.add(socket.on('error', () => {}));
    serve(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const UNDERSCORE: Fault = { head: (lines) => lines.filter((line) => !line.startsWith('X_Under')) };

test('a table with the evidence, JSON in its shape, JUnit, what may break, and what has changed', async (t) => {
  const dir = await temporary(t);
  const at = (name: string) => join(dir, name);
  const only = ['--only', 'header-underscore,header-unknown,reply-date'];
  const { port, through, run } = await gatewayWith(t, UNDERSCORE);

  const table = await run(...only);
  assert.equal(table.exit, 1, table.stderr);
  assert.match(table.stdout, /^header-unknown +same +GET \/…\/pets +200$/m);
  assert.match(
    table.stdout,
    /^header-underscore +breaks +GET \/…\/pets +200 +RFC 9110 5\.1: X_Under is gone\n +sent +GET .*X_Under: 1.*\n +arrived +GET .*\n +came +HTTP\/1\.1 200 OK/m,
  );
  assert.match(table.stdout, /^3 cases: 2 same, 0 allowed, 1 breaks$/m);
  assert.equal(table.stderr, '1 case breaks: header-underscore\n');

  const saved = await run(...only, '--json', '--save', at('run.json'), '--junit', at('run.xml'));
  const found = JSON.parse(saved.stdout);
  assert.deepEqual(Object.keys(found), ['through', 'at', 'cases']);
  assert.equal(found.through, through);
  assert.ok(Date.parse(found.at) > Date.now() - 60_000);
  assert.deepEqual(
    found.cases.map(({ id, verdict }: { id: string; verdict: string }) => `${id} ${verdict}`),
    ['header-unknown same', 'header-underscore breaks', 'reply-date same'],
  );
  for (const one of found.cases)
    assert.deepEqual(Object.keys(one), ['id', 'verdict', 'rule', 'sent', 'arrived', 'came', 'why']);
  assert.deepEqual(JSON.parse(await readFile(at('run.json'), 'utf8')), found);
  const xml = await readFile(at('run.xml'), 'utf8');
  assert.match(xml, /tests="3" failures="1"/);
  assert.match(
    xml,
    /name="header-underscore"[^>]*><failure message="breaks: RFC 9110 5\.1: X_Under is gone; sent GET /,
  );

  await writeFile(at('accept'), '# of old\nheader-underscore # nobody sends one\nreply-date\n');
  const accepted = await run(...only, '--accept', at('accept'));
  assert.equal(accepted.exit, 0, accepted.stderr);
  assert.match(accepted.stdout, /X_Under is gone \(accepted\)/);
  assert.match(accepted.stdout, /accepted, though nothing breaks: reply-date/);

  assert.equal((await run(...only, '--against', at('run.json'))).exit, 0, 'it breaks, but as before');
  const mended = await probe(port, `http://127.0.0.1:${port}`, ...only, '--against', at('run.json'), '--json');
  assert.equal(mended.exit, 1);
  assert.equal(mended.stderr, '1 case changed: header-underscore\n');
  const [, changed] = JSON.parse(mended.stdout).cases;
  assert.deepEqual([changed.verdict, changed.changed], ['same', 'it was breaks: X_Under is gone']);
});

test('what breaks decides the status though nobody reads the table', async (t) => {
  const { port, through } = await gatewayWith(t, UNDERSCORE);
  const words = [
    'probe',
    'gateway',
    '--listen',
    `127.0.0.1:${port}`,
    '--through',
    through,
    '--only',
    'header-underscore',
  ];
  const shell = ['bash', '-c', 'exec 3>&1; { "$@"; echo "status $?" >&3; } | true', 'bash'];
  const { stdout } = await program(words, { before: shell });
  assert.equal(stdout, 'status 1\n');
});

test('wrong words and files: exit 2 and 1, in one sentence', async (t) => {
  const dir = await temporary(t);
  const [port, file] = [await freePort(), join(dir, 'file')];
  await writeFile(file, 'header-hots\n');
  const itself = `http://127.0.0.1:${port}`;
  const told = async (...words: string[]) => {
    const { exit, stderr, stdout } = await probe(port, itself, '--only', 'header-host', ...words);
    assert.equal(stdout, '');
    return `${exit} ${stderr.split('\n')[0]}`;
  };
  assert.equal(
    await told('--accept', file),
    '2 petstore probe gateway: there is no case header-hots; did you mean header-host?',
  );
  assert.match(await told('--accept', join(dir, 'none')), /^1 .*none: no such file or directory$/);
  assert.match(await told('--against', file), /^1 .*file is not a report of a whole run of probe gateway/);
  for (const run of [{ cases: [] }, { cases: [{ id: 'header-host', verdict: 'same', why: '' }], error: 'lost' }]) {
    await writeFile(file, JSON.stringify(run));
    assert.match(await told('--against', file), /^1 .*file is not a report of a whole run of probe gateway/);
  }
  const unkept = await probe(
    port,
    itself,
    '--only',
    'header-host',
    '--json',
    '--save',
    dir,
    '--junit',
    join(dir, 'xml'),
  );
  assert.match(unkept.stderr, /directory/);
  assert.deepEqual(
    [unkept.exit, JSON.parse(unkept.stdout).cases.length],
    [1, 1],
    'what was found is told all the same',
  );
  assert.match(await readFile(join(dir, 'xml'), 'utf8'), /tests="1" failures="0"/);
  const missing = await program(['probe', 'gateway', '--listen', '127.0.0.1:1']);
  assert.match(`${missing.exit} ${missing.stderr}`, /^2 petstore probe gateway: --through is missing/);
  const unknown = await probe(port, itself, '--only', 'lost-gte');
  assert.match(
    `${unknown.exit} ${unknown.stderr}`,
    /^2 petstore probe gateway: there is no case lost-gte; did you mean lost-get\?/,
  );
  const taken = await listener(t, () => {});
  const used = await probe(Number(new URL(taken).port), itself);
  assert.match(`${used.exit} ${used.stderr}`, /^1 .*address already in use/);
});

test('a gateway that is not there, answers by itself, closes at once or says nothing: exit 1 and one sentence', async (t) => {
  const gone = await freePort();
  const answers = await listener(t, (socket) =>
    socket.on('data', () => socket.end('HTTP/1.1 200 \x1b[31mFine\r\nContent-Length: 0\r\n\r\n')),
  );
  const closes = await listener(t, (socket) => socket.destroy());
  const silent = await listener(t, () => {});
  const banner = await listener(t, (socket) => socket.write('SSH-2.0-OpenSSH_9.2\r\n'));
  const farewell = await listener(t, (socket) => socket.end('220 mail ready\r\n\r\n'));
  const cases: [string, RegExp][] = [
    [`http://127.0.0.1:${gone}`, /^cannot reach http:\/\/127\.0\.0\.1:\d+: connection refused\n$/],
    [
      answers,
      /^http:\S+ answers HTTP\/1\.1 200 \\x1b\[31mFine, but does not reach the probe: point the gateway at 127\.0\.0\.1:\d+\n$/,
    ],
    [closes, /^cannot reach http:\S+: it closes the connection without a reply\n$/],
    [silent, /^cannot reach http:\S+: no answer came in time\n$/],
    [banner, /^cannot reach http:\S+: the answer is not HTTP: SSH-2\.0-OpenSSH_9\.2\n$/],
    [farewell, /^cannot reach http:\S+: the answer is not HTTP: 220 mail ready\n$/],
  ];
  const tried = cases.map(async ([through, message]) => {
    const { exit, stdout, stderr } = await probe(await freePort(), through);
    assert.match(stderr, message);
    assert.deepEqual([exit, stdout], [1, '']);
  });
  await Promise.all(tried);
});

test('where nothing could be tried or the gateway is lost midway there is a report all the same, and exit 1', async (t) => {
  const dir = await temporary(t);
  const at = (name: string) => join(dir, name);
  const gone = await probe(
    await freePort(),
    'http://127.0.0.1:9',
    '--json',
    '--junit',
    at('gone.xml'),
    '--save',
    at('gone'),
  );
  const sentence = 'cannot reach http://127.0.0.1:9: connection refused';
  assert.deepEqual([gone.exit, gone.stderr], [1, `${sentence}\n`]);
  const { through, cases, error } = JSON.parse(gone.stdout);
  assert.deepEqual([through, cases, error], ['http://127.0.0.1:9', [], sentence]);
  const xml = await readFile(at('gone.xml'), 'utf8');
  assert.match(xml, /tests="1" failures="0" errors="1"/);
  assert.match(xml, new RegExp(`name="gateway"[^>]*><error message="${sentence}"/>`));
  await assert.rejects(readFile(at('gone')), /ENOENT/, 'nothing is kept to compare with');

  const key = ['--key', 'ps_live_none'];
  const service = await program([
    'probe',
    'service',
    'http://127.0.0.1:9',
    '--through',
    'http://127.0.0.1:9',
    ...key,
    '--json',
  ]);
  assert.deepEqual([service.exit, JSON.parse(service.stdout).error], [1, sentence]);

  const lost = await (await gatewayWith(t, { diesAfter: 3 })).run('--json', '--junit', at('lost.xml'));
  assert.equal(lost.exit, 1);
  assert.match(lost.stderr, /^the gateway was lost after \d+ of \d+ cases: cannot reach .*: connection refused\n$/);
  assert.equal(`${JSON.parse(lost.stdout).error}\n`, lost.stderr);
  assert.match(await readFile(at('lost.xml'), 'utf8'), /errors="1" .*\n.*<error message="the gateway was lost after/);
});

test('a reply that never comes and a connection that ends are told apart', async (t) => {
  const why = async (ends: boolean) => {
    const port = await freePort();
    let connections = 0;
    const through = await listener(t, (socket) => {
      const upstream = net.connect(port, '127.0.0.1').on('error', () => {});
      socket.on('data', (bytes) => upstream.write(bytes)).on('close', () => upstream.destroy());
      if (connections++ === 0) upstream.pipe(socket);
      else if (ends) upstream.on('data', () => socket.end());
    });
    const { stdout } = await probe(port, through, '--only', 'continue-passed,reply-9k,pipelined', '--json');
    return JSON.parse(stdout).cases.map((one: { why: string }) => one.why);
  };
  const [open, ended] = await Promise.all([why(false), why(true)]);
  for (const one of open) assert.match(one, /no whole reply came in time$/);
  for (const one of ended) assert.match(one, /the connection ended without a whole reply$/);
});

const QUICK =
  'header-host,header-via,body-chunked,method-head,reply-429,reply-trailers,lost-post,pipelined,both-lengths';

test('one that rewrites hosts, speaks HTTP/1.0 alone, is slow, or mixes connections up is judged, and nothing hangs', async (t) => {
  const rewritten = (lines: string[]) =>
    lines.map((line) => (line.startsWith('Host: ') ? 'Host: origin.internal' : line));
  const renaming = await gatewayWith(t, { head: rewritten });
  const renamed = await renaming.run('--only', 'header-host,reply-429');
  assert.equal(renamed.exit, 0, renamed.stdout);
  assert.match(renamed.stdout, /^header-host +allowed .* RFC 9110 3\.7: the gateway rewrites Host/m);
  const old = await gatewayWith(t, { isOld: true });
  const asOld = await old.run('--only', QUICK, '--json');
  const verdicts = Object.fromEntries(
    JSON.parse(asOld.stdout).cases.map(({ id, verdict }: { id: string; verdict: string }) => [id, verdict]),
  );
  assert.deepEqual([verdicts.pipelined, verdicts['reply-429'], verdicts['header-host']], ['allowed', 'same', 'same']);
  const slow = await gatewayWith(t, { delayMs: 700 });
  assert.equal((await slow.run('--only', QUICK)).exit, 0);
  const mixing = await mixer(t);
  const mixed = await probe(mixing.port, mixing.through, '--only', QUICK, '--json');
  assert.equal(mixed.exit, 1);
  assert.match(mixed.stdout, /"why": "the reply to another request came"/);
});

/** Gives the replies of one connection to the next. */
async function mixer(t: TestContext) {
  const port = await freePort();
  let waiting: net.Socket | undefined;
  let count = 0;
  const through = await listener(t, (socket) => {
    const to = count++ < 1 ? socket : waiting;
    waiting = socket;
    const upstream = net.connect(port, '127.0.0.1').on('error', () => {});
    socket.on('data', (bytes) => upstream.write(bytes)).on('close', () => setTimeout(() => upstream.destroy(), 500));
    upstream.on('data', (bytes) => (to ?? socket).writable && (to ?? socket).write(bytes));
  });
  return { port, through };
}

test('strangers at the listener are answered 421 and counted in no case; a balancer may ask for health', async (t) => {
  const port = await freePort();
  const asked: string[] = [];
  const through = await listener(t, (socket) => {
    const upstream = net.connect(port, '127.0.0.1').on('error', () => {});
    socket.pipe(upstream).pipe(socket);
    if (asked.length > 0) return;
    asked.push('');
    for (const path of ['/v1/pets', '/probe-000000000000-1/pets', '/readyz']) {
      const bytes = `GET ${path} HTTP/1.1\r\nHost: x\r\nX-Probe: probe-0-1\r\n\r\n`;
      exchange(port, bytes).then(([{ status }]) => asked.push(`${path} ${status}`));
    }
  });
  const { exit, stdout } = await probe(port, through, '--only', 'idle-4');
  assert.equal(exit, 0, stdout);
  assert.deepEqual(asked.sort(), ['', '/probe-000000000000-1/pets 421', '/readyz 200', '/v1/pets 421']);
  assert.match(stdout, /^2 requests that are none of the probe's were answered 421$/m);
});
