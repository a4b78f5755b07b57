/**
 * The OpenAPI document, held to the router, the catalogue of errors, the plans, and the service; and that the checker
 * of replies finds what is wrong. That the document tells every reply is tried where the replies are: each row of the
 * table of test/api is held to it.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PLAN_LIMITS } from '../../src/access/plans.ts';
import { CATALOGUE } from '../../src/http/errors.ts';
import { ENDPOINTS } from '../../src/routes.ts';
import { ORDER_STATUSES, PET_STATUSES } from '../../src/store/model.ts';
import { openapiDocument } from '../../src/web/openapi.ts';
import { startService } from '../service.ts';
import { checkReply, checkValue, type Part, resolve } from './schema.ts';

const URLS = { baseUrl: 'https://pets.example/v1', stagingBaseUrl: 'https://staging.pets.example/v1' };
const document = openapiDocument(URLS) as Part;
const { components, paths, info } = document;
/** What the lab serves, where it is switched on. */
const LAB = [
  ...['advanceLabClock POST /lab/clock', 'createLabFault POST /lab/faults', 'deleteLabFaults DELETE /lab/faults'],
  ...['getLabClock GET /lab/clock', 'getLabGrade GET /lab/grade', 'listLabFaults GET /lab/faults'],
  ...['listLabRequests GET /lab/requests', 'resetLab POST /lab/reset', 'startLabDrill POST /lab/drill'],
];
const described = Object.entries<Part>(paths).flatMap(([path, item]) =>
  ['get', 'put', 'post', 'patch', 'delete']
    .filter((method) => item[method] !== undefined)
    .map((method) => ({
      method: method.toUpperCase(),
      path: path.startsWith('/lab/') ? path : `/v1${path}`,
      operation: item[method] as Part,
    })),
);

test('the document names the operations of the router and of the lab, and marks them as the router does', () => {
  const told = described.map(({ method, path, operation }) => {
    const stability = operation.deprecated ? 'deprecated' : (operation['x-stability'] ?? 'stable');
    return `${operation.operationId} ${method} ${path} ${stability}`;
  });
  const routed = ENDPOINTS.map(({ name, method, path, stability }) => `${name} ${method} ${path} ${stability}`);
  assert.deepEqual(told.sort(), [...routed, ...LAB.map((operation) => `${operation} experimental`)].sort());
});

test('it has the addresses of the server, its own first; those of the lab beside /v1', () => {
  const servers = (environment: 'production' | 'staging') => {
    const { servers, paths } = openapiDocument({ ...URLS, environment }) as Part;
    return [...servers, ...paths['/lab/clock'].servers].map(({ url }: Part) => url);
  };
  const { baseUrl, stagingBaseUrl } = URLS;
  assert.deepEqual(servers('production'), [baseUrl, stagingBaseUrl, 'https://staging.pets.example']);
  assert.deepEqual(servers('staging'), [stagingBaseUrl, baseUrl, 'https://staging.pets.example']);
});

test('it has every code of the catalogue with its status and an example, the limits of the plans, and the statuses', () => {
  const { PetStatus, OrderStatus } = components.schemas;
  assert.deepEqual([PetStatus.enum, OrderStatus.enum], [PET_STATUSES, ORDER_STATUSES]);
  assert.deepEqual(components.schemas.Error.properties.code.enum.toSorted(), Object.keys(CATALOGUE).sort());
  const examples = Object.values<Part>(components.examples).map(({ value }) => [value.code, value.status]);
  assert.deepEqual(Object.fromEntries(examples), CATALOGUE);
  for (const [plan, { perMinute, perDay }] of Object.entries(PLAN_LIMITS)) {
    const [minute, day] = [perMinute, perDay].map((limit) => limit.toLocaleString('en'));
    assert.match(info.description, new RegExp(`${plan} ${minute} (requests )?and ${day}`, 'i'));
  }
});

test('it has only examples that fit their schemas', () => {
  let examples = 0;
  const walk = (part: unknown, at: string): void => {
    if (typeof part !== 'object' || part === null) return;
    for (const [name, inner] of Object.entries(part)) walk(inner, `${at}/${name}`);
    const { schema, example, examples: more = {} } = part as Part;
    if (schema === undefined) return;
    const values = Object.values<Part>(more).map((one) => resolve(document, one).value);
    for (const value of example === undefined ? values : [example, ...values]) {
      assert.deepEqual(checkValue(document, schema, value, at), []);
      examples++;
    }
  };
  walk(document, '#');
  assert.ok(examples > 40, `${examples} examples`);
});

test('it calls white space what the service does, for readers of patterns new and old', () => {
  const patterns = ['u', ''].map((flags) => new RegExp(components.schemas.Name.pattern, flags));
  for (let unit = 0; unit <= 0xffff; unit++) {
    const name = String.fromCharCode(unit);
    const isName = /\P{White_Space}/u.test(name);
    if (patterns.some((pattern) => pattern.test(name) !== isName)) assert.fail(`U+${unit.toString(16)}`);
  }
});

test('its links lead to operations that there are, with parameters and bodies that these take', () => {
  for (const [name, link] of Object.entries<Part>(components.links)) {
    const { operationId, parameters = {}, requestBody } = link;
    const { path, operation } = described.find((one) => one.operation.operationId === operationId)!;
    const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, parameter]) => parameter);
    assert.deepEqual(Object.keys(parameters), named, name);
    const body = requestBody && JSON.parse(JSON.stringify(requestBody).replace('"$response.body#/id"', '1'));
    const taken = operation.requestBody?.content['application/json'].schema;
    assert.deepEqual(taken && checkValue(document, taken, body), body && [], name);
  }
});

test('it has the bounds that the service keeps', async (t) => {
  const service = await startService();
  t.after(() => service.close());
  const { text: key } = await service.makeKey();
  const list = (limit: number) => service.fetch(`/v1/pets?limit=${limit}`, { key });
  const name = (length: number) => {
    const body = JSON.stringify({ name: '🐈'.repeat(length), categoryId: 1 });
    return service.fetch('/v1/pets', { key, method: 'POST', headers: { 'Content-Type': 'application/json' }, body });
  };
  const { minimum, maximum, default: byDefault } = components.parameters.Limit.schema;
  const { minLength, maxLength } = components.schemas.Name;
  for (const refused of [minimum - 1, maximum + 1]) assert.equal((await list(refused)).status, 400);
  for (const taken of [minimum, maximum]) assert.equal((await list(taken)).status, 200);
  for (const refused of [minLength - 1, maxLength + 1]) assert.equal((await name(refused)).status, 400);
  for (const taken of [minLength, maxLength]) assert.equal((await name(taken)).status, 201);
  for (let i = 0; i < byDefault; i++) await name(minLength);
  const page = (await (await service.fetch('/v1/pets', { key })).json()) as unknown[];
  assert.equal(page.length, byDefault);
});

const HEADERS = {
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

test('the checker of replies finds what is wrong, and nothing where all is right', () => {
  type Case = [
    what: string,
    headers?: Record<string, string | undefined>,
    body?: string,
    status?: number,
    path?: string,
  ];
  const right: Case[] = [
    ['a page'],
    ['a page with another behind it', { link: '</v1/pets?limit=1&after=1>; rel="next"' }],
    ['a refusal where there is no operation', {}, MISSING, 404, '/v1/nowhere'],
  ];
  const wrong: Case[] = [
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
  for (const one of [...right, ...wrong]) {
    const [what, change, body = PETS, status = 200, path = '/v1/pets?limit=1'] = one;
    const headers = Object.entries({ ...HEADERS, ...change }).filter((sent): sent is [string, string] => !!sent[1]);
    const faults = checkReply(document, 'GET', path, status, headers, body);
    assert.equal(faults.length > 0, wrong.includes(one), `${what}: ${faults}`);
  }
});
