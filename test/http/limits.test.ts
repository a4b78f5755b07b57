/** The limits as a client meets them, over HTTP, on a clock that the test moves. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertCommon } from '../raw.ts';
import { startService, type TestService } from '../service.ts';

/** What the limit headers say, and the status. */
async function ask(
  service: TestService,
  key?: string,
  headers: Record<string, string> = {},
  path = '/v1/pets?limit=1',
) {
  const reply = await service.fetch(path, { key, headers });
  assertCommon(reply.headers);
  const body = (await reply.json()) as { code?: string };
  const number = (name: string) => Number(reply.headers.get(name) ?? Number.NaN);
  return {
    status: reply.status,
    code: body.code,
    limit: number('x-ratelimit-limit'),
    remaining: number('x-ratelimit-remaining'),
    reset: number('x-ratelimit-reset'),
    retryAfter: number('retry-after'),
    state: reply.headers.get('ratelimit'),
    policy: reply.headers.get('ratelimit-policy'),
  };
}

test('61 requests 20 ms apart on a Free key: 60 are served, one is not, and waiting as told helps', async () => {
  const service = await startService();
  const { text: key } = await service.makeKey('free');
  const reset = service.clock.wall() / 1000 + 60;
  for (let i = 1; i <= 60; i++) {
    const { status, ...told } = await ask(service, key);
    assert.equal(status, 200);
    const left = Math.ceil((60_000 - (i - 1) * 20) / 1000);
    assert.deepEqual(told, {
      code: undefined,
      limit: 60,
      remaining: 60 - i,
      reset,
      retryAfter: Number.NaN,
      policy: '"minute";q=60;w=60, "day";q=1000;w=86400',
      state: `"minute";r=${60 - i};t=${left}, "day";r=${1000 - i};t=${86_400 - (60 - left)}`,
    });
    service.clock.advance(20);
  }
  const refused = await ask(service, key);
  assert.deepEqual([refused.status, refused.code, refused.remaining], [429, 'rate_limited', 0]);
  assert.equal(refused.retryAfter, 59);
  service.clock.advance((refused.retryAfter - 1) * 1000);
  assert.equal((await ask(service, key)).status, 429, 'a second too early');
  service.clock.advance(1000);
  assert.equal((await ask(service, key)).status, 200);
  await service.close();
});

test('the 1,001st request of a day is refused, and costs the minute nothing', async () => {
  const service = await startService();
  const { text: key } = await service.makeKey('free');
  for (let i = 0; i < 1_000; i++) {
    if (i % 60 === 0) service.clock.advance(60_000);
    assert.equal((await ask(service, key)).status, 200);
  }
  service.clock.advance(60_000);
  const refused = await ask(service, key);
  assert.deepEqual([refused.status, refused.limit, refused.remaining], [429, 1_000, 0]);
  assert.match(refused.state ?? '', /^"minute";r=60;/);
  service.clock.advance(refused.retryAfter * 1000);
  assert.equal((await ask(service, key)).remaining, 59);
  await service.close();
});

test('what costs a request: a 404 and a 400 do, a refusal and a 401 do not', async () => {
  const service = await startService();
  const { text: key } = await service.makeKey('free');
  assert.equal((await ask(service, key)).remaining, 59);
  assert.equal((await ask(service, key, {}, '/v1/nothing')).remaining, 58);
  assert.equal((await ask(service, key, {}, '/v1/pets?limit=0')).remaining, 57);
  assert.equal((await ask(service, `${key}x`)).status, 401);
  assert.equal((await service.fetch('/v1/pets', { key, method: 'OPTIONS' })).status, 204);
  assert.equal((await ask(service, key)).remaining, 56);
  await service.close();
});

test('a key that goes on after being refused is banned, for longer each time', async () => {
  const service = await startService({ banAfter: 3 });
  const { text: key } = await service.makeKey('enterprise', { perMinute: 1, perDay: 1_000 });
  for (const seconds of [120, 480, 1_920]) {
    assert.equal((await ask(service, key)).status, 200);
    assert.equal((await ask(service, key)).code, 'rate_limited');
    assert.equal((await ask(service, key)).code, 'rate_limited');
    const banned = await ask(service, key);
    assert.deepEqual([banned.status, banned.code, banned.remaining], [429, 'key_banned', 0]);
    assert.equal(banned.retryAfter, seconds + 1);
    assert.equal(banned.reset, Math.ceil(service.clock.wall() / 1000) + seconds);
    service.clock.advance(seconds * 1000 - 1);
    assert.equal((await ask(service, key)).code, 'key_banned', 'asking does not end it, nor make it longer');
    service.clock.advance(1);
  }
  assert.equal((await ask(service, key)).status, 200);
  await service.close();
});

test('without a valid key it is the address that is counted, and a valid key is not touched', async () => {
  const service = await startService();
  const { text: key } = await service.makeKey('free');
  for (let i = 1; i <= 60; i++) {
    const told = await ask(service, i % 2 === 0 ? undefined : 'nonsense');
    assert.deepEqual([told.status, told.limit, told.remaining], [401, 60, 60 - i]);
    assert.equal(told.policy, '"address";q=60;w=60');
  }
  const refused = await ask(service);
  assert.deepEqual([refused.status, refused.code, refused.retryAfter], [429, 'rate_limited', 61]);
  assert.equal((await ask(service, key)).remaining, 59);
  service.clock.advance(60_000);
  assert.equal((await ask(service)).status, 401);
  await service.close();
});

test('X-Forwarded-For counts only from a proxy that is trusted', async () => {
  const from = (address: string) => ({ 'x-forwarded-for': address });
  const open = await startService();
  await ask(open, undefined, from('192.0.2.1'));
  assert.equal((await ask(open, undefined, from('192.0.2.2'))).remaining, 58);
  await open.close();
  const behind = await startService({ trustProxy: 1 });
  await ask(behind, undefined, from('198.51.100.7, 192.0.2.1'));
  assert.equal((await ask(behind, undefined, from('198.51.100.8, 192.0.2.2'))).remaining, 59);
  assert.equal((await ask(behind, undefined, from('192.0.2.1'))).remaining, 58);
  await behind.close();
});

test('a jump of the wall clock admits nobody and locks nobody out', async () => {
  const service = await startService();
  const { text: key } = await service.makeKey('enterprise', { perMinute: 2, perDay: 10 });
  await ask(service, key);
  service.clock.setWall(service.clock.wall() + 10 * 86_400_000);
  assert.equal((await ask(service, key)).status, 200);
  assert.equal((await ask(service, key)).status, 429);
  service.clock.setWall(service.clock.wall() - 20 * 86_400_000);
  assert.equal((await ask(service, key)).status, 429);
  service.clock.advance(60_000);
  const told = await ask(service, key);
  assert.equal(told.status, 200);
  assert.equal(told.reset, Math.ceil(service.clock.wall() / 1000) + 60);
  await service.close();
});

test('while the wall clock is wrong, what was made under an Idempotency-Key is neither forgotten nor made anew', async () => {
  const service = await startService();
  const { text: key } = await service.makeKey();
  const add = async () => {
    const headers = { 'content-type': 'application/json', 'idempotency-key': 'one' };
    const made = await service.fetch('/v1/pets', {
      key,
      method: 'POST',
      headers,
      body: '{"name":"Rex","categoryId":1}',
    });
    return [made.status, ((await made.json()) as { id: number }).id, made.headers.get('idempotent-replayed')];
  };
  assert.deepEqual(await add(), [201, 1, null]);
  const right = service.clock.wall();
  for (const wrong of [right + 2 * 86_400_000, right - 2 * 86_400_000, right]) {
    service.clock.setWall(wrong);
    assert.deepEqual(await add(), [201, 1, 'true']);
  }
  service.clock.advance(86_400_000);
  assert.deepEqual(await add(), [201, 2, null]);
  await service.close();
});
