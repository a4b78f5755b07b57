/** Runs the table of the contract, and after it what needs a clock that can be set or a store that fails. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { CATALOGUE, type ErrorCode } from '../src/http/errors.ts';
import { StoreError } from '../src/store/model.ts';
import { assertReply, seen, textsOf, titleOf, tryGroup, tryRow } from './api/row.ts';
import { GROUPS, type Row } from './api/table.ts';
import { program, serving, temporary } from './program.ts';
import { exchange, PET, requestsOf } from './raw.ts';
import { type ServiceOptions, serviceFor } from './service.ts';

const SEED_FILE = new URL('../data/seed.json', import.meta.url).pathname;

for (const group of GROUPS) {
  test(group.name, async (t) => {
    await tryGroup(t, await serviceFor(t, group.settings), group);
  });
}

for (const group of GROUPS.filter(({ settings }) => Object.keys(settings).length > 0)) {
  test(`${group.name}, as options of the program`, async (t) => {
    const data = ['--data', await temporary(t)];
    const flagOf = (name: string) => `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
    const options = Object.entries(group.settings).flatMap(([name, value]) => [flagOf(name), `${value}`]);
    const served = await serving(t, [...data, '--seed', SEED_FILE, '--first-key', 'business', ...options]);
    const limits = ['--per-minute', '1', '--per-day', '100'];
    const { exit, stdout, stderr } = await program(['keys', 'create', ...data, '--plan', 'enterprise', ...limits]);
    assert.equal(exit, 0, stderr);
    const keys = textsOf(served.key, 'none', stdout.trim().split('\n').at(-1) as string, 'none');
    for (const row of group.rows) await t.test(titleOf(row), () => tryRow(served.url.slice(0, -3), row, keys));
  });
}

const error = (status: number, code: ErrorCode, rest: Partial<Row> = {}): Row => {
  return { method: 'GET', path: '/v1', status, code, ...rest };
};
const newPet = (body = PET): RequestInit => {
  return { method: 'POST', headers: { 'content-type': 'application/json' }, body };
};

/** In this process, with a key; it ends with the test. */
async function start(t: TestContext, options?: ServiceOptions) {
  const service = await serviceFor(t, options);
  const ask = (path: string, init: RequestInit = {}) => service.fetch(path, { key: service.key, ...init });
  return { service, ask };
}

test('the deprecated operation is gone from its removal date on, and not before', async (t) => {
  const { service, ask } = await start(t);
  await ask('/v1/pets', newPet());
  service.clock.setWall(Date.UTC(2030, 11, 5) - 1);
  assert.equal((await ask('/v1/pets/1')).status, 200);
  service.clock.setWall(Date.UTC(2030, 11, 5));
  for (const path of ['/v1/pets/1', '/v1/pets/999']) {
    const has = { sunset: 'Thu, 05 Dec 2030 00:00:00 GMT', link: '</v1/pets>; rel="successor-version"' };
    await assertReply(await ask(path), error(410, 'gone', { has, says: 'GET /v1/pets' }));
  }
  assert.equal((await ask('/v1/pets')).status, 200);
});

const AGAIN = { has: { 'retry-after': '1' } };

test('before the store is open and while it drains: 503, with a time to come back', async (t) => {
  const { service, ask } = await start(t, { starting: true });
  const notNow = error(503, 'unavailable', AGAIN);
  for (const path of ['/readyz', '/openapi.json', '/v1/pets']) await assertReply(await ask(path), { ...notNow, path });
  assert.equal((await ask('/healthz')).status, 200);
  service.open();
  assert.equal((await ask('/readyz')).status, 200);
  const drained = service.service.drain(2_000);
  await assertReply(await ask('/v1/pets'), { ...notNow, has: { ...AGAIN.has, connection: 'close' } });
  await drained;
});

test('while the engine cannot serve, the service is up and not ready', async (t) => {
  let isReady = false;
  const { ask } = await start(t, { isReady: () => isReady });
  await assertReply(await ask('/readyz'), { ...error(503, 'unavailable', AGAIN), path: '/readyz' });
  assert.equal((await ask('/healthz')).status, 200);
  await assertReply(await ask('/nothing'), { ...error(404, 'not_found'), path: '/nothing' });
  isReady = true;
  assert.equal((await ask('/readyz')).status, 200);
});

test('a store that fails is told for what it is, and a bug tells nothing of the inside', async (t) => {
  const { service, ask } = await start(t);
  const rows: [Error, Row][] = [
    [new StoreError('full', '/data/log: ENOSPC'), error(507, 'storage_full', { says: 'the disk is full' })],
    [
      new StoreError('bound', 'the store has reached its maximum of 16 MB'),
      error(507, 'storage_full', { says: '16 MB' }),
    ],
    [new StoreError('unknown', '/data/log: EIO'), error(503, 'outcome_unknown')],
    [new StoreError('unavailable', 'ECONNREFUSED'), error(503, 'unavailable', AGAIN)],
    [new StoreError('busy', '10000 writes wait'), error(503, 'unavailable', AGAIN)],
    [new Error('secret of /src/store'), error(500, 'internal_error')],
  ];
  for (const [failure, row] of rows) {
    service.store.write = async () => {
      throw failure;
    };
    const reply = await ask('/v1/pets', newPet());
    assert.doesNotMatch(await reply.clone().text(), /\/data|src|secret|10000|CONN|at /);
    await assertReply(reply, row);
  }
  assert.equal(service.logged.length, 1, 'the bug is logged, what the disk did is not a bug');
});

test('a second request under an Idempotency-Key waits for the first, and gets its reply', async (t) => {
  const held: (() => void)[] = [];
  let isSlow = false;
  const onBatch = () => (isSlow ? new Promise<void>((resolve) => held.push(resolve)) : undefined);
  const { port, key, store, fetch } = await serviceFor(t, { onBatch });
  const request = requestsOf(key).addPet('Idempotency-Key: a\r\n');
  // On one connection they are done in order.
  const [first, second] = await exchange(port, request + request, { replies: 2 });
  assert.deepEqual([first.status, second.status, second.headers.get('idempotent-replayed')], [201, 201, 'true']);
  assert.equal(store.read.pets.size, 1);
  isSlow = true;
  const ask = (name: string) => {
    const headers = { 'content-type': 'application/json', 'idempotency-key': name };
    return fetch('/v1/pets', { ...newPet(), headers, key, signal: AbortSignal.timeout(60_000) });
  };
  const writing = ask('b');
  while (held.length === 0) await new Promise((resolve) => setImmediate(resolve));
  const others = [ask('b'), ask('c'), ask('c')];
  const early = Promise.race([...others, writing].map((one) => one.then(() => 'replied')));
  await fetch('/v1/pets', { key }); // reads go on
  assert.equal(await Promise.race([early, new Promise((resolve) => setImmediate(resolve, 'waits'))]), 'waits');
  isSlow = false;
  for (const go of held) go();
  const replies = await Promise.all([writing, ...others, ask('b')]);
  assert.deepEqual(
    replies.map(({ status, headers }) => [status, headers.get('location'), headers.get('idempotent-replayed')]),
    [
      [201, '/v1/pets/2', null],
      [201, '/v1/pets/2', 'true'],
      [201, '/v1/pets/3', null],
      [201, '/v1/pets/3', 'true'],
      [201, '/v1/pets/2', 'true'],
    ],
  );
  assert.equal(store.read.pets.size, 3);
});

test('every code of the catalogue is shown by a row', () => {
  // These need bytes that no client library sends; test/http/edges.test.ts shows them.
  const raw: ErrorCode[] = ['request_timeout', 'expectation_failed', 'headers_too_large'];
  const missing = Object.keys(CATALOGUE).filter(
    (code) => !seen.has(code as ErrorCode) && !raw.includes(code as ErrorCode),
  );
  assert.deepEqual(missing, []);
});
