/** The limits as a client meets them, over HTTP, on a clock that the test moves. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Plan } from '../../src/store/model.ts';
import { assertCommon } from '../raw.ts';
import { type ServiceOptions, startService } from '../service.ts';

async function start(t: TestContext, plan: Plan, limits?: { perMinute: number; perDay: number }, opt?: ServiceOptions) {
  const service = await startService(opt);
  t.after(() => service.close());
  const { text: key } = await service.makeKey(plan, limits);
  /** What the limit headers say, and the status. */
  const ask = async (path = '/v1/pets?limit=1', as: string | undefined = key) => {
    const reply = await service.fetch(path, { key: as || undefined });
    const { status, headers } = reply;
    assertCommon(headers);
    const number = (name: string) => Number(headers.get(name) ?? Number.NaN);
    return {
      status,
      code: ((await reply.json()) as { code?: string }).code,
      limit: number('x-ratelimit-limit'),
      remaining: number('x-ratelimit-remaining'),
      reset: number('x-ratelimit-reset'),
      retryAfter: number('retry-after'),
      state: headers.get('ratelimit'),
      policy: headers.get('ratelimit-policy'),
    };
  };
  return { service, clock: service.clock, key, ask };
}

test('61 requests 20 ms apart on a Free key: 60 are served, one is not, and waiting as told helps', async (t) => {
  const { clock, ask } = await start(t, 'free');
  const reset = clock.wall() / 1000 + 60;
  for (let i = 1; i <= 60; i++) {
    const left = Math.ceil((60_000 - (i - 1) * 20) / 1000);
    assert.deepEqual(await ask(), {
      status: 200,
      code: undefined,
      limit: 60,
      remaining: 60 - i,
      reset,
      retryAfter: Number.NaN,
      policy: '"minute";q=60;w=60, "day";q=1000;w=86400',
      state: `"minute";r=${60 - i};t=${left}, "day";r=${1000 - i};t=${86_400 - (60 - left)}`,
    });
    clock.advance(20);
  }
  const refused = await ask();
  assert.deepEqual([refused.status, refused.code, refused.remaining], [429, 'rate_limited', 0]);
  assert.equal(refused.retryAfter, 59);
  clock.setWall(clock.wall() + 10 * 86_400_000); // a jump of the wall clock admits nobody
  clock.advance((refused.retryAfter - 1) * 1000);
  assert.equal((await ask()).status, 429, 'a second too early');
  clock.advance(1000);
  const { status, reset: later } = await ask();
  assert.deepEqual([status, later], [200, Math.ceil(clock.wall() / 1000) + 60]);
});

test('what costs a request: a 404 and a 400 do, a refusal, a 401 and OPTIONS do not', async (t) => {
  const { service, key, ask } = await start(t, 'free');
  assert.equal((await ask()).remaining, 59);
  assert.equal((await ask('/v1/nothing')).remaining, 58);
  assert.equal((await ask('/v1/pets?limit=0')).remaining, 57);
  assert.equal((await ask(undefined, `${key}x`)).status, 401);
  assert.equal((await service.fetch('/v1/pets', { key, method: 'OPTIONS' })).status, 204);
  assert.equal((await ask()).remaining, 56);
});

test('when the day is used up that is told, and the minute costs nothing', async (t) => {
  const { clock, ask } = await start(t, 'enterprise', { perMinute: 2, perDay: 3 });
  for (const wait of [0, 0, 60_000]) {
    clock.advance(wait);
    assert.equal((await ask()).status, 200);
  }
  const refused = await ask();
  assert.deepEqual([refused.status, refused.limit, refused.remaining], [429, 3, 0]);
  assert.match(refused.state ?? '', /^"minute";r=1;/);
  clock.advance(refused.retryAfter * 1000);
  assert.equal((await ask()).remaining, 1);
});

test('a key that goes on after being refused is banned, for longer each time', async (t) => {
  const { clock, ask } = await start(t, 'enterprise', { perMinute: 1, perDay: 1_000 }, { banAfter: 3 });
  for (const seconds of [120, 480, 1_920]) {
    assert.equal((await ask()).status, 200);
    for (let i = 0; i < 2; i++) assert.equal((await ask()).code, 'rate_limited');
    const banned = await ask();
    assert.deepEqual([banned.status, banned.code, banned.remaining], [429, 'key_banned', 0]);
    assert.equal(banned.retryAfter, seconds + 1);
    assert.equal(banned.reset, Math.ceil(clock.wall() / 1000) + seconds);
    clock.advance(seconds * 1000 - 1);
    assert.equal((await ask()).code, 'key_banned', 'asking does not end it, nor make it longer');
    clock.advance(1);
  }
  assert.equal((await ask()).status, 200);
});

test('without a valid key it is the address that is counted, and a valid key is not touched', async (t) => {
  const { clock, ask } = await start(t, 'free');
  for (let i = 1; i <= 60; i++) {
    const told = await ask('/v1/pets', i % 2 === 0 ? '' : 'nonsense');
    assert.deepEqual([told.status, told.limit, told.remaining], [401, 60, 60 - i]);
    assert.equal(told.policy, '"address";q=60;w=60');
  }
  const refused = await ask('/v1/pets', '');
  assert.deepEqual([refused.status, refused.code, refused.retryAfter], [429, 'rate_limited', 61]);
  assert.equal((await ask()).remaining, 59);
  clock.advance(60_000);
  assert.equal((await ask('/v1/pets', '')).status, 401);
});
