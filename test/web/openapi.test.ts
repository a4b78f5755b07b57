/**
 * The interface description, held to the router, the catalogue of errors, the plans, and a live service. That it tells
 * every reply is tried where the replies are: the table of test/api holds each of its rows to it.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { PLAN_LIMITS } from '../../src/access/plans.ts';
import { CATALOGUE } from '../../src/http/errors.ts';
import { OPERATIONS } from '../../src/routes.ts';
import { ORDER_STATUSES, PET_STATUSES } from '../../src/store/model.ts';
import { openapiDocument } from '../../src/web/openapi.ts';
import { checkReply, checkValue, resolve } from './schema.ts';
import { type Live, startLive } from './server.ts';

// biome-ignore lint/suspicious/noExplicitAny: a document is walked by names that only the document knows
type Part = { [name: string]: any };

const URLS = { baseUrl: 'https://pets.example/v1', stagingBaseUrl: 'https://staging.pets.example/v1' };
const document = openapiDocument(URLS) as Part;
const METHODS = ['get', 'put', 'post', 'patch', 'delete'];
/** What the lab serves, where it is switched on. */
const LAB = [
  'advanceLabClock POST /lab/clock',
  'createLabFault POST /lab/faults',
  'deleteLabFaults DELETE /lab/faults',
  'getLabClock GET /lab/clock',
  'getLabGrade GET /lab/grade',
  'listLabFaults GET /lab/faults',
  'listLabRequests GET /lab/requests',
  'resetLab POST /lab/reset',
  'startLabDrill POST /lab/drill',
];

interface Described {
  method: string;
  path: string;
  operation: Part;
}

const described: Described[] = Object.entries<Part>(document.paths).flatMap(([path, item]) =>
  METHODS.filter((method) => item[method] !== undefined).map((method) => ({
    method: method.toUpperCase(),
    path: path.startsWith('/lab/') ? path : `/v1${path}`,
    operation: item[method],
  })),
);
const operationOf = (id: string) => described.find(({ operation }) => operation.operationId === id) as Described;

/** Every object in the document, with where it stands. */
function* parts(value: unknown, at = '#'): Generator<[string, Part]> {
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value)) yield [at, value];
  for (const [name, inner] of Object.entries(value)) yield* parts(inner, `${at}/${name}`);
}

describe('the interface description', () => {
  it('names the operations that the router has and those of the lab, and marks them as the router does', () => {
    const told = described.map(({ method, path, operation }) => {
      const stability = operation.deprecated ? 'deprecated' : (operation['x-stability'] ?? 'stable');
      return `${operation.operationId} ${method} ${path} ${stability}`;
    });
    const routed = OPERATIONS.map(({ name, method, path, stability }) => `${name} ${method} ${path} ${stability}`);
    assert.deepEqual(told.sort(), [...routed, ...LAB.map((operation) => `${operation} experimental`)].sort());
  });

  it('has the addresses of the server, its own first; those of the lab beside /v1', () => {
    const servers = (environment: 'production' | 'staging') => {
      const { servers, paths } = openapiDocument({ ...URLS, environment }) as Part;
      return [...servers, ...paths['/lab/clock'].servers].map(({ url }: Part) => url);
    };
    const { baseUrl, stagingBaseUrl } = URLS;
    assert.deepEqual(servers('production'), [baseUrl, stagingBaseUrl, 'https://staging.pets.example']);
    assert.deepEqual(servers('staging'), [stagingBaseUrl, baseUrl, 'https://staging.pets.example']);
  });

  it('tells the headers that a route puts on all of its replies, on all of its own replies', () => {
    const [{ headers = [] }] = OPERATIONS.filter(({ name }) => name === 'getPet');
    const { operation } = operationOf('getPet');
    for (const status of ['200', '400', '401', '404', '410', '429', '500', '503']) {
      for (let i = 0; i < headers.length; i += 2) {
        const { responses } = operation;
        const { required, schema } = resolve(document, resolve(document, responses[status]).headers[headers[i]]);
        assert.equal(required, true, `${headers[i]} of ${status}`);
        assert.deepEqual(checkValue(document, schema, headers[i + 1], headers[i]), []);
      }
    }
    const sunset = new Date(document.components.headers.Sunset.schema.const);
    assert.equal(operation['x-sunset'], sunset.toISOString().slice(0, 10));
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
        const response = resolve(document, part);
        for (const code of Object.keys(response.content?.['application/json'].examples ?? {})) {
          given.add(code);
          assert.ok(response.description.includes(code) || status === 'default', `${status} ${code}`);
          if (status !== 'default') assert.equal(CATALOGUE[code as keyof typeof CATALOGUE], Number(status));
        }
      }
    }
    assert.deepEqual([...given].sort(), codes);
  });

  it('tells the limits of the plans, and the statuses', () => {
    for (const [plan, { perMinute, perDay }] of Object.entries(PLAN_LIMITS)) {
      const [minute, day] = [perMinute, perDay].map((limit) => limit.toLocaleString('en'));
      assert.match(document.info.description, new RegExp(`${plan} ${minute} (requests )?and ${day}`, 'i'));
    }
    const { PetStatus, OrderStatus } = document.components.schemas;
    assert.deepEqual([PetStatus.enum, OrderStatus.enum], [PET_STATUSES, ORDER_STATUSES]);
  });

  it('leaves no reference without its end, and nothing without words', () => {
    const used = new Set<string>(['#/components/securitySchemes/bearerAuth']);
    for (const [, part] of parts(document)) {
      if (typeof part.$ref === 'string' && resolve(document, part)) used.add(part.$ref);
    }
    for (const [kind, all] of Object.entries<Part>(document.components)) {
      for (const [name, part] of Object.entries<Part>(all)) {
        assert.ok(used.has(`#/components/${kind}/${name}`), `${kind}/${name} is used nowhere`);
        assert.ok(part.description ?? part.summary, `${kind}/${name}`);
      }
    }
    for (const [at, part] of parts(document.components.schemas)) {
      if (/\/properties\/\w+$/.test(at)) assert.ok(resolve(document, part).description, at);
    }
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
    const { pattern } = document.components.schemas.Name;
    for (const flags of ['u', '']) {
      const told = new RegExp(pattern, flags);
      for (let unit = 0; unit <= 0xffff; unit++) {
        const name = String.fromCharCode(unit);
        assert.equal(told.test(name), /\P{White_Space}/u.test(name), `U+${unit.toString(16)}`);
      }
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

  /** Asks for an operation by its id, and follows its links as a stateful tester does: each once, with this reply. */
  async function follow(id: string, seen: string[], parameters: Part = {}, body?: unknown): Promise<void> {
    const { method, path, operation } = operationOf(id);
    const target = Object.entries(parameters).reduce((at, [name, value]) => at.replace(`{${name}}`, value), path);
    const { status, text } = await ask(method, target, body === undefined ? undefined : JSON.stringify(body));
    seen.push(`${id} ${status}`);
    const reply = JSON.parse(text);
    const filled = (value: unknown): unknown =>
      JSON.parse(JSON.stringify(value ?? null), (_, one) => (one === '$response.body#/id' ? reply.id : one));
    for (const part of Object.values<Part>(operation.responses[status]?.links ?? {})) {
      const link = resolve(document, part);
      if (seen.some((one) => one.startsWith(`${link.operationId} `))) continue;
      const body = link.requestBody && filled(link.requestBody);
      await follow(link.operationId, seen, filled(link.parameters ?? {}) as Part, body);
    }
  }

  it('is what the service gives out, but for the servers', async () => {
    const given = (await (await fetch(`${live.origin}/openapi.json`)).json()) as Part;
    assert.deepEqual(given.servers[0].url, `${live.origin}/v1`);
    const paths = JSON.parse(JSON.stringify(given.paths).replaceAll('staging.petstore.', 'staging.pets.'));
    assert.deepEqual({ ...given, servers: [], paths }, { ...document, servers: [] });
  });

  it('leads by its links from a new category to an order that is closed', async () => {
    const seen: string[] = [];
    await follow('putCategory', seen, { categoryId: '7' }, { name: 'Dogs' });
    const wanted = ['putCategory 201', 'createPet 201', 'getPet 200', 'createOrder 201', 'getOrder 200'];
    assert.deepEqual(seen, [...wanted, 'updateOrder 200']);
  });

  it('has request examples that the service answers as told', async () => {
    const bodies = (id: string): string[] => {
      const { examples } = operationOf(id).operation.requestBody.content['application/json'];
      return Object.values<Part>(examples).map(({ value }) => JSON.stringify(value));
    };
    const send = async (status: number, method: string, path: string, body: string) => {
      const reply = await ask(method, path, body);
      assert.equal(reply.status, status, `${method} ${path} ${body}`);
      return JSON.parse(reply.text);
    };
    for (const body of bodies('putCategory')) await send(201, 'PUT', '/v1/categories/1', body);
    for (const body of bodies('createPet')) await send(201, 'POST', '/v1/pets', body);
    for (const change of bodies('updateOrder').reverse()) {
      const pet = await send(201, 'POST', '/v1/pets', bodies('createPet')[0]);
      const [order] = bodies('createOrder').map((body) => body.replace(/\d+/, pet.id));
      const { id } = await send(201, 'POST', '/v1/store/orders', order);
      await send(200, 'PATCH', `/v1/store/orders/${id}`, change);
    }
  });

  it('has the bounds that the service keeps', async () => {
    const { minimum, maximum, default: byDefault } = document.components.parameters.Limit.schema;
    const { minLength, maxLength } = document.components.schemas.Name;
    const add = async (name: string, more = '"categoryId":1') =>
      (await ask('POST', '/v1/pets', `{"name":"${name}",${more}}`)).status;
    for (let i = 0; i <= byDefault; i++) await add(`Rex ${i}`);
    assert.equal(JSON.parse((await ask('GET', '/v1/pets')).text).length, byDefault);
    const list = async (limit: number) => (await ask('GET', `/v1/pets?limit=${limit}`)).status;
    assert.deepEqual(await Promise.all([minimum - 1, minimum, maximum, maximum + 1].map(list)), [400, 200, 200, 400]);
    const lengths = [minLength - 1, minLength, maxLength, maxLength + 1].map((length) => add('🐈'.repeat(length)));
    assert.deepEqual(await Promise.all(lengths), [400, 201, 201, 400]);
    for (const category of ['9223372036854775808', '-9223372036854775809', '1.5', '"1"']) {
      assert.equal(await add('Rex', `"categoryId":${category}`), 400);
    }
    assert.equal(await add('Rex', '"categoryId":-9223372036854775808'), 201);
    assert.equal(await add('Rex', '"categoryId":1,"age":3'), 400, 'no additional properties');
    assert.equal((await ask('POST', '/v1/store/orders', '{"petId":3,"status":"placed"}')).status, 400);
    assert.equal((await ask('PUT', '/v1/categories/1', '{"name":"Dogs","id":1}')).status, 400);
  });
});
