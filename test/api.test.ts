/** Runs the table against the real program, and after it what needs a clock that can be set or a store that fails. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeKey } from '../src/access/keys.ts';
import { CATALOGUE, type ErrorCode } from '../src/http/errors.ts';
import { flagOf } from '../src/operator/arguments.ts';
import { SERVE_OPTIONS } from '../src/operator/settings.ts';
import { StoreError } from '../src/store/model.ts';
import { openapiDocument } from '../src/web/openapi.ts';
import { GROUPS, type Group, type Row } from './api/table.ts';
import { program, serveProgram } from './program.ts';
import { assertCommon, assertError, exchange } from './raw.ts';
import { startService } from './service.ts';
import { checkReply } from './web/schema.ts';

const SEED = new URL('../data/seed.json', import.meta.url).pathname;
const DOCUMENT = openapiDocument({ baseUrl: 'http://x/v1', stagingBaseUrl: 'http://y/v1' });
/** The table is run on either engine: where this names a database, on that one. */
const DATABASE = process.env.PETSTORE_TEST_STORE;
/** Codes that a row has shown. The last test holds them against the catalogue. */
const seen = new Set<ErrorCode>();

for (const group of GROUPS) {
  test(`${group.name} (serve ${group.serve.join(' ')})`, async (t) => {
    const dir = mkdtempSync(join(tmpdir(), 'petstore-'));
    const place =
      DATABASE === undefined ? ['--data', dir] : ['--store', `${DATABASE}?schema=api${GROUPS.indexOf(group)}`];
    const served = await serveProgram([...place, '--seed', SEED, '--first-key', 'business', ...group.serve]);
    t.after(async () => {
      await served.stop();
      rmSync(dir, { recursive: true });
    });
    const keys = await keysFor(group, served.key, place);
    for (const row of group.rows) await t.test(titleOf(row), () => tryRow(served.url.slice(0, -3), row, keys));
    const { stderr } = await served.stop();
    for (const line of group.logs ?? []) assert.match(stderr, line);
  });
}

/** The texts that rows send as keys, by the name they use. */
async function keysFor(group: Group, first: string, place: string[]): Promise<Map<string, string>> {
  const keys = new Map([
    ['first', `Bearer ${first}`],
    ['lower-case scheme', `bearer ${first}`],
    ['mistyped', `Bearer ${first.slice(0, -1)}${first.endsWith('a') ? 'b' : 'a'}`],
    ['unknown', `Bearer ${makeKey('production')}`],
    ['production', `Bearer ${makeKey('production')}`],
    ['staging', `Bearer ${makeKey('staging')}`],
  ]);
  const made: Record<string, string[]> = {
    second: ['--plan', 'pro'],
    'one a minute': ['--plan', 'enterprise', '--per-minute', '1', '--per-day', '100'],
  };
  for (const [name, plan] of Object.entries(made)) {
    if (!group.rows.some((row) => row.key === name)) continue;
    const { exit, stdout, stderr } = await program(['keys', 'create', ...place, ...plan]);
    assert.equal(exit, 0, stderr);
    keys.set(name, `Bearer ${stdout.trim().split('\n').at(-1)}`);
  }
  return keys;
}

function titleOf({ method, path, status, code }: Row): string {
  return `${method} ${path.slice(0, 60)} → ${status} ${code ?? ''}`;
}

async function tryRow(origin: string, row: Row, keys: Map<string, string>): Promise<void> {
  const headers = new Headers(row.headers);
  if (row.key !== null) headers.set('authorization', keys.get(row.key ?? 'first') as string);
  const body = row.text ?? (row.body === undefined ? undefined : JSON.stringify(row.body));
  if (body !== undefined && !headers.has('content-type')) headers.set('content-type', 'application/json');
  const reply = await fetch(origin + row.path, { method: row.method, headers, body });
  await assertReply(reply, row);
}

async function assertReply(reply: Response, row: Row): Promise<void> {
  const text = await reply.text();
  assert.equal(reply.status, row.status, text);
  if (row.path.startsWith('/v1/')) {
    const { method, path } = row;
    assert.deepEqual(checkReply(DOCUMENT, method, path, reply.status, reply.headers, text), []);
  }
  if (row.path.startsWith('/v1') || row.code !== undefined) assertCommon(reply.headers);
  if (row.code !== undefined) assertErrorBody(reply, text, row);
  for (const part of [row.says ?? []].flat()) assert.ok(text.includes(part) || row.code !== undefined, text);
  if (row.json !== undefined) assert.deepEqual(JSON.parse(text), row.json);
  for (const [name, wanted] of Object.entries(row.has ?? {})) {
    const value = reply.headers.get(name);
    if (wanted instanceof RegExp) assert.match(value ?? '', wanted, name);
    else assert.equal(value, wanted, name);
  }
}

function assertErrorBody(reply: Response, text: string, { status, code, says }: Row): void {
  assert.equal(reply.headers.get('content-type'), 'application/json; charset=utf-8');
  const body = JSON.parse(text);
  assert.deepEqual(Object.keys(body), ['code', 'message', 'status']);
  assert.equal(body.code, code, text);
  assert.equal(body.status, status);
  for (const part of says === undefined ? [] : [says].flat()) assert.ok(body.message.includes(part), body.message);
  seen.add(code as ErrorCode);
}

const error = (status: number, code: ErrorCode, rest: Partial<Row> = {}): Row => {
  return { method: 'GET', path: '/v1', status, code, ...rest };
};
const newPet = (headers: Record<string, string> = {}): RequestInit => ({
  method: 'POST',
  headers: { 'content-type': 'application/json', ...headers },
  body: '{"name":"Rex","categoryId":9007199254740993}',
});

test('an int64 is exact to the last digit, in and out', async () => {
  const service = await startService();
  const { text: key } = await service.makeKey();
  for (const id of ['9007199254740993', '-9007199254740993', '9223372036854775807', '-9223372036854775808', '0']) {
    const body = `{"name":"Rex","categoryId":${id}}`;
    const made = await service.fetch('/v1/pets', { key, ...newPet(), body });
    const pet = `{"id":${/\d+$/.exec(made.headers.get('location') as string)?.[0]},"name":"Rex","categoryId":${id},"status":"available"}`;
    assert.equal(await made.text(), pet);
    assert.equal(await (await service.fetch(made.headers.get('location') as string, { key })).text(), pet);
  }
  await service.close();
});

test('the deprecated operation is gone from its removal date on, and not before', async () => {
  const service = await startService();
  const { text: key } = await service.makeKey();
  await service.fetch('/v1/pets', { key, ...newPet() });
  service.clock.setWall(Date.UTC(2030, 11, 5) - 1);
  assert.equal((await service.fetch('/v1/pets/1', { key })).status, 200);
  service.clock.setWall(Date.UTC(2030, 11, 5));
  for (const path of ['/v1/pets/1', '/v1/pets/999']) {
    const has = { sunset: 'Thu, 05 Dec 2030 00:00:00 GMT', link: '</v1/pets>; rel="successor-version"' };
    await assertReply(await service.fetch(path, { key }), error(410, 'gone', { has, says: 'GET /v1/pets' }));
  }
  assert.equal((await service.fetch('/v1/pets', { key })).status, 200);
  await service.close();
});

test('before the store is open and while it drains: 503, with a time to come back', async () => {
  const service = await startService({ starting: true });
  const { text: key } = await service.makeKey();
  const notNow = error(503, 'unavailable', { has: { 'retry-after': '1' } });
  await assertReply(await service.fetch('/readyz'), notNow);
  await assertReply(await service.fetch('/openapi.json'), notNow);
  await assertReply(await service.fetch('/v1/pets', { key }), notNow);
  assert.equal((await service.fetch('/healthz')).status, 200);
  service.open();
  assert.equal((await service.fetch('/readyz')).status, 200);
  const drained = service.app.drain(2_000);
  await assertReply(await service.fetch('/v1/pets', { key }), {
    ...notNow,
    has: { ...notNow.has, connection: 'close' },
  });
  await drained;
  await service.close();
});

test('while the engine cannot serve, the service is up and not ready', async () => {
  let isReady = false;
  const service = await startService({ isReady: () => isReady });
  await assertReply(await service.fetch('/readyz'), error(503, 'unavailable', { has: { 'retry-after': '1' } }));
  assert.equal((await service.fetch('/healthz')).status, 200);
  await assertReply(await service.fetch('/nothing'), error(404, 'not_found'));
  isReady = true;
  assert.equal((await service.fetch('/readyz')).status, 200);
  await service.close();
});

test('a store that fails is told for what it is, and a bug tells nothing of the inside', async () => {
  const service = await startService();
  const { text: key } = await service.makeKey();
  const rows: [Error, Row][] = [
    [new StoreError('full', '/data/log: ENOSPC'), error(507, 'storage_full')],
    [new StoreError('unknown', '/data/log: EIO'), error(503, 'outcome_unknown')],
    [new StoreError('unavailable', 'ECONNREFUSED'), error(503, 'unavailable', { has: { 'retry-after': '1' } })],
    [new StoreError('busy', '10000 writes wait'), error(503, 'unavailable', { has: { 'retry-after': '1' } })],
    [new Error('secret of /src/store'), error(500, 'internal_error')],
  ];
  for (const [failure, row] of rows) {
    service.store.write = () => Promise.reject(failure);
    const reply = await service.fetch('/v1/pets', { key, ...newPet() });
    assert.doesNotMatch(await reply.clone().text(), /\/data|src|secret|10000|CONN|at /);
    await assertReply(reply, row);
  }
  assert.equal(service.logged.length, 1, 'the bug is logged, what the disk did is not a bug');
  await service.app.drain(0);
});

test('the first request under an Idempotency-Key that is still under way: 409', async () => {
  const service = await startService();
  const { text: key } = await service.makeKey();
  const body = '{"name":"Rex","categoryId":1}';
  const head = `POST /v1/pets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nIdempotency-Key: a\r\n`;
  const request = `${head}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  // Both arrive in one packet, so the second is looked at before the disk can have answered for the first.
  const [first, second] = await exchange(service.port, request + request, { replies: 2 });
  assert.equal(first.status, 201);
  assertError(second, 409, 'idempotency_in_flight');
  seen.add('idempotency_in_flight');
  assert.equal(service.store.read.counts().pets, 1);
  await service.close();
});

test('limits: refused with a time to wait, then banned', async () => {
  const service = await startService({ banAfter: 2 });
  const { text: key } = await service.makeKey('enterprise', { perMinute: 1, perDay: 10 });
  const ask = (headers: Record<string, string>, row: Row) =>
    service.fetch('/v1/pets', { key }).then((reply) => assertReply(reply, { ...row, has: headers }));
  await ask({ 'x-ratelimit-remaining': '0' }, { method: 'GET', path: '/v1', status: 200 });
  await ask({ 'retry-after': '61', 'x-ratelimit-remaining': '0' }, error(429, 'rate_limited'));
  await ask({ 'retry-after': '121', 'x-ratelimit-remaining': '0' }, error(429, 'key_banned'));
  await service.close();
});

test('every option of serve is in the table', () => {
  // Every group is started with the first four; the others have tests in rooms of their own.
  const always = ['data', 'port', 'seed', 'firstKey', 'store', 'lab'];
  const tried = new Set(GROUPS.flatMap((group) => group.serve));
  const missing = Object.keys(SERVE_OPTIONS).filter((name) => !always.includes(name) && !tried.has(flagOf(name)));
  assert.deepEqual(missing, []);
});

test('every code of the catalogue is shown by a row', () => {
  // These need bytes that no client library sends; test/http/edges.test.ts shows them.
  const raw: ErrorCode[] = ['request_timeout', 'expectation_failed', 'headers_too_large'];
  const missing = Object.keys(CATALOGUE).filter(
    (code) => !seen.has(code as ErrorCode) && !raw.includes(code as ErrorCode),
  );
  assert.deepEqual(missing, []);
});
