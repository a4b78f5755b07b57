/** The checker of replies finds what is wrong. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openapiDocument } from '../../src/web/openapi.ts';
import { checkReply } from './schema.ts';

const DOCUMENT = openapiDocument({ baseUrl: 'http://127.0.0.1/v1', stagingBaseUrl: 'http://127.0.0.2/v1' });
const COMMON = {
  'x-ratelimit-limit': '60',
  'x-ratelimit-remaining': '59',
  'x-ratelimit-reset': '1798761600',
  'ratelimit-policy': '"minute";q=60;w=60, "day";q=1000;w=86400',
  ratelimit: '"minute";r=59;t=60, "day";r=999;t=86400',
  'x-request-id': 'a',
  'content-type': 'application/json; charset=utf-8',
};
const PETS = '[{"id":1,"name":"Rex","categoryId":9223372036854775807,"status":"sold"}]';
const MISSING = '{"code":"not_found","message":"no","status":404}';
const ORDER = '/v1/store/orders/1';

type Case = [what: string, headers: Record<string, string | undefined>, body?: string, status?: number, path?: string];
function faults([, change, body = PETS, status = 200, path = '/v1/pets?limit=1']: Case): string[] {
  const headers = Object.entries({ ...COMMON, ...change }).filter((one): one is [string, string] => !!one[1]);
  return checkReply(DOCUMENT, 'GET', path, status, headers, body);
}

const RIGHT: Case[] = [
  ['a page', {}],
  ['a page with another behind it', { link: '</v1/pets?limit=1&after=1>; rel="next"' }],
  ['a refusal where there is no operation', {}, MISSING, 404, '/v1/nowhere'],
];
const WRONG: Case[] = [
  ['a header is missing', { ratelimit: undefined }],
  ['a header has another form', { 'ratelimit-policy': 'limit=60' }],
  ['a header is not described', { 'x-powered-by': 'love' }],
  ['the type is another', { 'content-type': 'text/html' }],
  ['the status is not described', {}, PETS, 202],
  ['a member is missing', {}, '[{"id":1,"name":"Rex"}]'],
  ['a member is not described', {}, PETS.replace('"id"', '"age":3,"id"')],
  ['an integer is beyond 64 bits', {}, PETS.replace('807', '808')],
  ['the code is of another status', {}, MISSING.replace('not_found', 'gone'), 404, ORDER],
  ['the status in the body is another', {}, MISSING.replace('404', '405'), 404, ORDER],
  ['a path that is not described works', {}, PETS, 200, '/v1/nowhere'],
];

for (const one of RIGHT) test(`a reply is right: ${one[0]}`, () => assert.deepEqual(faults(one), []));
for (const one of WRONG) test(`a reply is wrong: ${one[0]}`, () => assert.notDeepEqual(faults(one), []));
