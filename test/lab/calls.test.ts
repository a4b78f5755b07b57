/** The lab over HTTP, call by call: what each takes, refuses and says. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DRILL } from '../../src/lab/drill.ts';
import { REX, type Said, startLab } from './service.ts';

/** What is refused: the request, its status and code, and what the message names. */
const REFUSED: [what: string, said: Said | undefined, status: number, code: string, ...told: RegExp[]][] = [
  ['GET /lab', {}, 404, 'not_found'],
  ['GET /lab/Clock', {}, 404, 'not_found'],
  ['DELETE /lab/clock', {}, 405, 'method_not_allowed', /GET, HEAD, POST, OPTIONS/],
  ['PUT /lab/faults', {}, 405, 'method_not_allowed', /GET, HEAD, POST, DELETE, OPTIONS/],
  ['GET /lab/clock', { key: '' }, 401, 'missing_api_key'],
  ['GET /lab/clock', { key: 'ps_live_000000000000000000000000000000000000' }, 401, 'invalid_api_key'],
  ['GET /lab/clock?x=1', {}, 400, 'invalid_parameter', /"x": is unknown/],
  ['POST /lab/clock', {}, 400, 'invalid_json', /a body is missing/],
  ['POST /lab/clock', { body: '{' }, 400, 'invalid_json'],
  ['POST /lab/clock', { body: {} }, 400, 'invalid_body', /advance: is missing/],
  ['POST /lab/clock', { body: { advance: 60 } }, 400, 'invalid_body', /advance: must be/],
  ['POST /lab/clock', { body: { advance: '60s', by: 1 } }, 400, 'invalid_body', /"by": is unknown/],
  ...['0s', '-1s', '1.5h', '1w', '1 d', '60', 'soon'].map((advance): (typeof REFUSED)[0] => {
    return ['POST /lab/clock', { body: { advance } }, 400, 'invalid_body', /"90s", "5m"/];
  }),
  ['POST /lab/clock', { body: { advance: '3651d' } }, 400, 'invalid_body', /3650d ahead in all; 315360000s are left/],
  ['POST /lab/clock', { body: '{}', headers: { 'content-type': 'text/plain' } }, 415, 'unsupported_media_type'],
  ['POST /lab/faults', { body: { kind: 'fire', times: 0 } }, 400, 'invalid_body', /kind: /, /times: /],
  ['GET /lab/requests?limit=0', {}, 400, 'invalid_parameter', /limit: must be an integer from 1 to 256/],
  ['GET /lab/requests?limit=257', {}, 400, 'invalid_parameter'],
  ['GET /lab/grade?x', {}, 400, 'invalid_parameter'],
  ['POST /lab/drill', { body: { speed: 2 } }, 400, 'invalid_body', /"speed": is unknown/],
  ['POST /lab/reset', { body: [] }, 400, 'invalid_body', /must be a JSON object/],
  ['DELETE /lab/faults', { body: { id: 1 } }, 400, 'invalid_body'],
  ['DELETE /lab/faults', { body: '{' }, 400, 'invalid_json'],
  ['DELETE /lab/faults', { body: 'x'.repeat(70_000) }, 413, 'body_too_large'],
];

test('what the lab refuses', async (t) => {
  const { ask, makeKey } = await startLab(t);
  const own = await makeKey();
  for (const [what, said, status, code, ...told] of REFUSED) {
    const key = said?.key === '' ? undefined : (said?.key ?? own);
    const got = await ask(what, { ...said, key });
    assert.deepEqual([got.status, got.json.code], [status, code], `${what} ${JSON.stringify(said)}`);
    for (const one of told) assert.match(got.json.message, one, what);
    if (status === 405) assert.match(got.headers.get('allow')!, told[0]);
  }
});

test('what the lab says', async (t) => {
  const { ask, must, makeKey } = await startLab(t, { content: { categories: [], pets: [{ ...REX, status: 'sold' }] } });
  const key = await makeKey();
  const slow = { id: 1, kind: 'delay', times: 1, skip: 0, ms: 1_000 };
  const broken = { kind: 'unavailable', operation: 'createPet', times: 3, skip: 2, seconds: 7 };
  const rows: [what: string, status: number, json: unknown, body?: unknown][] = [
    ['GET /lab/clock', 200, { ahead: 0 }],
    ['POST /lab/clock', 200, { ahead: 90 }, { advance: '90s' }],
    ['POST /lab/clock', 200, { ahead: 390 }, { advance: '5m' }],
    ['POST /lab/clock', 200, { ahead: 86_790 }, { advance: '24h' }],
    ['POST /lab/clock', 200, { ahead: 2_678_790 }, { advance: '30d' }],
    ['GET /lab/clock', 200, { ahead: 2_678_790 }],
    ['HEAD /lab/clock', 200, undefined],
    ['OPTIONS /lab/clock', 204, undefined],
    ['GET /lab/faults', 200, []],
    ['POST /lab/faults', 201, slow, { kind: 'delay' }],
    ['POST /lab/faults', 201, { id: 2, ...broken }, broken],
    ['GET /lab/faults', 200, [slow, { id: 2, ...broken }]],
    ['DELETE /lab/faults', 204, undefined],
    ['GET /lab/faults', 200, []],
    ['GET /lab/requests', 200, []],
    ['POST /lab/reset', 204, undefined],
    ['POST /lab/reset', 204, undefined, {}],
    ['GET /v1/pets', 200, [{ id: 1, ...REX, status: 'sold' }]],
  ];
  for (const [what, status, json, body] of rows) {
    const got = await ask(what, { key, body });
    assert.deepEqual([got.status, got.json], [status, json], what);
  }
  const { json } = await must('POST /lab/drill', { key });
  assert.ok(json.script.length > DRILL.length);
  assert.equal((await must('GET /lab/faults', { key })).json.length, DRILL.length);
});

test('at most sixteen faults are armed; the seventeenth is refused, and so is a drill without room', async (t) => {
  const { ask, must, makeKey } = await startLab(t);
  const key = await makeKey();
  for (let n = 0; n < 16; n++) await must('POST /lab/faults', { key, body: { kind: 'delay' } });
  for (const [what, body] of [['POST /lab/faults', { kind: 'delay' }] as const, ['POST /lab/drill', undefined]]) {
    const { status, json } = await ask(what as string, { key, body });
    assert.deepEqual([status, json.code], [400, 'invalid_body'], `${what}`);
    assert.match(json.message, /at most 16 faults can be armed at once \(16 are\)/);
  }
  assert.equal((await must('GET /lab/faults', { key })).json.length, 16);
});

test('the lab costs nothing of the plan, bans nobody, and has a limit of its own: 600 a minute', async (t) => {
  const { clock, ask, must, makeKey } = await startLab(t, { banAfter: 2 });
  const [key, other] = [await makeKey({ perMinute: 2, perDay: 3 }), await makeKey()];
  for (let left = 599; left >= 0; left--) {
    const { headers } = await must('GET /lab/clock', { key });
    assert.equal(headers.get('x-ratelimit-remaining'), String(left));
  }
  for (let n = 0; n < 10; n++) {
    const { status, headers, json } = await ask('GET /lab/clock', { key });
    assert.deepEqual([status, json.code, headers.get('retry-after')], [429, 'rate_limited', '61']);
    assert.deepEqual([headers.get('x-ratelimit-limit'), headers.get('x-ratelimit-remaining')], ['600', '0']);
  }
  await must('GET /lab/clock', { key: other });
  assert.equal((await must('GET /v1/pets', { key })).headers.get('x-ratelimit-remaining'), '1');
  clock.advance(60_000);
  await must('GET /lab/clock', { key });
  await must('GET /v1/pets', { key });
});

test('each key governs itself alone', async (t) => {
  const { ask, must, makeKey } = await startLab(t);
  const [key, other] = [await makeKey(), await makeKey()];
  await must('POST /lab/clock', { key, body: { advance: '1d' } });
  await must('POST /lab/faults', { key, body: { kind: 'unavailable' } });
  assert.equal((await must('GET /v1/pets', { key: other })).headers.get('x-lab-clock'), null);
  assert.deepEqual((await must('GET /lab/clock', { key: other })).json, { ahead: 0 });
  assert.deepEqual((await must('GET /lab/faults', { key: other })).json, []);
  assert.deepEqual((await must('GET /lab/requests', { key })).json, []);
  assert.equal((await ask('GET /v1/pets', { key })).status, 503);
});

test('the record: the newest first, no body, no secret', async (t) => {
  const { clock, ask, must, makeKey } = await startLab(t);
  const key = await makeKey({ perMinute: 4 });
  const body = { ...REX, name: 'Secret Name' };
  await must('POST /v1/pets', { key, body, headers: { 'idempotency-key': 'my-secret' } });
  clock.advance(1_000);
  await ask('GET /v1/nothing', { key });
  await ask(`GET /v1/pets?${'x'.repeat(1_000)}`, { key });
  await ask('PUT /v1/pets', { key });
  const { headers } = await ask('GET /v1/pets?limit=5', { key });
  const { json } = await must('GET /lab/requests', { key });
  const [limited, wrongMethod, long, nowhere, made] = json;
  assert.deepEqual(limited, {
    at: new Date(clock.wall()).toISOString(),
    ...{ method: 'GET', target: '/v1/pets?limit=5', operation: 'listPets', status: 429 },
    ...{ requestId: headers.get('x-request-id'), connection: limited.connection, idempotencyKey: false, fault: null },
  });
  assert.deepEqual([wrongMethod.method, wrongMethod.operation, wrongMethod.status], ['PUT', null, 405]);
  assert.ok(long.target.length <= 201 && long.target.endsWith('…'));
  assert.deepEqual([nowhere.operation, nowhere.status], [null, 404]);
  assert.deepEqual([made.operation, made.status, made.idempotencyKey], ['createPet', 201, true]);
  assert.equal(made.at, new Date(clock.wall() - 1_000).toISOString());
  assert.doesNotMatch(JSON.stringify(json), new RegExp(`secret|Secret|${key}`));
  assert.equal((await must('GET /lab/requests?limit=2', { key })).json.length, 2);
});
