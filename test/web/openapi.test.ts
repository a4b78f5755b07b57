import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { CATALOGUE } from '../../src/http/errors.ts';
import { OPERATIONS } from '../../src/routes.ts';
import { openapiDocument } from '../../src/web/openapi.ts';
import { checkReply, checkValue, resolve } from './schema.ts';
import { type Live, narrowKey, startLive } from './server.ts';

// biome-ignore lint/suspicious/noExplicitAny: a document is walked by names that only the document knows
type Part = { [name: string]: any };

const URLS = { baseUrl: 'https://pets.example/v1', stagingBaseUrl: 'https://staging.pets.example/v1' };
const document = openapiDocument(URLS) as Part;
const METHODS = ['get', 'put', 'post', 'patch', 'delete'];

interface Described {
  method: string;
  path: string;
  operation: Part;
}

const described: Described[] = Object.entries<Part>(document.paths).flatMap(([path, item]) =>
  METHODS.filter((method) => item[method] !== undefined).map((method) => ({ method, path, operation: item[method] })),
);

/** Every object in the document, with where it stands. */
function* parts(value: unknown, at = '#'): Generator<[string, Part]> {
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value)) yield [at, value];
  for (const [name, inner] of Object.entries(value)) yield* parts(inner, `${at}/${name}`);
}

describe('the interface description', () => {
  it('names the operations that the router has, and marks them as the router does', () => {
    const told = described.map(({ method, path, operation }) => {
      const stability = operation.deprecated ? 'deprecated' : (operation['x-stability'] ?? 'stable');
      return `${operation.operationId} ${method.toUpperCase()} /v1${path} ${stability}`;
    });
    const routed = OPERATIONS.map(({ name, method, path, stability }) => `${name} ${method} ${path} ${stability}`);
    assert.deepEqual(told.sort(), routed.sort());
  });

  it('tells the headers that a route puts on all of its replies, on all of its own replies', () => {
    const [{ headers = [] }] = OPERATIONS.filter(({ name }) => name === 'getPet');
    const { responses } = document.paths['/pets/{petId}'].get;
    for (const status of ['200', '400', '401', '404', '410', '429', '500', '503']) {
      for (let i = 0; i < headers.length; i += 2) {
        const { required, schema } = resolve(document, resolve(document, responses[status]).headers[headers[i]]);
        assert.equal(required, true, `${headers[i]} of ${status}`);
        assert.deepEqual(checkValue(document, schema, headers[i + 1], headers[i]), []);
      }
    }
  });

  it('tells the end of the deprecated operation as the service does', () => {
    const sunset = new Date(document.components.headers.Sunset.schema.const);
    assert.equal(document.paths['/pets/{petId}'].get['x-sunset'], sunset.toISOString().slice(0, 10));
  });

  it('has every code of the catalogue, each with its status, an example and a reply that gives it', () => {
    const codes = Object.keys(CATALOGUE).sort();
    assert.deepEqual([...document.components.schemas.Error.properties.code.enum].sort(), codes);
    assert.deepEqual(Object.keys(document.components.examples).sort(), codes);
    for (const [code, status] of Object.entries(CATALOGUE)) {
      const { value } = document.components.examples[code];
      assert.deepEqual({ code: value.code, status: value.status }, { code, status });
    }
    const given = new Set<string>();
    for (const { operation } of described) {
      for (const [status, part] of Object.entries<Part>(operation.responses)) {
        for (const code of Object.keys(resolve(document, part).content['application/json'].examples ?? {})) {
          given.add(code);
          if (status !== 'default') assert.equal(CATALOGUE[code as keyof typeof CATALOGUE], Number(status));
        }
      }
    }
    assert.deepEqual([...given].sort(), codes);
  });

  it('is plain JSON, all of whose references lead somewhere', () => {
    assert.deepEqual(JSON.parse(JSON.stringify(document)), document);
    let references = 0;
    for (const [, part] of parts(document)) {
      if (typeof part.$ref !== 'string') continue;
      resolve(document, part);
      references++;
    }
    assert.ok(references > 100);
    assert.deepEqual(
      document.servers.map(({ url }: Part) => url),
      [URLS.baseUrl, URLS.stagingBaseUrl],
    );
  });

  it('has only examples that fit their schemas', () => {
    let examples = 0;
    for (const [at, part] of parts(document)) {
      if (part.schema === undefined) continue;
      const values = part.example === undefined ? [] : [part.example];
      for (const example of Object.values<Part>(part.examples ?? {})) values.push(resolve(document, example).value);
      for (const value of values) assert.deepEqual(checkValue(document, part.schema, value, at), []);
      examples += values.length;
    }
    assert.ok(examples > 40, `${examples} examples`);
  });

  it('calls white space what the service does, for readers of patterns new and old', () => {
    const { pattern } = document.components.schemas.NewPet.properties.name;
    for (const flags of ['u', '']) {
      const told = new RegExp(pattern, flags);
      for (let unit = 0; unit <= 0xffff; unit++) {
        const name = String.fromCharCode(unit);
        assert.equal(told.test(name), /\P{White_Space}/u.test(name), `U+${unit.toString(16)}`);
      }
    }
  });

  it('describes every field, parameter and header', () => {
    for (const [at, part] of parts(document.components.schemas)) {
      if (!/\/properties\/\w+$/.test(at) || part.enum !== undefined) continue;
      assert.ok(resolve(document, part).description, at);
    }
    for (const kind of ['parameters', 'headers', 'responses']) {
      for (const [name, part] of Object.entries<Part>(document.components[kind])) assert.ok(part.description, name);
    }
  });
});

describe('the interface description against the live service', () => {
  let live: Live;
  before(async () => {
    live = await startLive();
  });
  after(() => live?.stop());

  async function ask(method: string, path: string, body?: string, more: Record<string, string> = {}) {
    const type = body === undefined ? undefined : { 'Content-Type': 'application/json' };
    const headers = { Authorization: `Bearer ${live.key}`, ...type, ...more };
    const reply = await fetch(live.origin + path, { method, headers, body });
    const text = await reply.text();
    const faults = checkReply(document, method, path, reply.status, reply.headers, text);
    assert.deepEqual(faults, [], `${method} ${path} → ${reply.status} ${text}`);
    return { status: reply.status, text };
  }
  const code = async (reply: ReturnType<typeof ask>) => JSON.parse((await reply).text).code;

  it('is what the service gives out, but for the servers', async () => {
    const reply = await fetch(`${live.origin}/openapi.json`);
    const given = (await reply.json()) as Part;
    assert.deepEqual({ ...given, servers: [] }, { ...document, servers: [] });
  });

  it('has request examples that the service answers as told', async () => {
    const bodies = (id: string): [string, string][] => {
      const { operation } = described.find((one) => one.operation.operationId === id)!;
      const { examples } = operation.requestBody.content['application/json'];
      return Object.entries<Part>(examples).map(([name, { value }]) => [name, JSON.stringify(value)]);
    };
    let sent = 0;
    const send = async (status: number, method: string, path: string, body: string) => {
      const reply = await ask(method, path, body);
      assert.equal(reply.status, status, `${method} ${path} ${body}`);
      sent++;
      return JSON.parse(reply.text);
    };
    for (const [, body] of bodies('putCategory')) {
      await send(201, 'PUT', '/v1/categories/1', body);
      await send(200, 'PUT', '/v1/categories/1', body);
    }
    for (const [, body] of bodies('createPet')) await send(201, 'POST', '/v1/pets', body);
    for (const [, change] of bodies('updateOrder').reverse()) {
      for (const [, body] of bodies('createOrder')) {
        const { id } = await send(201, 'POST', '/v1/store/orders', body);
        await send(200, 'PATCH', `/v1/store/orders/${id}`, change);
      }
    }
    const told = described.filter(({ operation }) => operation.requestBody !== undefined);
    assert.ok(sent > told.length, `${sent} of ${told.length}`);
  });

  it('has the bounds that the service keeps', async () => {
    const { minimum, maximum, default: byDefault } = document.components.parameters.Limit.schema;
    const { minLength, maxLength } = document.components.schemas.NewPet.properties.name;
    const add = (name: string, more = '') => ask('POST', '/v1/pets', `{"name":"${name}","categoryId":1${more}}`);
    for (let i = 0; i <= byDefault; i++) await add(`Rex ${i}`);
    assert.equal(JSON.parse((await ask('GET', '/v1/pets')).text).length, byDefault);
    for (const limit of [minimum, maximum]) assert.equal((await ask('GET', `/v1/pets?limit=${limit}`)).status, 200);
    for (const limit of [minimum - 1, maximum + 1]) {
      assert.equal((await ask('GET', `/v1/pets?limit=${limit}`)).status, 400);
    }
    for (const length of [minLength, maxLength]) assert.equal((await add('🐈'.repeat(length))).status, 201);
    for (const length of [minLength - 1, maxLength + 1]) assert.equal((await add('🐈'.repeat(length))).status, 400);
    for (const category of ['9223372036854775808', '-9223372036854775809', '1.5', '"1"']) {
      assert.equal((await ask('POST', '/v1/pets', `{"name":"Rex","categoryId":${category}}`)).status, 400);
    }
    assert.equal((await ask('POST', '/v1/pets', '{"name":"Rex","categoryId":-9223372036854775808}')).status, 201);
    assert.equal((await add('Rex', ',"age":3')).status, 400, 'no additional properties');
    assert.equal((await ask('POST', '/v1/store/orders', '{"petId":3,"status":"placed"}')).status, 400);
    assert.equal((await ask('PUT', '/v1/categories/1', '{"name":"Dogs","id":1}')).status, 400);
  });

  it('tells every reply to reading', async () => {
    for (const path of ['/v1/pets', '/v1/pets?limit=1&status=pending', '/v1/store/orders', '/v1/categories?after=-5']) {
      for (const method of ['GET', 'HEAD', 'OPTIONS']) await ask(method, path);
    }
    await ask('PUT', '/v1/categories/-9223372036854775808', '{"name":"Low"}');
    await ask('GET', '/v1/categories?limit=1');
    assert.equal((await ask('GET', '/v1/pets/1')).status, 200);
    assert.equal((await ask('HEAD', '/v1/pets/1')).status, 200);
  });

  it('tells every refusal', async () => {
    const key = { 'Idempotency-Key': 'one' };
    await ask('POST', '/v1/pets', '{"name":"Una","categoryId":1}', key);
    await ask('POST', '/v1/pets', '{"name":"Una","categoryId":1}', key);
    assert.equal(await code(ask('POST', '/v1/pets', '{"name":"Dua","categoryId":1}', key)), 'idempotency_key_reused');
    assert.equal(await code(ask('GET', '/v1/pets', undefined, { Authorization: 'Basic x' })), 'missing_api_key');
    assert.equal(await code(ask('GET', '/v1/pets/1', undefined, { Authorization: 'Bearer x' })), 'invalid_api_key');
    assert.equal(await code(ask('GET', '/v1/pets?limit=0')), 'invalid_parameter');
    assert.equal(await code(ask('GET', '/v1/pets/4711')), 'not_found');
    assert.equal(await code(ask('GET', '/v1/nowhere')), 'not_found');
    assert.equal(await code(ask('DELETE', '/v1/pets')), 'method_not_allowed');
    assert.equal(await code(ask('POST', '/v1/pets', '{"name":')), 'invalid_json');
    assert.equal(await code(ask('POST', '/v1/pets', '{"id":1}')), 'invalid_body');
    assert.equal(await code(ask('POST', '/v1/pets', 'x', { 'Content-Type': 'text/plain' })), 'unsupported_media_type');
    assert.equal(await code(ask('POST', '/v1/pets', `"${'x'.repeat(70_000)}"`)), 'body_too_large');
    assert.equal(await code(ask('GET', `/v1/pets?limit=${'1'.repeat(2_100)}`)), 'uri_too_long');
    assert.equal(await code(ask('POST', '/v1/store/orders', '{"petId":2}')), 'pet_unavailable');
    assert.equal(await code(ask('PATCH', '/v1/store/orders/1', '{"status":"cancelled"}')), 'order_closed');
    assert.equal(await code(ask('PATCH', '/v1/store/orders/4711', '{"status":"cancelled"}')), 'not_found');
    assert.equal(await code(ask('PUT', '/v1/categories/x', '{"name":"Dogs"}')), 'not_found');
    const own = { Authorization: `Bearer ${(await narrowKey(live, 1)).key}` };
    await ask('GET', '/v1/pets', undefined, own);
    assert.equal(await code(ask('GET', '/v1/pets', undefined, own)), 'rate_limited');
    for (let i = 0; i < 4; i++) await ask('GET', '/v1/pets/1', undefined, own);
    assert.equal(await code(ask('GET', '/v1/nowhere', undefined, own)), 'key_banned');
  });
});
