/** What docs/ tells operators to install: the systemd unit and the nginx configuration, checked and run. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { connect as tlsConnect } from 'node:tls';
import { Agent, fetch } from 'undici';
import { flagOf } from '../../src/operator/arguments.ts';
import { SERVE_OPTIONS } from '../../src/operator/options.ts';
import { startNginx, withoutNginx } from '../nginx.ts';
import { freePort } from '../program.ts';
import { workplace } from './workplace.ts';

const doc = (name: string) => readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8');
const missing = (program: string, word: string) =>
  spawnSync(program, [word]).error === undefined ? false : `there is no ${program} on this machine`;

test('the operating guide names every option of serve and every exit status', () => {
  const guide = doc('operating.md');
  for (const key of Object.keys(SERVE_OPTIONS)) assert.ok(guide.includes(`\`${flagOf(key)}`), flagOf(key));
  for (const status of [0, 1, 2, 3, 4]) assert.match(guide, new RegExp(`^\\| ${status} \\| `, 'm'));
});

test('the systemd unit is accepted by systemd', { skip: missing('systemd-analyze', '--version') }, async (t) => {
  const unit = (await workplace(t)).at('petstore.service');
  await writeFile(unit, doc('petstore.service').replace('/usr/local/bin/petstore', process.execPath));
  const { status, stdout, stderr } = spawnSync('systemd-analyze', ['verify', unit], { encoding: 'utf8' });
  assert.deepEqual([status, stdout + stderr], [0, '']);
});

test('behind nginx: the caller’s address, the service’s errors, and those of one that is away', {
  skip: withoutNginx,
}, async (t) => {
  const server = await (await workplace(t)).serve('--first-key business --trust-proxy 1 --access-log');
  const { url, dispatcher } = await startNginx(t, new URL(server.url).host);
  const headers = { authorization: `Bearer ${server.key}`, 'content-type': 'application/json' };
  const ask = async (target: string, more: object = {}, body?: string) => {
    const options = { dispatcher, method: body ? 'POST' : 'GET', headers: { ...headers, ...more }, body };
    const reply = await fetch(url + target, options);
    const text = await reply.text();
    return { status: reply.status, headers: reply.headers, json: text.startsWith('{') ? JSON.parse(text) : undefined };
  };
  assert.equal((await ask('/v1/pets', {}, '{"name":"Rex","categoryId":1}')).status, 201);
  assert.equal((await ask('/v1/pets?limit=1', { 'x-forwarded-for': '203.0.113.7' })).status, 200);
  assert.equal((await ask('/v1//pets')).status, 404, 'paths arrive as they were sent');
  const large = await ask('/v1/pets', {}, `{"name":"${'n'.repeat(70_000)}"}`);
  assert.deepEqual([large.status, large.json.code], [413, 'body_too_large']);
  assert.ok(large.headers.has('x-request-id'));

  const unended = `POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: ${headers.authorization}\r\nContent-Length: 9\r\n\r\n`;
  const { port } = new URL(url);
  const others = Array.from({ length: 200 }, () => tlsConnect({ port: Number(port), rejectUnauthorized: false }));
  await Promise.all(others.map((socket) => once(socket, 'secureConnect')));
  for (const socket of others) socket.on('error', () => {}).write(unended);
  let crowded = await ask('/v1/pets?limit=1');
  for (let i = 0; i < 100 && crowded.status === 200; i++) crowded = await ask('/v1/pets?limit=1');
  assert.deepEqual(
    [crowded.status, crowded.json?.code, crowded.headers.get('retry-after')],
    [429, 'rate_limited', '1'],
  );
  for (const socket of others) socket.destroy();

  const { stderr } = await server.stop();
  assert.match(stderr, /"target":"\/v1\/pets\?limit=1".*"address":"127\.0\.0\.1"/, 'not what the caller wrote himself');
  const away = await ask('/v1/pets');
  assert.deepEqual([away.status, away.json.code, away.headers.get('retry-after')], [503, 'outcome_unknown', '1']);
  assert.equal(away.headers.get('content-type'), 'application/json; charset=utf-8');
  assert.equal(away.headers.has('x-request-id'), false);
});

const withoutHaproxy = missing('haproxy', '-v') || missing('openssl', 'version');

test('behind haproxy: a caller cannot choose its address, and JSON while no replica is ready', {
  skip: withoutHaproxy,
}, async (t) => {
  const { at, serve } = await workplace(t);
  const server = await serve('--first-key business --trust-proxy 1 --access-log');
  const listen = await freePort();
  const words = 'req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=api.example -keyout'.split(' ');
  assert.equal(spawnSync('openssl', [...words, at('key.pem'), '-out', at('pem')]).status, 0);
  await writeFile(at('pem'), readFileSync(at('key.pem')), { flag: 'a' });
  const config = doc('haproxy.cfg')
    .replace('bind :443', `bind 127.0.0.1:${listen}`)
    .replace('/etc/ssl/petstore/petstore.pem', at('pem'))
    .replace('shop1:8080', new URL(server.url).host)
    .replace('shop2:8080', '127.0.0.1:1'); // one that is away
  await writeFile(at('haproxy.cfg'), config);
  const haproxy = spawn('haproxy', ['-f', at('haproxy.cfg')], { stdio: 'ignore' });
  const ended = once(haproxy, 'exit');
  t.after(() => haproxy.kill('SIGTERM') && ended);
  const dispatcher = new Agent({ connect: { rejectUnauthorized: false } });
  t.after(() => dispatcher.close());
  const ask = async (target: string, more: object = {}) => {
    const headers = { authorization: `Bearer ${server.key}`, ...more };
    const reply = await fetch(`https://127.0.0.1:${listen}${target}`, { dispatcher, headers });
    return { status: reply.status, headers: reply.headers, json: (await reply.json()) as { code: string } };
  };
  const isUp = async () => (await ask('/readyz').catch(() => undefined))?.status === 200;
  for (let i = 0; !(await isUp()); i++) {
    assert.ok(i < 200 && haproxy.exitCode === null, 'haproxy did not start');
    await wait(50);
  }
  assert.equal((await ask('/v1/pets?limit=1', { 'x-forwarded-for': '203.0.113.7' })).status, 200);
  const { stderr } = await server.stop();
  assert.match(stderr, /"target":"\/v1\/pets\?limit=1".*"address":"127\.0\.0\.1"/, 'not what the caller wrote himself');
  const away = await ask('/v1/pets');
  assert.deepEqual([away.status, away.json.code, away.headers.get('retry-after')], [503, 'unavailable', '1']);
  assert.equal(away.headers.get('content-type'), 'application/json; charset=utf-8');
});
