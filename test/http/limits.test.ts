/** The limits as a client meets them, over HTTP, on a clock that the test moves. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Plan } from '../../src/store/model.ts';
import { assertCommon, exchange, requestsOf } from '../raw.ts';
import { serviceFor } from '../service.ts';

async function start(t: TestContext, plan: Plan, limits?: { perMinute: number; perDay: number }, banAfter?: number) {
  const service = await serviceFor(t, { banAfter });
  const { text: key } = await service.makeKey(plan, limits);
  /** What the limit headers say, and the status. */
  const ask = async (path = '/v1/pets?limit=1', as = key) => {
    const reply = await service.fetch(path, { key: as || undefined });
    const { status, headers } = reply;
    assertCommon(headers, path.startsWith('/v1'));
    const [limit, remaining, reset] = ['limit', 'remaining', 'reset'].map((name) =>
      Number(headers.get(`x-ratelimit-${name}`)),
    );
    const retryAfter = Number(headers.get('retry-after'));
    const { code, message } = (await reply.json()) as { code?: string; message?: string };
    const [state, policy] = [headers.get('ratelimit'), headers.get('ratelimit-policy')];
    return { status, code, message, limit, remaining, reset, retryAfter, state, policy };
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
      message: undefined,
      limit: 60,
      remaining: 60 - i,
      reset,
      retryAfter: 0,
      policy: '"minute";q=60;w=60, "day";q=1000;w=86400',
      state: `"minute";r=${60 - i};t=${left}, "day";r=${1000 - i};t=${86_400 - (60 - left)}`,
    });
    clock.advance(20);
  }
  const { status, code, remaining, retryAfter } = await ask();
  assert.deepEqual([status, code, remaining, retryAfter], [429, 'rate_limited', 0, 59]);
  clock.setWall(clock.wall() + 10 * 86_400_000); // a jump of the wall clock admits nobody
  clock.advance((retryAfter - 1) * 1000);
  assert.equal((await ask()).status, 429, 'a second too early');
  clock.advance(1000);
  const after = await ask();
  assert.deepEqual([after.status, after.reset], [200, Math.ceil(clock.wall() / 1000) + 60]);
  assert.equal(after.state, '"minute";r=59;t=60, "day";r=939;t=86340', 'a new minute of the same day');
});

test('what costs a request: a 404 and a 400 do, a refusal, a 401 and OPTIONS do not', async (t) => {
  const { service, key, ask } = await start(t, 'free');
  const paths = [undefined, '/v1/nothing', '/v1/pets?limit=0'];
  for (const [i, path] of paths.entries()) assert.equal((await ask(path)).remaining, 59 - i);
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

test('a key that goes on after being refused is banned, and asking does not make it longer', async (t) => {
  const { clock, ask } = await start(t, 'enterprise', { perMinute: 2, perDay: 9 }, 3);
  const all = [await ask(), await ask(), await ask(), await ask()];
  assert.deepEqual(
    all.map(({ status, code, remaining }) => [status, code, remaining]),
    [...[1, 0].map((left) => [200, undefined, left]), ...Array(2).fill([429, 'rate_limited', 0])],
  );
  const { code, message, remaining, retryAfter, reset } = await ask();
  const end = clock.wall() / 1000 + 120;
  assert.deepEqual([code, remaining, retryAfter, reset], ['key_banned', 0, 121, end]);
  assert.equal(message, 'this key is banned for a while: it kept sending requests after a 429; ask again in 121 s');
  clock.advance(120_000 - 1);
  const late = await ask();
  assert.deepEqual([late.code, late.remaining, late.reset], ['key_banned', 0, end]);
  assert.equal(late.state, '"minute";r=2;t=0, "day";r=7;t=86281', 'a ban takes nothing from the windows');
  clock.advance(1);
  assert.equal((await ask()).status, 200);
});

test('without a valid key it is the address that is counted, and a valid key is not touched', async (t) => {
  const { clock, ask } = await start(t, 'free');
  const at = clock.wall() / 1000;
  assert.equal((await ask('/healthz', '')).state, null, 'pages count nothing, and say nothing of limits');
  for (let i = 1; i <= 60; i++) {
    const { status, limit, remaining, reset, policy, state } = await ask('/v1/pets', i % 2 === 0 ? '' : 'nonsense');
    assert.deepEqual([status, limit, remaining, reset], [401, 60, 60 - i, at + 60]);
    assert.deepEqual([policy, state], ['"address";q=60;w=60', `"address";r=${60 - i};t=60`]);
  }
  clock.advance(10_000);
  const { status, code, retryAfter } = await ask('/v1/pets', '');
  assert.deepEqual([status, code, retryAfter], [429, 'rate_limited', 51]);
  assert.equal((await ask()).remaining, 59);
  clock.advance(50_000);
  assert.equal((await ask('/v1/pets', '')).status, 401);
});

test('what is refused before its key is asked tells the limits of that key, and takes nothing', async (t) => {
  const { service, key, ask } = await start(t, 'free');
  assert.equal((await ask()).remaining, 59);
  const { get } = requestsOf(key);
  const options = get().replace('GET', 'OPTIONS');
  for (const [bytes, status] of [
    [options, 204],
    [get('Content-Type: a\r\nContent-Type: b\r\n'), 400],
    [get('', 'http://y/v1/pets'), 400],
    [get('Host: x\r\n', '/healthz'), 400],
  ] as const) {
    const [reply] = await exchange(service.port, bytes, { replies: 1 });
    assert.equal(`${reply.status} ${reply.headers.get('x-ratelimit-remaining')}`, `${status} 59`, bytes);
    assert.match(reply.headers.get('ratelimit') ?? '', /^"minute";r=59;/);
    const [other] = await exchange(service.port, bytes.replace(key, 'nonsense'), { replies: 1 });
    assert.equal(other.headers.get('ratelimit'), '"address";r=60;t=0', bytes);
  }
  assert.equal((await ask()).remaining, 58);
});
