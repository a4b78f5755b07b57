/** The check that other tests rely on: it lets pass what is right, and finds each thing that may be wrong. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { openapiDocument } from '../../src/web/openapi.ts';
import { checkReply } from './schema.ts';

const document = openapiDocument({ baseUrl: 'https://pets.test/v1', stagingBaseUrl: 'https://staging.pets.test/v1' });

describe('the check of replies', () => {
  const common = {
    'x-ratelimit-limit': '60',
    'x-ratelimit-remaining': '59',
    'x-ratelimit-reset': '1798761600',
    'ratelimit-policy': '"minute";q=60;w=60, "day";q=1000;w=86400',
    ratelimit: '"minute";r=59;t=60, "day";r=999;t=86400',
    'x-request-id': 'a-1',
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
    'content-type': 'application/json; charset=utf-8',
  };
  const pets = '[{"id":1,"name":"Rex","categoryId":9223372036854775807,"status":"sold"}]';
  const missing = '{"code":"not_found","message":"no","status":404}';
  const check = (
    change: { [name: string]: string | undefined },
    body = pets,
    status = 200,
    path = '/v1/pets?limit=1',
  ) => {
    const headers = Object.entries({ ...common, ...change }).filter((entry): entry is [string, string] => !!entry[1]);
    return checkReply(document, 'GET', path, status, headers, body);
  };

  it('lets pass what is right', () => {
    assert.deepEqual(check({}), []);
    assert.deepEqual(check({ link: '</v1/pets?limit=1&after=1>; rel="next"' }), []);
    assert.deepEqual(check({}, missing, 404, '/v1/nowhere'), []);
  });

  const WRONG: [string, () => string[]][] = [
    ['a header is missing', () => check({ ratelimit: undefined })],
    ['a header has another form', () => check({ 'ratelimit-policy': 'limit=60' })],
    ['a number is none', () => check({ 'x-ratelimit-limit': '60.5' })],
    ['a header is not told of', () => check({ 'x-powered-by': 'love' })],
    ['the type is another', () => check({ 'content-type': 'text/html' })],
    ['the status is not told of', () => check({}, pets, 202)],
    ['a member is missing', () => check({}, '[{"id":1,"name":"Rex"}]')],
    ['a member is not told of', () => check({}, pets.replace('"id"', '"age":3,"id"'))],
    ['an integer is beyond 64 bits', () => check({}, pets.replace('807', '808'))],
    ['an id is zero', () => check({}, pets.replace('"id":1', '"id":0'))],
    ['a name is blank', () => check({}, pets.replace('Rex', ' '))],
    ['a status is unknown', () => check({}, pets.replace('sold', 'lost'))],
    ['the code is of another status', () => check({}, missing.replace('not_found', 'gone'), 404, '/v1/store/orders/1')],
    ['the status in the body is another', () => check({}, missing.replace('404', '405'), 404, '/v1/nowhere')],
    ['a path that is not told of works', () => check({}, pets, 200, '/v1/nowhere')],
  ];
  for (const [what, faults] of WRONG) {
    it(`finds that ${what}`, () => assert.equal(faults().length > 0, true));
  }
});
