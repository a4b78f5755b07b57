/** What docs/ tells operators to install: the systemd unit and the nginx configuration, checked and run. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { connect as connectHttp2 } from 'node:http2';
import { type TestContext, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { connect as tlsConnect } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { Agent, fetch, type Headers } from 'undici';
import { flagOf } from '../../src/operator/options.ts';
import { SERVE } from '../../src/operator/serve.ts';
import { command, freePort, type Serving } from '../program.ts';
import { until } from '../until.ts';
import { missing, workplace } from './workplace.ts';

const doc = (name: string) => readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8');

test('the operating guide names every option of serve and every exit status', () => {
  const guide = doc('operating.md');
  for (const key of Object.keys(SERVE)) assert.ok(guide.includes(`\`${flagOf(key)}`), flagOf(key));
  for (const status of [0, 1, 2, 3, 4]) assert.match(guide, new RegExp(`^\\| ${status} \\| `, 'm'));
});

test('the systemd units are accepted by systemd', { skip: missing('systemd-analyze') }, async (t) => {
  const { at } = await workplace(t);
  const units = [
    'petstore.service',
    'petstore.socket',
    'petstore-backup.service',
    'petstore-backup.timer',
    'petstore-failure@.service',
  ];
  for (const name of units) await writeFile(at(name), doc(name).replace(/(?<=^ExecStart=)\S+/m, process.execPath));
  for (const name of units) {
    const { status, stdout, stderr } = spawnSync('systemd-analyze', ['verify', at(name)], { encoding: 'utf8' });
    const said = (stdout + stderr).replace(/^.*Unknown key 'RestartMode'.*\n/m, ''); // systemd knows it from 254 on
    assert.deepEqual([name, status, said], [name, 0, '']);
  }
});

test('the nightly backup keeps as many as it is told, and removes nothing else, and nothing where it fails', async (t) => {
  const { at, cwd, done } = await workplace(t);
  await done('keys create --plan free');
  for (const name of ['bin', 'backups']) mkdirSync(at(name));
  const words = (await command()).map((word) => `'${word}'`).join(' ');
  await writeFile(at('bin/petstore'), `#!/bin/sh\nexec ${words} "$@"\n`, { mode: 0o755 });
  const script = fileURLToPath(new URL('../../docs/petstore-backup.sh', import.meta.url));
  const run = (keep: string, data = 'data') => {
    const env = { ...process.env, PATH: `${at('bin')}:${process.env.PATH}`, PETSTORE_DATA: at(data) };
    return spawnSync(script, [at('backups'), keep], { cwd, env, encoding: 'utf8' });
  };
  const olds = ['petstore-2020-01-01T03-00-00Z', 'petstore-2020-01-02T03-00-00Z', 'petstore-2020-01-03T03-00-00Z'];
  const ahead = ['petstore-2999-01-01T03-00-00Z', 'petstore-2999-01-02T03-00-00Z'];
  const others = ['notes', 'petstore-2020-01-01', 'x petstore-2020-01-01T03-00-00Z'];
  const all = [...others, ...olds, ...ahead];
  for (const name of all) await writeFile(at(`backups/${name}`), '');
  for (const keep of ['0', '-1', 'all', '']) assert.equal(run(keep).status, 2, keep);
  assert.equal(run('1', 'none').status, 1);
  assert.deepEqual(readdirSync(at('backups')).sort(), all.sort(), 'what fails removes nothing');

  const first = run('3');
  assert.equal(first.status, 0, first.stderr);
  assert.match(first.stderr, /^2 backups in .* are named after this moment: they are not counted, and stay$/m);
  const kept = [...others, ...ahead];
  const after = readdirSync(at('backups')).filter((name) => !kept.includes(name));
  const made = after.find((name) => !olds.includes(name))!;
  assert.deepEqual(after.sort(), [...olds.slice(1), made].sort(), 'the oldest went');
  assert.equal(statSync(at(`backups/${made}`)).mode & 0o777, 0o600);
  await done(`restore ${at(`backups/${made}`)} --data again`);
  await wait(1_100); // the name tells the second
  assert.equal(run('1').status, 0);
  const left = readdirSync(at('backups')).filter((name) => !kept.includes(name));
  assert.ok(left.length === 1 && left[0] > made, `the newest alone: ${left}`);
  assert.equal(readdirSync(at('backups')).length, 1 + kept.length);
});

type Workplace = Awaited<ReturnType<typeof workplace>>;

/** Makes `key.pem` and `pem`, and gives what trusts the latter. */
function trusted(t: TestContext, { at }: Workplace): Agent {
  const words = 'req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=api.example -keyout'.split(' ');
  assert.equal(spawnSync('openssl', [...words, at('key.pem'), '-out', at('pem')]).status, 0);
  const dispatcher = new Agent({ connect: { rejectUnauthorized: false } });
  t.after(() => dispatcher.destroy());
  return dispatcher;
}

/** Starts a proxy, and waits until `isUp`. */
async function startProxy(t: TestContext, [file, ...words]: string[], isUp: () => Promise<boolean>): Promise<void> {
  const proxy = spawn(file, words, { stdio: 'ignore' });
  const ended = once(proxy, 'exit');
  t.after(() => proxy.kill('SIGTERM') && ended);
  await until(() => {
    assert.equal(proxy.exitCode, null, `${file} did not start`);
    return isUp().catch(() => false);
  });
}

/** The nginx of docs/nginx.conf on ports, and with a certificate, of the test's own. */
async function startNginx(t: TestContext, place: Workplace, upstream: string) {
  const { cwd, at } = place;
  const dispatcher = trusted(t, place);
  const [tls, plain] = [await freePort(), await freePort()];
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${at(name)};`);
  const config = doc('nginx.conf')
    .replace('listen 443 ssl', `listen 127.0.0.1:${tls} ssl`)
    .replace('listen 80', `listen 127.0.0.1:${plain}`)
    .replace(/ *listen \[::\].*\n/g, '')
    .replace('127.0.0.1:8080', upstream)
    .replace('/etc/letsencrypt/live/api.example/fullchain.pem', at('pem'))
    .replace('/etc/letsencrypt/live/api.example/privkey.pem', at('key.pem'))
    .replaceAll('/var/www/acme', at('acme'))
    .replace('http {', `http {\n${paths.join('\n')}`);
  await writeFile(at('nginx.conf'), config);
  const own = `daemon off; master_process off; pid ${at('pid')}; error_log ${at('error.log')};`;
  const url = `https://127.0.0.1:${tls}`;
  const words = ['nginx', '-p', cwd, '-c', at('nginx.conf'), '-e', at('error.log'), '-g', own];
  await startProxy(t, words, () => fetch(url, { dispatcher }).then(() => true));
  return { url, dispatcher, plain: `http://127.0.0.1:${plain}` };
}

test('behind nginx: the caller’s address, all that the service says, and the errors of one that is away', {
  skip: missing('nginx', '-v') || missing('openssl', 'version'),
}, async (t) => {
  const place = await workplace(t);
  const server = await place.serve('--first-key business --seed demo --trust-proxy 1 --access-log');
  const { url, dispatcher, plain } = await startNginx(t, place, new URL(server.url).host);
  const headers = { authorization: `Bearer ${server.key}`, 'content-type': 'application/json' };
  const ask = async (target: string, more: object = {}, body?: string) => {
    const options = { dispatcher, method: body ? 'POST' : 'GET', headers: { ...headers, ...more }, body };
    const reply = await fetch(url + target, options);
    const text = await reply.text();
    const error = text.startsWith('{') ? JSON.parse(text) : undefined;
    return { status: reply.status, headers: reply.headers, text, code: error?.code };
  };
  assert.equal((await ask('/v1/pets', {}, '{"name":"Rex","categoryId":1}')).status, 201);
  assert.equal((await ask('/v1/pets?limit=1', { 'x-forwarded-for': '203.0.113.7' })).status, 200);
  assert.equal((await ask('/v1//pets')).status, 404, 'paths arrive as they were sent');
  const strict = 'max-age=31536000';
  const page = await ask('/v1/pets?limit=1');
  assert.equal(page.headers.get('strict-transport-security'), strict);
  assert.equal(page.headers.get('link'), '</v1/pets?limit=1&after=1>; rel="next"');
  const { status, headers: sent } = await fetch(`${plain}/v1/pets?limit=1`, { redirect: 'manual' });
  assert.deepEqual([status, sent.get('location')], [308, 'https://api.example/v1/pets?limit=1']);
  mkdirSync(place.at('acme/.well-known/acme-challenge'), { recursive: true });
  await writeFile(place.at('acme/.well-known/acme-challenge/token'), 'proof');
  assert.equal(await (await fetch(`${plain}/.well-known/acme-challenge/token`)).text(), 'proof', 'for a certificate');
  assert.equal(await statusByHttp2(url, '/v1/pets?limit=1', headers.authorization), 200);
  const large = await ask('/v1/pets', {}, `{"name":"${'n'.repeat(70_000)}"}`);
  assert.deepEqual([large.status, large.code], [413, 'body_too_large']);
  assert.ok(large.headers.has('x-request-id'));
  const { key } = await place.json<{ key: string }>('keys create --plan enterprise --per-minute 1 --per-day 9');
  const poor = { authorization: `Bearer ${key}` };
  await ask('/v1/pets', poor);
  const limited = await ask('/v1/pets', poor);
  assert.deepEqual(
    [limited.status, limited.code, limited.headers.get('x-ratelimit-limit')],
    [429, 'rate_limited', '1'],
  );
  assert.ok(Number(limited.headers.get('retry-after')) > 1);

  const unended = `POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: ${headers.authorization}\r\nContent-Length: 9\r\n\r\n`;
  const { port } = new URL(url);
  const others = Array.from({ length: 200 }, () => tlsConnect({ port: Number(port), rejectUnauthorized: false }));
  await Promise.all(others.map((socket) => once(socket, 'secureConnect')));
  for (const socket of others) socket.on('error', () => {}).write(unended);
  let crowded = page;
  await until(async () => {
    crowded = await ask('/v1/pets?limit=1');
    return crowded.status !== 200;
  });
  assert.deepEqual([crowded.status, crowded.code, crowded.headers.get('retry-after')], [429, 'rate_limited', '1']);
  for (const socket of others) socket.destroy();

  await withoutReply(server, ask);
});

type Ask = (target: string) => Promise<{ status: number; headers: Headers; code?: string }>;

/** Whether the kernel holds bytes of a connection for a server, which has not read them. */
function hasUnread({ url }: Serving): boolean {
  const port = Number(new URL(url).port).toString(16).toUpperCase().padStart(4, '0');
  // A line has the local and the remote address, the state (1: established), and the lengths of the two queues.
  return new RegExp(`:${port} \\S+ 01 \\w+:(?!0+ )`).test(readFileSync('/proc/net/tcp', 'latin1'));
}

/** What a proxy says for a service that ends while it has a request, and for one that is not there. */
async function withoutReply(server: Serving, ask: Ask): Promise<void> {
  assert.match(
    server.stderr(),
    /"target":"\/v1\/pets\?limit=1".*"address":"127\.0\.0\.1"/,
    'not what the caller wrote himself',
  );
  server.process.kill('SIGSTOP');
  const lost = ask('/v1/pets');
  await until(() => hasUnread(server));
  await server.kill();
  for (const [reply, code] of [
    [await lost, 'outcome_unknown'],
    [await ask('/v1/pets'), 'unavailable'],
  ] as const) {
    assert.deepEqual([reply.status, reply.code, reply.headers.get('retry-after')], [503, code, '1']);
    assert.equal(reply.headers.get('content-type'), 'application/json; charset=utf-8');
    assert.equal(reply.headers.get('strict-transport-security'), 'max-age=31536000');
    assert.equal(reply.headers.has('x-request-id'), false);
  }
}

test('behind Caddy, with a certificate of its own: the same', { skip: missing('caddy', 'version') }, async (t) => {
  const place = await workplace(t);
  const { at } = place;
  const server = await place.serve('--first-key business --seed demo --trust-proxy 1 --access-log');
  const [tls, plain] = [await freePort(), await freePort()];
  const config = doc('Caddyfile')
    .replace(
      'api.example {',
      `{\nadmin off\nskip_install_trust\nservers {\nprotocols h1 h2\n}\nhttp_port ${plain}\n}\nlocalhost:${tls} {\ntls internal`,
    )
    .replace('127.0.0.1:8080', new URL(server.url).host);
  await writeFile(at('Caddyfile'), config);
  const url = `https://localhost:${tls}`;
  const dispatcher = new Agent({ connect: { rejectUnauthorized: false } });
  t.after(() => dispatcher.destroy());
  const authorization = `Bearer ${server.key}`;
  const ask = async (target: string, more: object = {}, body?: string) => {
    const headers = { authorization, 'content-type': 'application/json', ...more };
    const reply = await fetch(url + target, { dispatcher, method: body ? 'POST' : 'GET', headers, body });
    const text = await reply.text();
    const { code } = text.startsWith('{') ? JSON.parse(text) : {};
    return { status: reply.status, headers: reply.headers, text, code };
  };
  const home = { XDG_DATA_HOME: at('caddy'), XDG_CONFIG_HOME: at('caddy') };
  const words = [
    'env',
    ...Object.entries(home).map((pair) => pair.join('=')),
    'caddy',
    'run',
    '--config',
    at('Caddyfile'),
  ];
  await startProxy(t, [...words, '--adapter', 'caddyfile'], () => ask('/healthz').then(({ status }) => status === 200));

  assert.equal((await ask('/v1/pets', {}, '{"name":"Rex","categoryId":1}')).status, 201);
  const page = await ask('/v1/pets?limit=1', { 'x-forwarded-for': '203.0.113.7' });
  assert.deepEqual([page.status, page.headers.get('strict-transport-security')], [200, 'max-age=31536000']);
  assert.equal(await statusByHttp2(url, '/v1/pets?limit=1', authorization), 200);
  const large = await ask('/v1/pets', {}, `{"name":"${'n'.repeat(70_000)}"}`);
  assert.deepEqual([large.status, large.code], [413, 'body_too_large']);
  const { status, headers } = await fetch(`http://localhost:${plain}/v1/pets`, { redirect: 'manual' });
  assert.deepEqual([status, headers.get('location')?.startsWith('https://localhost')], [308, true]);
  await withoutReply(server, ask);
});

async function statusByHttp2(url: string, path: string, authorization: string): Promise<number> {
  const session = connectHttp2(url, { rejectUnauthorized: false });
  const stream = session.request({ ':path': path, authorization });
  const [{ ':status': status }] = await once(stream, 'response');
  session.destroy();
  return status;
}

test('behind haproxy: a caller cannot choose its address, and JSON while no replica is ready', {
  skip: missing('haproxy', '-v') || missing('openssl', 'version'),
}, async (t) => {
  const place = await workplace(t);
  const { at } = place;
  const server = await place.serve('--first-key business --trust-proxy 1 --access-log');
  const listen = await freePort();
  const dispatcher = trusted(t, place);
  await writeFile(at('pem'), readFileSync(at('key.pem')), { flag: 'a' });
  const config = doc('haproxy.cfg')
    .replace('bind :443', `bind 127.0.0.1:${listen}`)
    .replace('/etc/ssl/petstore/petstore.pem', at('pem'))
    .replace('shop1:8080', new URL(server.url).host)
    .replace('shop2:8080', '127.0.0.1:1'); // one that is away
  await writeFile(at('haproxy.cfg'), config);
  const ask = async (target: string, more: object = {}) => {
    const headers = { authorization: `Bearer ${server.key}`, ...more };
    const reply = await fetch(`https://127.0.0.1:${listen}${target}`, { dispatcher, headers });
    return { status: reply.status, headers: reply.headers, json: (await reply.json()) as { code: string } };
  };
  await startProxy(t, ['haproxy', '-f', at('haproxy.cfg')], async () => (await ask('/readyz')).status === 200);
  assert.equal((await ask('/v1/pets?limit=1', { 'x-forwarded-for': '203.0.113.7' })).status, 200);
  const { stderr } = await server.stop();
  assert.match(stderr, /"target":"\/v1\/pets\?limit=1".*"address":"127\.0\.0\.1"/, 'not what the caller wrote himself');
  const away = await ask('/v1/pets');
  assert.deepEqual([away.status, away.json.code, away.headers.get('retry-after')], [503, 'unavailable', '1']);
  assert.equal(away.headers.get('content-type'), 'application/json; charset=utf-8');
});
