/**
 * The OpenAPI document, held to the service, its catalogue of errors and its plans; and that the checker of replies finds
 * what is wrong. That the document describes every reply is tried where the replies are, by the table of test/api.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PLAN_LIMITS } from '../../src/access/limiter.ts';
import { CATALOGUE } from '../../src/http/errors.ts';
import { openapiDocument } from '../../src/service/openapi.ts';
import { type Category, ORDER_STATUSES, type Order, PET_STATUSES, type Pet } from '../../src/store/model.ts';
import { serving, temporary } from '../program.ts';
import { checkPage } from '../raw.ts';
import { serviceFor } from '../service.ts';
import { checkReply, checkValue, type Part, resolve } from './schema.ts';

const URLS = { baseUrl: 'https://pets.example/v1', stagingBaseUrl: 'https://staging.pets.example/v1' };
const SETTINGS = { version: '1.2.3', ...URLS };
const document = openapiDocument(SETTINGS) as Part;
const { components, info } = document;

/** Its operations, each with the whole path. */
const described = Object.entries<Part>(document.paths).flatMap(([path, item]) =>
  Object.entries<Part>(item).map(([method, operation]) => {
    return { method: method.toUpperCase(), path: `/v1${path}`, operation };
  }),
);

test('the document is served, and has the methods of each path', async (t) => {
  const { url } = await serving(t, ['--data', await temporary(t)]);
  await checkPage(new URL('/openapi.json', url), 'application/json; charset=utf-8', '{"openapi":"3.1.0"');
  for (const template of new Set(described.map(({ path }) => path))) {
    const served = described.filter(({ path }) => path === template);
    const path = template.replaceAll(/\{\w+\}/g, '1');
    const methods = served.map(({ method }) => method);
    const expected = ['OPTIONS', ...methods, ...(methods.includes('GET') ? ['HEAD'] : [])];
    const { headers } = await fetch(new URL(path, url), { method: 'OPTIONS' });
    assert.deepEqual(headers.get('allow')?.split(', ').sort(), expected.sort(), path);
  }
});

test('its animals, orders and categories have the members that are stored, and no others', () => {
  const stored: { Pet: Required<Pet>; Order: Required<Order>; Category: Required<Category> } = {
    Pet: { id: 1, name: 'Rex', categoryId: 1, status: 'available' },
    Order: { id: 1, petId: 1, status: 'placed', placedAt: '' },
    Category: { id: 1, name: 'Dogs' },
  };
  for (const [name, row] of Object.entries(stored)) {
    assert.deepEqual(Object.keys(components.schemas[name].properties), Object.keys(row), name);
  }
  const { id: _, ...sent } = stored.Pet;
  assert.deepEqual(Object.keys(components.schemas.NewPet.properties), Object.keys(sent));
});

test('nothing is in it that nothing refers to', () => {
  const text = JSON.stringify(document);
  const named = Object.entries<Part>(components).flatMap(([kind, parts]) =>
    kind === 'securitySchemes' ? [] : Object.keys(parts).map((name) => `"$ref":"#/components/${kind}/${name}"`),
  );
  assert.deepEqual(
    named.filter((ref) => !text.includes(ref)),
    [],
  );
});

test('each reply has the headers of all, and each of a deprecated operation those of its end', () => {
  for (const { operation } of described) {
    for (const [status, reply] of Object.entries<Part>(operation.responses)) {
      const { headers } = resolve(document, reply);
      const of = `${operation.operationId} ${status}`;
      for (const name of ['X-RateLimit-Reset', 'RateLimit', 'X-Request-Id']) assert.ok(name in headers, of);
      const ending = operation.deprecated === true ? !/408|414|431|default/.test(status) : undefined;
      assert.equal(headers.Sunset && resolve(document, headers.Sunset).required, ending, of);
    }
  }
});

test('all examples fit their schemas', () => {
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
  assert.ok(examples > 25);
});

test('it has the version of the program and the addresses of the server, its own first', () => {
  const servers = (document: Part) => document.servers.map(({ url }: Part) => url);
  const { baseUrl, stagingBaseUrl } = URLS;
  assert.deepEqual(servers(document), [baseUrl, stagingBaseUrl]);
  const staging = openapiDocument({ ...SETTINGS, environment: 'staging' }) as Part;
  assert.deepEqual(servers(staging), [stagingBaseUrl, baseUrl]);
  assert.deepEqual([info.version, info.contact.url], ['1.2.3', 'https://pets.example/']);
});

test('it has every code of the catalogue with its status and an example, the limits of the plans, and the statuses', () => {
  const { PetStatus, OrderStatus } = components.schemas;
  assert.deepEqual([PetStatus.enum, OrderStatus.enum], [PET_STATUSES, ORDER_STATUSES]);
  assert.deepEqual(components.schemas.ErrorReply.properties.code.enum.toSorted(), Object.keys(CATALOGUE).sort());
  const examples = Object.values<Part>(components.examples).map(({ value }) => [value.code, value.status]);
  assert.deepEqual(Object.fromEntries(examples), CATALOGUE);
  for (const [plan, { perMinute, perDay }] of Object.entries(PLAN_LIMITS)) {
    const [minute, day] = [perMinute, perDay].map((limit) => limit.toLocaleString('en'));
    assert.match(info.description, new RegExp(`${plan} ${minute} (requests )?and ${day}`, 'i'));
  }
});

test('it calls white space what the service does, for readers of patterns new and old', () => {
  const patterns = ['u', ''].map((flags) => new RegExp(components.schemas.Name.pattern, flags));
  for (let unit = 0; unit <= 0xffff; unit++) {
    const name = String.fromCharCode(unit);
    const isName = name !== '\0' && /\P{White_Space}/u.test(name);
    if (patterns.some((pattern) => pattern.test(name) !== isName)) assert.fail(`U+${unit.toString(16)}`);
  }
});

test('its schema of a name takes what the service takes', async (t) => {
  const { key, fetch } = await serviceFor(t);
  const right = ['a', ' a ', '\u00a0\ufeff', 'a\nb', 'x'.repeat(255), '\u{1f415}'.repeat(255)];
  const wrong = ['', ' ', '\n\u0085\u3000', '\0', 'a\0b', '\0a', 'a\0', 'x'.repeat(256)];
  for (const [names, status] of [[right, 201] as const, [wrong, 400] as const]) {
    for (const name of names) {
      const headers = { 'Content-Type': 'application/json' };
      const body = JSON.stringify({ name, categoryId: 1 });
      const isRight = checkValue(document, components.schemas.Name, name).length === 0;
      const reply = await fetch('/v1/pets', { key, method: 'POST', headers, body });
      assert.deepEqual([isRight, reply.status], [status === 201, status], JSON.stringify(name));
    }
  }
});

test('its schema of an Idempotency-Key takes what the service takes', async (t) => {
  const { key, fetch } = await serviceFor(t);
  const { schema } = components.parameters.IdempotencyKey;
  const right = ['!', '~', "'a'", 'a"', 'a,b', '7', '?1', '\\', 'x'.repeat(255)];
  const wrong = ['a b', 'é', 'x'.repeat(256)];
  for (const [keys, status] of [[right, 201] as const, [wrong, 400] as const]) {
    for (const sent of keys) {
      const headers = { 'Content-Type': 'application/json', 'Idempotency-Key': sent };
      const init = { key, method: 'POST', headers, body: '{"name":"Rex","categoryId":1}' };
      const isRight = checkValue(document, schema, sent).length === 0;
      assert.deepEqual([isRight, (await fetch('/v1/pets', init)).status], [status === 201, status], sent);
    }
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

test('the checker of replies finds nothing where all is right, and each thing that is wrong', async (t) => {
  const { key, fetch } = await serviceFor(t);
  const body = '{"name":"Rex","categoryId":9223372036854775807}';
  const asJson = { 'Content-Type': 'application/json' };
  for (const _ of [1, 2]) await fetch('/v1/pets', { key, method: 'POST', headers: asJson, body });
  const page = '/v1/pets?limit=1';
  const reply = await fetch(page, { key });
  const pets = await reply.text();
  const { link, ...headers } = Object.fromEntries(reply.headers);
  const { ratelimit: _, ...unlimited } = headers;
  const faults = (sent: Record<string, string>, text = pets, status = 200, path = page) =>
    checkReply(document, 'GET', path, status, Object.entries(sent), text);
  const missing = '{"code":"not_found","message":"no","status":404}';
  const order = '/v1/store/orders/1';
  const right = [faults(headers), faults({ ...headers, link }), faults(headers, missing, 404, '/v1/nowhere')];
  assert.deepEqual(right.flat(), []);
  const wrong = {
    'a header is missing': faults(unlimited),
    'a header has another form': faults({ ...headers, 'ratelimit-policy': 'limit=60' }),
    'a header is not described': faults({ ...headers, 'x-powered-by': 'love' }),
    'the type is another': faults({ ...headers, 'content-type': 'text/html' }),
    'the status is not described': faults(headers, pets, 202),
    'a member is missing': faults(headers, '[{"id":1,"name":"Rex"}]'),
    'a member is not described': faults(headers, pets.replace('"id"', '"age":3,"id"')),
    'an integer is beyond 64 bits': faults(headers, pets.replace('807', '808')),
    'the code is of another status': faults(headers, missing.replace('not_found', 'gone'), 404, order),
    'the status in the body is another': faults(headers, missing.replace('404', '405'), 404, order),
    'a path that is not described works': faults(headers, pets, 200, '/v1/nowhere'),
  };
  for (const [what, found] of Object.entries(wrong)) assert.notEqual(found.length, 0, what);
});
