/**
 * The contract as a table: method, path, headers, body → status, code, headers. The rows of a group run in order
 * against one server that was started with the group's options on the seed (30 animals, 8 categories).
 */
import type { ErrorCode } from '../../src/http/errors.ts';

export interface Row {
  method?: string;
  path: string;
  /** Which key is sent; none by default in rows that say `key: null`. */
  key?: string | null;
  headers?: Record<string, string>;
  body?: unknown;
  /** Sent as it stands, in place of `body`. */
  text?: string | Uint8Array;
  status: number;
  code?: ErrorCode;
  /** The reply's body, whole. */
  json?: unknown;
  /** Part of the message of an error, or of the body of another reply; or all of the listed parts. */
  says?: string | string[];
  /** Reply headers: exact text, a pattern, or null for absent. */
  has?: Record<string, string | RegExp | null>;
}

export interface Group {
  name: string;
  /** What `serve` is started with, beside its data directory and port. */
  serve: string[];
  rows: Row[];
  /** What the log must say when all rows were tried. */
  logs?: RegExp[];
}

const pet = (id: number, name: string, categoryId: number, status: string) => ({ id, name, categoryId, status });
const newPet = { name: 'Rex', categoryId: 3 };
const DEPRECATED = {
  deprecation: '@1764892800',
  sunset: 'Thu, 05 Dec 2030 00:00:00 GMT',
  link: '</v1/pets>; rel="successor-version"',
};
const CHALLENGE = { 'www-authenticate': 'Bearer realm="petstore"' };
const BAD_KEY = { 'www-authenticate': 'Bearer realm="petstore", error="invalid_token"' };
const create = (body: unknown, rest: Omit<Row, 'path' | 'method' | 'body'>): Row => ({
  method: 'POST',
  path: '/v1/pets',
  body,
  ...rest,
});
const createText = (text: string | Uint8Array, rest: Partial<Row>): Row => ({
  method: 'POST',
  path: '/v1/pets',
  text,
  status: 400,
  code: 'invalid_json',
  ...rest,
});
const order = (body: unknown, rest: Omit<Row, 'path' | 'method' | 'body'>): Row => ({
  method: 'POST',
  path: '/v1/store/orders',
  body,
  ...rest,
});
const close = (id: number | string, status: unknown, rest: Omit<Row, 'path' | 'method' | 'body'>): Row => ({
  method: 'PATCH',
  path: `/v1/store/orders/${id}`,
  body: { status },
  ...rest,
});
const badList = (query: string, says: string | string[]): Row => ({
  path: `/v1/pets?${query}`,
  status: 400,
  code: 'invalid_parameter',
  says,
});

const pages: Row[] = [
  { path: '/', key: null, status: 200, has: { 'content-type': 'text/html; charset=utf-8' } },
  { path: '/healthz', key: null, status: 200, json: { status: 'ok' } },
  { path: '/readyz', key: null, status: 200, json: { status: 'ready' } },
  { method: 'HEAD', path: '/readyz', key: null, status: 200 },
  { method: 'OPTIONS', path: '/healthz', key: null, status: 204, has: { allow: 'GET, HEAD, OPTIONS' } },
  {
    method: 'POST',
    path: '/healthz',
    key: null,
    status: 405,
    code: 'method_not_allowed',
    has: { allow: 'GET, HEAD, OPTIONS' },
  },
  { path: '/nothing', key: null, status: 404, code: 'not_found' },
  { path: '/healthz/', key: null, status: 404, code: 'not_found' },
  { path: '/HEALTHZ', key: null, status: 404, code: 'not_found' },
];

const keys: Row[] = [
  { path: `/${'a'.repeat(2_100)}`, key: null, status: 414, code: 'uri_too_long' },
  { path: '/v1/pets', key: null, status: 401, code: 'missing_api_key', has: CHALLENGE },
  { path: '/v1/nothing', key: null, status: 401, code: 'missing_api_key', has: CHALLENGE },
  { path: '/v1', key: null, status: 401, code: 'missing_api_key' },
  { method: 'DELETE', path: '/v1/pets', key: null, status: 401, code: 'missing_api_key' },
  {
    path: '/v1/pets',
    key: null,
    headers: { authorization: 'Basic YTpi' },
    status: 401,
    code: 'missing_api_key',
    has: CHALLENGE,
  },
  {
    path: '/v1/pets',
    key: null,
    headers: { authorization: 'Bearer nonsense' },
    status: 401,
    code: 'invalid_api_key',
    has: BAD_KEY,
  },
  { path: '/v1/pets', key: 'mistyped', status: 401, code: 'invalid_api_key', has: BAD_KEY, says: 'checksum' },
  { path: '/v1/pets', key: 'unknown', status: 401, code: 'invalid_api_key', has: BAD_KEY },
  { path: '/v1/pets', key: 'staging', status: 401, code: 'invalid_api_key', has: BAD_KEY, says: 'staging' },
  { path: '/v1/pets?limit=1', key: 'lower-case scheme', status: 200 },
  { path: '/v1/nothing', status: 404, code: 'not_found' },
  { path: '/v1', status: 404, code: 'not_found' },
  { path: '/v1/pets/', status: 404, code: 'not_found' },
  { path: '/v1/PETS', status: 404, code: 'not_found' },
  { path: '/v1/%70ets', status: 404, code: 'not_found' },
];

const lists: Row[] = [
  { path: '/v1/pets?limit=1&', status: 200 },
  {
    path: '/v1/pets?limit=2',
    status: 200,
    json: [pet(1, 'Bello', 1, 'available'), pet(2, 'Mimi', 2, 'available')],
    has: { link: '</v1/pets?limit=2&after=2>; rel="next"', 'content-type': 'application/json; charset=utf-8' },
  },
  { path: '/v1/pets', status: 200, has: { link: '</v1/pets?limit=20&after=20>; rel="next"' } },
  { path: '/v1/pets?limit=100', status: 200, has: { link: null } },
  { path: '/v1/pets?after=29', status: 200, json: [pet(30, 'Hazel', 7, 'available')], has: { link: null } },
  { path: '/v1/pets?after=30', status: 200, json: [] },
  { path: '/v1/pets?after=-5&limit=1', status: 200, json: [pet(1, 'Bello', 1, 'available')] },
  { path: '/v1/pets?after=9223372036854775807', status: 200, json: [] },
  {
    path: '/v1/pets?status=sold&limit=2',
    status: 200,
    json: [pet(9, 'Waldi', 1, 'sold'), pet(18, 'Tiger', 2, 'sold')],
    has: { link: '</v1/pets?limit=2&status=sold&after=18>; rel="next"' },
  },
  {
    path: '/v1/pets?status=sold&limit=2&after=18',
    status: 200,
    json: [pet(23, 'Krümel', 7, 'sold')],
    has: { link: null },
  },
  { path: '/v1/pets?%6cimit=%31', status: 200, json: [pet(1, 'Bello', 1, 'available')] },
  { method: 'HEAD', path: '/v1/pets?limit=1', status: 200 },
  badList('limit=0', 'limit: must be an integer from 1 to 100'),
  badList('limit=101', 'limit'),
  badList('limit=', 'limit'),
  badList('limit', 'limit'),
  badList('limit=abc', 'limit'),
  badList('limit=1.0', 'limit'),
  badList('limit=%2B5', 'limit'),
  badList('limit=05', 'limit'),
  badList('limit=99999999999999999999', 'limit'),
  badList('limit=5&limit=5', 'twice'),
  badList('status=lost', 'available, pending, sold'),
  badList('status=Available', 'status'),
  badList('after=x', 'after'),
  badList('after=9223372036854775808', 'after'),
  badList('colour=red', 'colour'),
  badList('limit=%zz', 'percent'),
  badList('limit=%ff', 'percent'),
  badList('limit=0&status=lost&after=x&page=2', ['limit', 'status', 'after', 'page']),
  badList('a=1&b=2&limit=1&limit=2', ['"a"', '"b"', 'twice']),
  badList('__proto__=1', '__proto__'),
];

const animals: Row[] = [
  create(newPet, { status: 201, json: pet(31, 'Rex', 3, 'available'), has: { location: '/v1/pets/31' } }),
  create({ ...newPet, status: 'sold' }, { status: 201, json: pet(32, 'Rex', 3, 'sold') }),
  createText('{"name":"Big","categoryId":9007199254740993}', { status: 201, code: undefined }),
  createText('{"name":"Pow","categoryId":1e2,"status":"pending"}', {
    status: 201,
    code: undefined,
    json: pet(34, 'Pow', 100, 'pending'),
  }),
  createText('{"name":"One","categoryId":1.0}', { status: 201, code: undefined, json: pet(35, 'One', 1, 'available') }),
  create({ name: '😀'.repeat(255), categoryId: 1 }, { status: 201 }),
  create({ name: '😀'.repeat(256), categoryId: 1 }, { status: 400, code: 'invalid_body', says: '255' }),
  create({ name: ' \u00a0\n', categoryId: 1 }, { status: 400, code: 'invalid_body', says: 'name' }),
  create({ name: '', categoryId: 1 }, { status: 400, code: 'invalid_body', says: 'name' }),
  create({ name: '\u0085', categoryId: 1 }, { status: 400, code: 'invalid_body', says: 'name' }),
  create({ name: '\ufeff', categoryId: 1 }, { status: 201 }),
  create({ ...newPet, id: 5 }, { status: 400, code: 'invalid_body', says: 'id: is given by the service' }),
  create({ ...newPet, colour: 'red' }, { status: 400, code: 'invalid_body', says: 'colour' }),
  create({}, { status: 400, code: 'invalid_body', says: ['name', 'categoryId'] }),
  create(
    { name: 5, categoryId: '1', status: 'lost', id: 1, x: 1 },
    { status: 400, code: 'invalid_body', says: ['name', 'categoryId', 'status', 'id', 'x'] },
  ),
  create({ name: 'x', categoryId: 1, status: null }, { status: 400, code: 'invalid_body', says: 'status' }),
  create([], { status: 400, code: 'invalid_body', says: 'object' }),
  create(null, { status: 400, code: 'invalid_body', says: 'object' }),
  createText('{"name":"x","categoryId":1.5}', { code: 'invalid_body', says: 'categoryId' }),
  createText('{"name":"x","categoryId":9223372036854775808}', { code: 'invalid_body', says: 'categoryId' }),
  createText('{"name":"x","categoryId":1.00000000000000000001}', { code: 'invalid_body', says: 'categoryId' }),
  createText('{"name":"x","categoryId":1,"__proto__":{}}', { code: 'invalid_body', says: '__proto__' }),
  createText('', {}),
  create(undefined, { status: 400, code: 'invalid_json' }),
  createText('{"name":"x"', {}),
  createText('{"name":"x","name":"y","categoryId":1}', { says: 'name' }),
  createText('{"name":"\\ud800","categoryId":1}', {}),
  createText('\ufeff{"name":"x","categoryId":1}', {}),
  createText(Uint8Array.of(0x22, 0xff, 0x22), {}),
  createText('['.repeat(65) + ']'.repeat(65), {}),
  create(newPet, {
    headers: { 'content-type': 'text/plain' },
    status: 415,
    code: 'unsupported_media_type',
    has: { accept: 'application/json' },
  }),
  create(newPet, {
    headers: { 'content-type': 'application/json; charset=latin1' },
    status: 415,
    code: 'unsupported_media_type',
  }),
  create(newPet, { headers: { 'content-encoding': 'gzip' }, status: 415, code: 'unsupported_media_type' }),
  create(newPet, { headers: { 'content-encoding': 'identity' }, status: 415, code: 'unsupported_media_type' }),
  create(newPet, { headers: { 'content-type': 'Application/JSON; charset="UTF-8";' }, status: 201 }),
  createText(`{"name":"${'x'.repeat(65_536)}"`, { status: 413, code: 'body_too_large' }),
  { ...create(newPet, { status: 400, code: 'invalid_parameter', says: 'dry' }), path: '/v1/pets?dry=1' },
  { path: `/v1/pets?status=${'x'.repeat(2_040)}`, status: 414, code: 'uri_too_long' },
  {
    method: 'DELETE',
    path: '/v1/pets',
    status: 405,
    code: 'method_not_allowed',
    has: { allow: 'GET, HEAD, POST, OPTIONS' },
  },
  { method: 'PUT', path: '/v1/pets/1', status: 405, code: 'method_not_allowed', has: { allow: 'GET, HEAD, OPTIONS' } },
  {
    method: 'OPTIONS',
    path: '/v1/pets',
    key: null,
    status: 204,
    has: { allow: 'GET, HEAD, POST, OPTIONS', 'access-control-allow-methods': null },
  },
  { path: '/v1/pets/1', status: 200, json: pet(1, 'Bello', 1, 'available'), has: DEPRECATED },
  { method: 'HEAD', path: '/v1/pets/1', status: 200, has: DEPRECATED },
  { path: '/v1/pets/1', key: null, status: 401, code: 'missing_api_key', has: DEPRECATED },
  ...['999', '0', '-1', '1.0', '01', 'x', '9223372036854775808', '9223372036854775807', '__proto__'].map(
    (id): Row => ({ path: `/v1/pets/${id}`, status: 404, code: 'not_found', has: DEPRECATED }),
  ),
];

const orders: Row[] = [
  { path: '/v1/store/orders', status: 200, json: [] },
  order({ petId: 1 }, { status: 201 }),
  { path: '/v1/pets/1', status: 200, json: pet(1, 'Bello', 1, 'pending') },
  order({ petId: 1 }, { status: 409, code: 'pet_unavailable', says: 'pending' }),
  order({ petId: 9 }, { status: 409, code: 'pet_unavailable', says: 'sold' }),
  order({ petId: 999 }, { status: 400, code: 'invalid_body', says: '999' }),
  order({ petId: 999, x: 1 }, { status: 400, code: 'invalid_body', says: ['no animal 999', 'x'] }),
  order({ petId: 0 }, { status: 400, code: 'invalid_body' }),
  order({ petId: '1' }, { status: 400, code: 'invalid_body', says: 'petId' }),
  order({ petId: 1, status: 'placed' }, { status: 400, code: 'invalid_body', says: 'status' }),
  close(1, 'lost', { status: 400, code: 'invalid_body', says: 'delivered' }),
  close(1, 'placed', { status: 400, code: 'invalid_body' }),
  { method: 'PATCH', path: '/v1/store/orders/1', status: 400, code: 'invalid_json' },
  close(2, 'delivered', { status: 404, code: 'not_found' }),
  close('x', 'delivered', { status: 404, code: 'not_found' }),
  close(1, 'cancelled', { status: 200 }),
  close(1, 'delivered', { status: 409, code: 'order_closed', says: 'cancelled' }),
  { path: '/v1/pets/1', status: 200, json: pet(1, 'Bello', 1, 'available') },
  order({ petId: 1 }, { status: 201 }),
  close(2, 'delivered', { status: 200 }),
  { path: '/v1/pets/1', status: 200, json: pet(1, 'Bello', 1, 'sold') },
  { path: '/v1/store/orders?limit=1', status: 200, has: { link: '</v1/store/orders?limit=1&after=1>; rel="next"' } },
  { path: '/v1/store/orders?status=delivered', status: 200, has: { link: null } },
  {
    path: '/v1/store/orders?status=available',
    status: 400,
    code: 'invalid_parameter',
    says: 'placed, delivered, cancelled',
  },
];

const categories: Row[] = [
  {
    path: '/v1/categories?limit=1',
    status: 200,
    json: [{ id: 1, name: 'Dogs' }],
    has: { link: '</v1/categories?limit=1&after=1>; rel="next"' },
  },
  { method: 'PUT', path: '/v1/categories/9', body: { name: 'Ponies' }, status: 201, json: { id: 9, name: 'Ponies' } },
  { method: 'PUT', path: '/v1/categories/9', body: { name: 'Horses' }, status: 200, json: { id: 9, name: 'Horses' } },
  { method: 'PUT', path: '/v1/categories/-9223372036854775808', body: { name: 'Least' }, status: 201 },
  { path: '/v1/categories?after=8', status: 200, json: [{ id: 9, name: 'Horses' }] },
  { method: 'PUT', path: '/v1/categories/9', body: { name: '' }, status: 400, code: 'invalid_body' },
  { method: 'PUT', path: '/v1/categories/9', status: 400, code: 'invalid_json' },
  {
    method: 'PUT',
    path: '/v1/categories/9',
    body: { id: 9, name: 'x' },
    status: 400,
    code: 'invalid_body',
    says: 'id',
  },
  { method: 'PUT', path: '/v1/categories/9223372036854775808', body: { name: 'x' }, status: 404, code: 'not_found' },
  { path: '/v1/categories?status=sold', status: 400, code: 'invalid_parameter' },
  { path: '/v1/categories/9', status: 405, code: 'method_not_allowed', has: { allow: 'PUT, OPTIONS' } },
];

const again = { 'idempotency-key': 'a-1' };
const repeats: Row[] = [
  create(
    { name: 'Once', categoryId: 1 },
    { headers: again, status: 201, json: pet(31, 'Once', 1, 'available'), has: { 'idempotent-replayed': null } },
  ),
  create(
    { categoryId: 1, name: 'Once' },
    {
      headers: again,
      status: 201,
      json: pet(31, 'Once', 1, 'available'),
      has: { 'idempotent-replayed': 'true', location: '/v1/pets/31' },
    },
  ),
  create(
    { name: 'Once', categoryId: 1 },
    { headers: { 'idempotency-key': '"a-1"' }, status: 201, has: { 'idempotent-replayed': 'true' } },
  ),
  create({ name: 'Other', categoryId: 1 }, { headers: again, status: 422, code: 'idempotency_key_reused' }),
  create(
    { name: 'Other', categoryId: 1 },
    { headers: again, key: 'second', status: 201, json: pet(32, 'Other', 1, 'available') },
  ),
  create({ name: '', categoryId: 1 }, { headers: { 'idempotency-key': 'a-2' }, status: 400, code: 'invalid_body' }),
  create({ name: 'Fine', categoryId: 1 }, { headers: { 'idempotency-key': 'a-2' }, status: 201 }),
  create(newPet, { headers: { 'idempotency-key': 'x'.repeat(255) }, status: 201 }),
  create(newPet, {
    headers: { 'idempotency-key': 'x'.repeat(256) },
    status: 400,
    code: 'bad_request',
    says: 'Idempotency-Key',
  }),
  create(newPet, { headers: { 'idempotency-key': 'two words' }, status: 400, code: 'bad_request' }),
  create(newPet, { headers: { 'idempotency-key': '""' }, status: 400, code: 'bad_request' }),
  order({ petId: 31 }, { headers: again, status: 201 }),
  order({ petId: 31 }, { headers: again, status: 201, has: { 'idempotent-replayed': 'true' } }),
  order({ petId: 32 }, { headers: again, status: 422, code: 'idempotency_key_reused' }),
  create(
    { name: 'Once', categoryId: 1 },
    { headers: again, status: 201, json: pet(31, 'Once', 1, 'available'), has: { 'idempotent-replayed': 'true' } },
  ),
];

const corsFrom = (origin: string, vary: string | null): Row[] => [
  {
    path: '/v1/pets?limit=1',
    status: 200,
    has: {
      'access-control-allow-origin': origin,
      vary,
      'access-control-expose-headers': /X-RateLimit-Remaining.*Retry-After.*Link.*Deprecation.*Sunset.*X-Request-Id/,
    },
  },
  { path: '/v1/pets', key: null, status: 401, code: 'missing_api_key', has: { 'access-control-allow-origin': origin } },
  {
    method: 'OPTIONS',
    path: '/v1/pets',
    key: null,
    status: 204,
    has: {
      'access-control-allow-methods': 'GET, HEAD, POST, OPTIONS',
      'access-control-allow-headers': /Authorization.*Content-Type.*Idempotency-Key/,
    },
  },
];

const unknownFrom = (address: string): Row => ({
  path: '/v1/pets',
  key: null,
  headers: { 'x-forwarded-for': address },
  status: 401,
  code: 'missing_api_key',
});

export const GROUPS: Group[] = [
  { name: 'pages', serve: [], rows: pages },
  { name: 'keys', serve: [], rows: keys },
  { name: 'lists', serve: [], rows: lists },
  { name: 'animals', serve: [], rows: animals },
  { name: 'orders', serve: [], rows: orders },
  { name: 'categories', serve: [], rows: categories },
  { name: 'asking again', serve: [], rows: repeats },
  {
    name: 'known categories',
    serve: ['--categories', 'known'],
    rows: [
      create({ name: 'x', categoryId: 9 }, { status: 400, code: 'invalid_body', says: 'categoryId' }),
      create(
        { name: '', categoryId: 77, x: 1 },
        { status: 400, code: 'invalid_body', says: ['categoryId: there is no category 77', 'name', '"x"'] },
      ),
      create({ name: 'x', categoryId: 8 }, { status: 201 }),
    ],
  },
  {
    name: 'open categories',
    serve: ['--categories', 'open'],
    rows: [
      create(
        { name: 'x', categoryId: 9, x: 1 },
        {
          status: 400,
          json: { code: 'invalid_body', message: '"x": is unknown; leave it out', status: 400 },
        },
      ),
      create({ name: 'x', categoryId: 9 }, { status: 201 }),
    ],
  },
  {
    name: 'one origin',
    serve: ['--cors-origin', 'https://shop.example'],
    rows: corsFrom('https://shop.example', 'Origin'),
  },
  { name: 'any origin', serve: ['--cors-origin', '*'], rows: corsFrom('*', null) },
  {
    name: 'staging',
    serve: ['--environment', 'staging'],
    rows: [
      { path: '/v1/pets?limit=1', status: 200 },
      { path: '/v1/pets', key: 'production', status: 401, code: 'invalid_api_key', says: 'production' },
    ],
  },
  {
    name: 'one proxy is trusted',
    serve: ['--trust-proxy', '1'],
    rows: [
      { ...unknownFrom('192.0.2.1'), has: { 'x-ratelimit-remaining': '59' } },
      { ...unknownFrom('198.51.100.1, 192.0.2.1'), has: { 'x-ratelimit-remaining': '58' } },
      { ...unknownFrom('192.0.2.2'), has: { 'x-ratelimit-remaining': '59' } },
    ],
  },
  {
    name: 'no proxy is trusted',
    serve: ['--trust-proxy', '0'],
    rows: [
      { ...unknownFrom('192.0.2.1'), has: { 'x-ratelimit-remaining': '59' } },
      { ...unknownFrom('192.0.2.2'), has: { 'x-ratelimit-remaining': '58' } },
    ],
  },
  {
    name: 'banned at the second refusal',
    serve: ['--ban-after', '2'],
    rows: [
      { path: '/v1/pets', key: 'one a minute', status: 200 },
      { path: '/v1/pets', key: 'one a minute', status: 429, code: 'rate_limited' },
      { path: '/v1/pets', key: 'one a minute', status: 429, code: 'key_banned', has: { 'x-ratelimit-remaining': '0' } },
    ],
  },
  {
    name: 'never banned',
    serve: ['--ban-after', '0'],
    rows: [
      { path: '/v1/pets', key: 'one a minute', status: 200 },
      ...Array.from(
        { length: 9 },
        (): Row => ({ path: '/v1/pets', key: 'one a minute', status: 429, code: 'rate_limited' }),
      ),
    ],
  },
  {
    name: 'the addresses of the document',
    serve: ['--base-url', 'https://shop.example/v1', '--staging-base-url', 'https://staging.shop.example/v1'],
    rows: [
      {
        path: '/openapi.json',
        key: null,
        status: 200,
        says: ['"https://shop.example/v1"', '"https://staging.shop.example/v1"'],
      },
    ],
  },
  {
    name: 'a line of log for every request',
    serve: ['--access-log', '--log-level', 'warn'],
    rows: [
      { path: '/v1/pets?limit=3', status: 200 },
      { path: '/v1/nothing', key: null, status: 401, code: 'missing_api_key' },
    ],
    logs: [/"target":"\/v1\/pets\?limit=3","status":200/, /"target":"\/v1\/nothing","status":401/],
  },
  { name: 'beside metrics', serve: ['--metrics', '127.0.0.1:0'], rows: [{ path: '/v1/pets', status: 200 }] },
  { name: 'on one address', serve: ['--host', '127.0.0.1'], rows: [{ path: '/v1/pets', status: 200 }] },
];
