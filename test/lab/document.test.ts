/** What the lab answers is what the interface description tells, refusals too. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openapiDocument } from '../../src/web/openapi.ts';
import { checkReply } from '../web/schema.ts';
import { REX, startLab } from './service.ts';

const DOCUMENT = openapiDocument({ baseUrl: 'http://x/v1', stagingBaseUrl: 'http://y/v1' });
const FAULTS = [
  { kind: 'delay', ms: 0 },
  { kind: 'unavailable', operation: 'createPet', seconds: 2 },
  { kind: 'drop_after', operation: 'createPet', skip: 1 },
];
type Row = [what: string, status: number, body?: unknown];
const ROWS: Row[] = [
  ['POST /lab/reset', 400, { all: true }],
  ['POST /lab/reset', 204],
  ['GET /lab/clock', 200],
  ['HEAD /lab/clock', 200],
  ['OPTIONS /lab/clock', 204],
  ['GET /lab/clock?x=1', 400],
  ['POST /lab/clock', 200, { advance: '90s' }],
  ['POST /lab/clock', 400, {}],
  ['POST /lab/clock', 400],
  ['POST /lab/clock', 413, 'x'.repeat(70_000)],
  ...FAULTS.map((fault): Row => ['POST /lab/faults', 201, fault]),
  ['POST /lab/faults', 400, { kind: 'flood' }],
  ['GET /lab/faults', 200],
  ['GET /v1/pets', 200],
  ['GET /v1/pets/1', 200],
  ['GET /v1/nowhere', 404],
  ['POST /v1/pets', 503, REX],
  ['GET /lab/requests?limit=9', 200],
  ['GET /lab/requests?limit=0', 400],
  ['GET /lab/grade', 200],
  ['DELETE /lab/faults', 400, []],
  ['DELETE /lab/faults', 400, '{'],
  ['DELETE /lab/faults', 413, 'x'.repeat(70_000)],
  ['DELETE /lab/faults', 204],
  ['POST /lab/drill', 201],
  ['POST /lab/drill', 201],
  ['POST /lab/drill', 400],
  ['GET /lab/nothing', 404],
  ['PUT /lab/clock', 405, {}],
];

test('every reply is as the interface description tells', async (t) => {
  const { url, makeKey } = await startLab(t, { content: { categories: [], pets: [{ ...REX, status: 'sold' }] } });
  const headers = { authorization: `Bearer ${await makeKey()}`, 'content-type': 'application/json' };
  for (const [what, status, body] of ROWS) {
    const [method, path] = what.split(' ');
    const sent = typeof body === 'string' ? body : JSON.stringify(body);
    const reply = await fetch(url + path, { method, headers, body: sent });
    const text = await reply.text();
    assert.equal(reply.status, status, `${what} ${text}`);
    assert.deepEqual(checkReply(DOCUMENT, method, path, status, reply.headers, text), [], what);
  }
});
