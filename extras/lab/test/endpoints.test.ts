/** The lab over HTTP, call by call: what each takes, refuses and returns. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DRILL } from '../drill.ts';
import { ENDPOINT_ROWS } from '../endpoints.ts';
import { REX, type Sender, startLab } from './service.ts';

const text = { headers: { 'content-type': 'text/plain' } };
const fault = { kind: 'delay' };
type Refused = [what: string, body: unknown, status: number, code: string, named?: RegExp[], sender?: Sender];

/** What is refused: the request, its status and code, and what the message names. */
const REFUSED: Refused[] = [
  ['GET /lab/', undefined, 404, 'not_found'],
  ['POST /lab', undefined, 405, 'method_not_allowed', [/GET, HEAD, OPTIONS/]],
  ['DELETE /lab/faults/1', undefined, 404, 'not_found'],
  ['DELETE /lab/faults/x', undefined, 404, 'not_found'],
  ['GET /lab/faults/1', undefined, 405, 'method_not_allowed', [/DELETE, OPTIONS/]],
  ['POST /lab/reset', { only: 'shop' }, 400, 'invalid_body', [/only: must be one of "key"/]],
  ['POST /lab/reset?only=key', undefined, 400, 'invalid_parameter'],
  ['DELETE /lab/clock', undefined, 405, 'method_not_allowed', [/GET, HEAD, POST, OPTIONS/]],
  ['GET /lab/clock', undefined, 401, 'missing_api_key', [], { key: '' }],
  ['GET /lab/clock?x=1', undefined, 400, 'invalid_parameter', [/"x": is unknown/]],
  ['GET /lab/grade?x', undefined, 400, 'invalid_parameter'],
  ['GET /lab/requests?limit=0', undefined, 400, 'invalid_parameter', [/limit: must be a whole number from 1 to 256/]],
  ['GET /lab/requests?limit=257', undefined, 400, 'invalid_parameter'],
  ['POST /lab/clock', undefined, 400, 'invalid_json', [/a body is missing/]],
  ['POST /lab/clock', {}, 400, 'invalid_body', [/advance: is missing/]],
  ['POST /lab/clock', { advance: 60 }, 400, 'invalid_body', [/advance: must be/]],
  ['POST /lab/clock', { advance: '60s', by: 1 }, 400, 'invalid_body', [/"by": is unknown/]],
  ...['0s', '-1s', '1.5h', '1w', '1 d', '60', 'soon'].map((advance): Refused => {
    return ['POST /lab/clock', { advance }, 400, 'invalid_body', [/"90s", "5m"/]];
  }),
  ['POST /lab/clock', { advance: '3651d' }, 400, 'invalid_body', [/3650d ahead in all; 315360000s are left/]],
  ['POST /lab/clock', '{}', 415, 'unsupported_media_type', [], text],
  ['POST /lab/drill', { speed: 2 }, 400, 'invalid_body', [/"speed": is unknown/]],
  ['POST /lab/reset', [], 400, 'invalid_body', [/must be a JSON object/]],
  ['DELETE /lab/faults', { id: 1 }, 400, 'bad_request', [/a DELETE request has no body/]],
];

/** Faults that are refused, and what the message names. */
// biome-ignore format: a table
const REFUSED_FAULTS: [fault: object, ...named: RegExp[]][] = [
  [{}, /kind: is missing/],
  [{ kind: 'fire', times: 0 }, /kind: must be one of "delay"/, /times: .*1 to 1000000/],
  [{ ...fault, operation: 'feedPet' }, /operation: must be one of "listPets"/],
  [{ ...fault, times: 1_000_001, skip: -1, ms: 30_001 }, /times: /, /skip: .*0 to 1000000/, /ms: .*0 to 30000/],
  [{ kind: 'hang', ms: 120_001 }, /ms: .*0 to 120000/],
  [{ kind: 'status' }, /status: is missing \(one of 429, 500, 502, 503, 504\)/],
  [{ kind: 'status', status: 404, as: 'date' }, /status: must be one of 429/, /as: is for unavailable; leave it out/],
  [{ ...fault, status: 500 }, /status: is for status; leave it out/],
  [{ kind: 'unavailable', as: 'week' }, /as: must be one of "seconds", "date"/],
  [{ ...fault, rate: 0.5 }, /"rate": is unknown/],
  [{ ...fault, times: 1.5, skip: '1' }, /times: /, /skip: /],
  [{ kind: 'unavailable', seconds: 0 }, /seconds: .*1 to 3600/],
  [{ kind: 'unavailable', seconds: 3_601 }, /seconds: .*1 to 3600/],
  [{ kind: 'unavailable', ms: 5 }, /ms: is for delay, hang/],
  [{ kind: 'drop_after', seconds: 5 }, /seconds: is for unavailable, status/],
];

test('what the lab refuses', async (t) => {
  const { ask } = await startLab(t);
  const faults = REFUSED_FAULTS.map(([body, ...named]): Refused => {
    return ['POST /lab/faults', body, 400, 'invalid_body', named];
  });
  for (const [what, body, status, code, named = [], sender] of [...REFUSED, ...faults]) {
    const got = await ask(what, body, sender);
    assert.deepEqual([got.status, got.json.code], [status, code], `${what} ${JSON.stringify(body)}`);
    for (const one of named) assert.match(got.json.message, one, `${what} ${JSON.stringify(body)}`);
    if (status === 405) assert.match(got.headers.get('allow')!, named[0]);
  }
});

test('what the lab returns', async (t) => {
  const { ask, must } = await startLab(t, { pets: [{ ...REX, status: 'sold' }] });
  const rest = { times: 1, skip: 0 };
  const often = { kind: 'status', operation: 'listPets', times: 1_000_000, skip: 0, status: 429 };
  const broken = { kind: 'unavailable', operation: 'createPet', times: 3, skip: 2, seconds: 7 };
  const armed = [
    { id: 1, ...fault, ...rest, ms: 1_000 },
    { id: 2, ...broken },
    { id: 3, kind: 'delay', ...rest, ms: 30_000 },
    { id: 4, kind: 'drop_after', ...rest },
  ];
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
    ['POST /lab/faults', 201, armed[0], fault],
    ['POST /lab/faults', 201, armed[1], broken],
    ['POST /lab/faults', 201, armed[2], { kind: 'delay', ms: 30_000 }],
    ['POST /lab/faults', 201, armed[3], { kind: 'drop_after' }],
    ['GET /lab/faults', 200, armed],
    ['DELETE /lab/faults', 204, undefined],
    ['POST /lab/faults', 201, { ...armed[0], id: 5 }, fault], // ids are never given again
    ['POST /lab/faults', 201, { id: 6, ...often }, often],
    ['DELETE /lab/faults/5', 204, undefined],
    ['GET /lab/faults', 200, [{ id: 6, ...often }]],
    ['GET /lab/requests', 200, []],
    ['POST /lab/reset', 204, undefined],
    ['POST /lab/reset', 204, undefined, {}],
    ['GET /v1/pets', 200, [{ id: 1, ...REX, status: 'sold' }]],
  ];
  for (const [what, status, json, body] of rows) {
    const got = await ask(what, body);
    assert.deepEqual([got.status, got.json], [status, json], what);
  }

  // At most sixteen at once; but the drill comes in place of them.
  for (let n = 0; n < 16; n++) await must('POST /lab/faults', fault);
  const refused = await ask('POST /lab/faults', fault);
  assert.deepEqual([refused.status, refused.json.code], [400, 'invalid_body']);
  assert.equal((await must('GET /lab/faults')).json.length, 16);
  assert.deepEqual((await must('POST /lab/drill')).json, { script: JSON.parse(JSON.stringify(DRILL)) });
  const drill = (await must('GET /lab/faults')).json.map(({ id: _, ...one }: { id: number }) => one);
  const faults = DRILL.flatMap(({ fault }) => fault ?? []);
  assert.deepEqual(drill, faults);
  await must('DELETE /lab/faults');
  for (const one of faults) await must('POST /lab/faults', one); // each is valid
});

test('GET /lab describes every call, and what to do first', async (t) => {
  const { must } = await startLab(t);
  const { first, calls } = (await must('GET /lab')).json;
  const described = calls.map(({ method, path }: Record<string, string>) => `${method} ${path}`);
  assert.deepEqual(
    described,
    ENDPOINT_ROWS.map(([method, path]) => `${method} ${path}`),
  );
  assert.deepEqual([first.length, calls.length], [3, 11]);
});

test('the lab costs nothing of the plan, bans nobody, and has a limit of its own: 600 a minute', async (t) => {
  const { clock, lab, store, ask, must, makeKey } = await startLab(t, { banAfter: 2, perMinute: 2, perDay: 3 });
  const caller = store.read.keys.get(1)!;
  assert.equal((await must('GET /lab/clock')).headers.get('x-ratelimit-remaining'), '599');
  for (let n = 1; n < 599; n++) lab.endpoints[0].limiter!.take(caller);
  assert.equal((await must('GET /lab/clock')).headers.get('x-ratelimit-remaining'), '0');
  for (let n = 0; n < 10; n++) {
    const { status, headers, json } = await ask('GET /lab/clock');
    assert.deepEqual([status, json.code, headers.get('retry-after')], [429, 'rate_limited', '61']);
    assert.deepEqual([headers.get('x-ratelimit-limit'), headers.get('x-ratelimit-remaining')], ['600', '0']);
  }
  await must('GET /lab/clock', undefined, { key: await makeKey() });
  assert.equal((await must('GET /v1/pets')).headers.get('x-ratelimit-remaining'), '1');
  clock.advance(60_000);
  await must('GET /lab/clock');
});

test('the record: the newest first, no body, no secret', async (t) => {
  const { clock, key, ask, must } = await startLab(t, { perMinute: 6 });
  for (const name of ['other', 'my-secret']) {
    await must('POST /v1/pets', REX, { headers: { 'idempotency-key': name } });
  }
  await must('POST /v1/pets', REX, { headers: { 'idempotency-key': 'my-secret' } });
  clock.advance(1_000);
  await ask('GET /v1/nothing');
  await ask(`GET /v1/pets?${'x'.repeat(1_000)}`);
  await ask('PUT /v1/pets');
  const { headers } = await ask('GET /v1/pets?limit=5');
  const { json } = await must('GET /lab/requests');
  const [limited, wrongMethod, long, nowhere, made, before, other] = json;
  assert.deepEqual(limited, {
    at: new Date(clock.wall()).toISOString(),
    method: 'GET',
    target: '/v1/pets?limit=5',
    operation: 'listPets',
    status: 429,
    requestId: headers.get('x-request-id'),
    connection: limited.connection,
    idempotencyKey: null,
    fault: null,
    ms: 0,
  });
  assert.deepEqual([wrongMethod.method, wrongMethod.operation, wrongMethod.status], ['PUT', null, 405]);
  assert.equal(long.target, `/v1/pets?${'x'.repeat(191)}…`);
  assert.deepEqual([nowhere.operation, nowhere.status], [null, 404]);
  assert.deepEqual([made.operation, made.status], ['createPet', 201]);
  assert.match(made.idempotencyKey, /^[\w-]{16}$/);
  const isEqual = [before, other].map(({ idempotencyKey }) => idempotencyKey === made.idempotencyKey);
  assert.deepEqual(isEqual, [true, false]);
  assert.equal(made.at, new Date(clock.wall() - 1_000).toISOString());
  assert.doesNotMatch(JSON.stringify(json), new RegExp(`my-secret|Rex|${key}`));
  assert.equal((await must('GET /lab/requests?limit=2')).json.length, 2);
});
