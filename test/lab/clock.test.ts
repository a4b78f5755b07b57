/** The clock of a key: time passes for it, for all that is its own, and for nobody else. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { REX, startLab } from './service.ts';

const SECOND = 1_000;

test('its minute and its day pass', async (t) => {
  const { ask, must, makeKey } = await startLab(t);
  const key = await makeKey({ perMinute: 2, perDay: 3 });
  const advance = (time: string) => must('POST /lab/clock', { key, body: { advance: time } });
  const list = () => ask('GET /v1/pets', { key });
  assert.deepEqual([(await list()).status, (await list()).status, (await list()).status], [200, 200, 429]);
  await advance('59s');
  assert.equal((await list()).status, 429);
  await advance('1s');
  assert.equal((await list()).status, 200);
  await advance('1m');
  const { status, headers } = await list(); // now the day is used up
  assert.deepEqual([status, headers.get('x-ratelimit-limit')], [429, '3']);
  await advance('24h');
  assert.equal((await list()).headers.get('x-ratelimit-remaining'), '1');
});

test('Retry-After and the reset are true on the real clock', async (t) => {
  const { clock, ask, must, makeKey } = await startLab(t);
  const key = await makeKey({ perMinute: 1 });
  const began = clock.wall();
  await must('GET /v1/pets', { key });
  const reply = await must('POST /lab/clock', { key, body: { advance: '40s' } });
  assert.equal(reply.headers.get('x-lab-clock'), '+40');
  const { status, headers } = await ask('GET /v1/pets', { key });
  assert.deepEqual([status, headers.get('retry-after'), headers.get('x-lab-clock')], [429, '21', '+40']);
  assert.equal(Number(headers.get('x-ratelimit-reset')), (began + 20 * SECOND) / SECOND);
  assert.match(headers.get('ratelimit')!, /"minute";r=0;t=20,/);
  clock.advance(20 * SECOND);
  await must('GET /v1/pets', { key });
});

test('a ban passes, and what it told holds on the real clock until then', async (t) => {
  const { ask, must, makeKey } = await startLab(t, { banAfter: 2 });
  const key = await makeKey({ perMinute: 1 });
  const list = () => ask('GET /v1/pets', { key });
  await list();
  await list();
  const banned = await list();
  assert.deepEqual([banned.json.code, banned.headers.get('retry-after')], ['key_banned', '121']);
  await must('POST /lab/clock', { key, body: { advance: '119s' } });
  const still = await list();
  assert.deepEqual([still.json.code, still.headers.get('retry-after')], ['key_banned', '2']);
  await must('POST /lab/clock', { key, body: { advance: '1s' } });
  assert.equal((await list()).status, 200);
  const { checks } = (await must('GET /lab/grade', { key })).json;
  const ban = checks.find(({ id }: { id: string }) => id === 'ban');
  assert.deepEqual([ban.verdict, ban.count, ban.requestIds], ['fail', 1, [banned.headers.get('x-request-id')]]);
});

test('its idempotency records age, and nobody else’s', async (t) => {
  const { clock, must, makeKey } = await startLab(t);
  const keys = [await makeKey(), await makeKey()];
  const create = async (key: string) => {
    const { headers, json } = await must('POST /v1/pets', { key, body: REX, headers: { 'idempotency-key': 'a' } });
    return [json.id, headers.get('idempotent-replayed')];
  };
  for (const [at, key] of keys.entries()) assert.deepEqual(await create(key), [at + 1, null]);
  await must('POST /lab/clock', { key: keys[0], body: { advance: '23h' } });
  assert.deepEqual(await create(keys[0]), [1, 'true']);
  await must('POST /lab/clock', { key: keys[0], body: { advance: '3649d' } });
  assert.deepEqual(await create(keys[0]), [3, null]);
  assert.deepEqual(await create(keys[0]), [3, 'true']); // what is made now is as old as it is
  assert.deepEqual(await create(keys[1]), [2, 'true']);
  clock.advance(24 * 60 * 60 * SECOND);
  assert.deepEqual(await create(keys[1]), [4, null]);
  assert.deepEqual(await create(keys[0]), [5, null]);
});

test('the date of removal comes for it alone', async (t) => {
  const { clock, ask, must, makeKey } = await startLab(t);
  const [key, other] = [await makeKey(), await makeKey()];
  await must('POST /v1/pets', { key, body: REX });
  const days = (Date.UTC(2030, 11, 5) - clock.wall()) / 86_400_000;
  await must('POST /lab/clock', { key, body: { advance: `${days - 1}d` } });
  await must('GET /v1/pets/1', { key });
  await must('POST /lab/clock', { key, body: { advance: '24h' } });
  const gone = await ask('GET /v1/pets/1', { key });
  assert.deepEqual([gone.status, gone.json.code, gone.headers.get('x-lab-clock')], [410, 'gone', `+${days * 86_400}`]);
  assert.equal((await must('GET /v1/pets/1', { key: other })).headers.get('x-lab-clock'), null);
});

test('ten years in all, also for many who ask at the same time', async (t) => {
  const { ask, must, makeKey } = await startLab(t);
  const key = await makeKey();
  const all = await Promise.all(
    Array.from({ length: 20 }, () => ask('POST /lab/clock', { key, body: { advance: '365d' } })),
  );
  assert.deepEqual(all.map(({ status }) => status).sort(), [...Array(10).fill(200), ...Array(10).fill(400)]);
  assert.deepEqual((await must('GET /lab/clock', { key })).json, { ahead: 3_650 * 86_400 });
  const { json } = await ask('POST /lab/clock', { key, body: { advance: '1s' } });
  assert.match(json.message, /3650d ahead in all; 0s are left/);
});

test('who waits until X-RateLimit-Reset has waited, though Retry-After tells a little more', async (t) => {
  const { clock, makeKey, ask, must } = await startLab(t);
  const key = await makeKey({ perMinute: 1 });
  await must('GET /v1/pets', { key });
  const { status, headers } = await ask('GET /v1/pets', { key });
  const resetMs = Number(headers.get('x-ratelimit-reset')) * 1_000 - clock.wall();
  assert.ok(status === 429 && resetMs < Number(headers.get('retry-after')) * 1_000);
  clock.advance(resetMs);
  await must('GET /v1/pets', { key });
  const { checks } = (await must('GET /lab/grade', { key })).json;
  assert.equal(checks.find(({ id }: { id: string }) => id === 'retry_after').verdict, 'pass');
});
