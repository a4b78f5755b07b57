/**
 * The OpenAPI document, held to the router, the catalogue of errors, the plans, and a live service. That it tells every
 * reply is tried where the replies are: each row of the table of test/api is held to it.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { PLAN_LIMITS } from '../../src/access/plans.ts';
import { CATALOGUE } from '../../src/http/errors.ts';
import { ENDPOINTS } from '../../src/routes.ts';
import { ORDER_STATUSES, PET_STATUSES } from '../../src/store/model.ts';
import { openapiDocument } from '../../src/web/openapi.ts';
import { checkReply, checkValue, type Part, resolve } from './schema.ts';
import { type Live, startLive } from './server.ts';

const URLS = { baseUrl: 'https://pets.example/v1', stagingBaseUrl: 'https://staging.pets.example/v1' };
const document = openapiDocument(URLS) as Part;
const METHODS = ['get', 'put', 'post', 'patch', 'delete'];
/** What the lab serves, where it is switched on. */
const LAB = [
  ...['advanceLabClock POST /lab/clock', 'createLabFault POST /lab/faults', 'deleteLabFaults DELETE /lab/faults'],
  ...['getLabClock GET /lab/clock', 'getLabGrade GET /lab/grade', 'listLabFaults GET /lab/faults'],
  ...['listLabRequests GET /lab/requests', 'resetLab POST /lab/reset', 'startLabDrill POST /lab/drill'],
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

describe('the OpenAPI document', () => {
  it('names the operations that the router has and those of the lab, and marks them as the router does', () => {
    const told = described.map(({ method, path, operation }) => {
      const stability = operation.deprecated ? 'deprecated' : (operation['x-stability'] ?? 'stable');
      return `${operation.operationId} ${method} ${path} ${stability}`;
    });
    const routed = ENDPOINTS.map(({ name, method, path, stability }) => `${name} ${method} ${path} ${stability}`);
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

  it('has every code of the catalogue, each with its status, an example and a reply that gives it', () => {
    const codes = Object.keys(CATALOGUE).sort();
    assert.deepEqual([...document.components.schemas.Error.properties.code.enum].sort(), codes);
    const examples = Object.values<Part>(document.components.examples).map(({ value }) => [value.code, value.status]);
    assert.deepEqual(Object.fromEntries(examples), CATALOGUE);
    const given = new Set<string>();
    for (const { operation } of described) {
      for (const [status, part] of Object.entries<Part>(operation.responses)) {
        for (const code of Object.keys(resolve(document, part).content?.['application/json'].examples ?? {})) {
          given.add(code);
          if (status !== 'default') assert.equal(CATALOGUE[code as keyof typeof CATALOGUE], Number(status), code);
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

  it('has only examples that fit their schemas', () => {
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

describe('the OpenAPI document against the live service', () => {
  let live: Live;
  before(async () => {
    live = await startLive();
  });
  after(() => live?.stop());

  async function ask(method: string, path: string, body?: string) {
    const type = body === undefined ? undefined : { 'Content-Type': 'application/json' };
    const headers = { Authorization: `Bearer ${live.key}`, ...type };
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

  it('has the bounds that the service keeps', async () => {
    const { minimum, maximum, default: byDefault } = document.components.parameters.Limit.schema;
    const { minLength, maxLength } = document.components.schemas.Name;
    for (let i = 0; i <= byDefault; i++) await ask('POST', '/v1/pets', `{"name":"Rex ${i}","categoryId":1}`);
    assert.equal(JSON.parse((await ask('GET', '/v1/pets')).text).length, byDefault);
    type Row = [status: number, asked: string, body?: string];
    const limited = (status: number, limit: number): Row => [status, `GET /v1/pets?limit=${limit}`];
    const named = (status: number, length: number): Row => {
      return [status, 'POST /v1/pets', `{"name":"${'🐈'.repeat(length)}","categoryId":1}`];
    };
    const filed = (status: number, id: string): Row => [status, 'POST /v1/pets', `{"name":"a","categoryId":${id}}`];
    const rows: Row[] = [
      ...[limited(400, minimum - 1), limited(200, minimum), limited(200, maximum), limited(400, maximum + 1)],
      ...[named(400, minLength - 1), named(201, minLength), named(201, maxLength), named(400, maxLength + 1)],
      ...[filed(400, '9223372036854775808'), filed(201, '9223372036854775807'), filed(400, '1.5'), filed(400, '"1"')],
      ...[filed(400, '-9223372036854775809'), filed(201, '-9223372036854775808'), filed(400, '1,"age":3')],
      [400, 'POST /v1/store/orders', '{"petId":3,"status":"placed"}'],
      [400, 'PUT /v1/categories/1', '{"name":"Dogs","id":1}'],
    ];
    for (const [status, asked, body] of rows) {
      const [method, path] = asked.split(' ');
      assert.equal((await ask(method, path, body)).status, status, `${asked} ${body}`);
    }
  });
});
