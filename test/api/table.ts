/**
 * The contract as a table: what is asked → status, code, headers. The rows of a group run in order against one server
 * with the group's settings on the seed (30 animals, 8 categories).
 */
import { CATALOGUE, type ErrorCode } from '../../src/http/errors.ts';
import type { Settings } from '../../src/service/service.ts';

export interface Row {
  method: string;
  path: string;
  /** Which key is sent, or the header's text with KEY for the first one; none where it is null. */
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
  /** Reply headers: exact text, a pattern, or null for absent. `ETAG`, here and in what is sent: as the path last gave. */
  has?: Record<string, string | RegExp | null>;
}

export interface Group {
  name: string;
  settings: Partial<Settings> & { banAfter?: number };
  rows: Row[];
}

type Rest = Partial<Row>;
const words = (text: string) => text.split(' ');

/** `METHOD path`, or a path to GET. */
function ok(asked: string, rest: Rest = {}): Row {
  const [path, method = 'GET'] = asked.split(' ').reverse();
  return { method, path, status: 200, ...rest };
}
const no = (asked: string, code: ErrorCode, rest: Rest = {}): Row =>
  ok(asked, { status: CATALOGUE[code], code, ...rest });

const pet = (id: number, name: string, categoryId: number, status = 'available') => ({ id, name, categoryId, status });
const newPet = { name: 'Rex', categoryId: 3 };
const PETS = 'POST /v1/pets';
const add = (body: unknown, rest: Rest = {}) => ok(PETS, { body, status: 201, ...rest });
const noPet = (body: unknown, says: Rest['says'], rest: Rest = {}) => no(PETS, 'invalid_body', { body, says, ...rest });
const sent = (name: string, value: string): Rest => ({ headers: { [name]: value } });

const ORDERS = '/v1/store/orders';
const place = (petId: unknown, rest: Rest = {}) => ok(`POST ${ORDERS}`, { body: { petId }, status: 201, ...rest });
const noOrder = (body: unknown, code: ErrorCode, says?: Rest['says']) => no(`POST ${ORDERS}`, code, { body, says });
const close = (id: number, status: string) => ok(`PATCH ${ORDERS}/${id}`, { body: { status } });
const noClose = (id: number | string, status: string, code: ErrorCode, says?: string) =>
  no(`PATCH ${ORDERS}/${id}`, code, { body: { status }, says });
const category = (id: string, body: unknown, rest: Rest = {}) => ok(`PUT /v1/categories/${id}`, { body, ...rest });
const noCategory = (id: string, body: unknown, code: ErrorCode, rest: Rest = {}) =>
  no(`PUT /v1/categories/${id}`, code, { body, ...rest });

const PET_METHODS = 'GET, HEAD, PATCH, DELETE, OPTIONS';
const allow = (methods: string): Rest => ({ has: { allow: methods } });
const link = (target: string | null): Rest => ({ has: { link: target && `<${target}>; rel="next"` } });
const DEPRECATED = {
  deprecation: '@1764892800',
  sunset: 'Thu, 05 Dec 2030 00:00:00 GMT',
  link: '</v1/pets>; rel="successor-version"',
};
const NO_ANIMAL = { code: 'not_found', message: 'there is no such animal', status: 404 };
const options = (has: Rest['has']) => ok('OPTIONS /v1/pets', { key: null, status: 204, has });
const NO_KEY = { key: null, has: { 'www-authenticate': 'Bearer realm="petstore"' } };
const BAD_KEY = { 'www-authenticate': 'Bearer realm="petstore", error="invalid_token"' };
const badKey = (key: string, says: string) => no('/v1/pets', 'invalid_api_key', { key, has: BAD_KEY, says });
const noBearer = (key: string, says: string) => no('/v1/pets', 'missing_api_key', { ...NO_KEY, key, says });
const PAGE_METHODS = allow('GET, HEAD, OPTIONS');

const pages: Row[] = [
  ok('/', { has: { 'content-type': 'text/html; charset=utf-8' } }),
  ok('/healthz', { json: { status: 'ok' } }),
  ok('/readyz', { json: { status: 'ready' } }),
  ok('HEAD /readyz'),
  ok('OPTIONS /healthz', { status: 204, ...PAGE_METHODS }),
  no('POST /healthz', 'method_not_allowed', PAGE_METHODS),
  ...words('/nothing /healthz/ /HEALTHZ /lab/clock').map((path) => no(path, 'not_found')),
  no(`/${'a'.repeat(2_100)}`, 'uri_too_long'),
].map((row) => ({ ...row, key: null }));

const keys: Row[] = [
  ...['/v1/pets', '/v1/nothing', '/v1', 'DELETE /v1/pets'].map((asked) =>
    no(asked, 'missing_api_key', { ...NO_KEY, says: 'No API key was sent. Send "Authorization: Bearer <key>".' }),
  ),
  ...['Basic YTpi', 'BearerKEY', 'KEY'].map((header) => noBearer(header, 'is not of the Bearer scheme. Send')),
  noBearer('Bearer', 'names the Bearer scheme, but no API key. Send'),
  ...['nonsense', 'KEY x', '"KEY"', 'KEY,', 'xKEY', 'KEY0', 'KEYé', 'ps_live_0'].map((key) =>
    badKey(`Bearer ${key}`, 'This is not an API key: one begins with "ps_live_" or "ps_test_"'),
  ),
  badKey('mistyped', 'The API key is mistyped: its checksum does not match'),
  badKey('unknown', 'This server does not know the API key'),
  badKey('staging', 'a staging key ("ps_test_"), but this is the production service: send a "ps_live_" key'),
  ...['bearer KEY', 'BEARER KEY', 'beArer    KEY'].map((key) => ok('/v1/pets?limit=1', { key })),
  ...words('nothing store pets/ /pets pets//1 pets/1/ pets/1/2 PETS %70ets {petId} constructor')
    .map((rest) => `/v1/${rest}`)
    .concat('/v1', '/v1/')
    .map((path) => no(path, 'not_found')),
];

const badList = (query: string, says: Rest['says']) => no(`/v1/pets?${query}`, 'invalid_parameter', { says });
const lists: Row[] = [
  ok('/v1/pets?limit=1&'),
  ok('/v1/pets?limit=2', {
    json: [pet(1, 'Bello', 1), pet(2, 'Mimi', 2)],
    has: { ...link('/v1/pets?limit=2&after=2').has, 'content-type': 'application/json; charset=utf-8' },
  }),
  ok('/v1/pets', link('/v1/pets?limit=20&after=20')),
  ok('/v1/pets?limit=100', link(null)),
  ok('/v1/pets?after=29', { json: [pet(30, 'Hazel', 7)], ...link(null) }),
  ok('/v1/pets?after=30', { json: [] }),
  ok('/v1/pets?after=-5&limit=1', { json: [pet(1, 'Bello', 1)] }),
  ok('/v1/pets?after=9223372036854775807', { json: [] }),
  ok('/v1/pets?status=sold&limit=2', {
    json: [pet(9, 'Waldi', 1, 'sold'), pet(18, 'Tiger', 2, 'sold')],
    ...link('/v1/pets?limit=2&status=sold&after=18'),
  }),
  ok('/v1/pets?status=sold&limit=2&after=18', { json: [pet(23, 'Krümel', 7, 'sold')], ...link(null) }),
  ok('/v1/pets?%6cimit=%31', { json: [pet(1, 'Bello', 1)] }),
  ok('HEAD /v1/pets?limit=1'),
  badList('limit=0', 'limit: must be a whole number from 1 to 100'),
  ...words('limit limit= limit=101 limit=abc limit=1.0 limit=%2B5 limit=05 limit=99999999999999999999').map((wrong) =>
    badList(wrong, 'limit'),
  ),
  badList('limit=5&limit=5', 'twice'),
  badList('status=lost', 'available, pending, sold'),
  badList('status=Available', 'status'),
  ...['x', '9223372036854775808'].map((wrong) => badList(`after=${wrong}`, 'after')),
  badList('colour=red', 'colour'),
  ...['%zz', '%ff'].map((wrong) => badList(`limit=${wrong}`, 'percent')),
  badList('limit=0&status=lost&after=x&page=2', ['limit', 'status', 'after', 'page']),
  badList('a=1&b=2&limit=1&limit=2', ['"a"', '"b"', 'twice']),
  badList('__proto__=1', '__proto__'),
];

const CAT = '\u{1f63a}';
const NAME = 'a string of 1–255 characters';
const WHOLE = 'a whole number';
const INT64 = `${WHOLE} from -9223372036854775808 to 9223372036854775807`;
const STATUS = 'one of "available", "pending", "sold"';
const animals: Row[] = [
  add(newPet, { json: pet(31, 'Rex', 3), has: { location: '/v1/pets/31' } }),
  add({ ...newPet, status: 'sold' }, { json: pet(32, 'Rex', 3, 'sold') }),
  ok(PETS, { text: '{"name":"Pow","categoryId":1e2}', status: 201, json: pet(33, 'Pow', 100) }),
  ...words('9007199254740993 -9007199254740993 9223372036854775807 -9223372036854775808 0').map((id) =>
    ok(PETS, { text: `{"name":"Pow","categoryId":${id}}`, status: 201, says: `,"categoryId":${id},"status"` }),
  ),
  ok('/v1/pets?after=33&limit=1', {
    says: '[{"id":34,"name":"Pow","categoryId":9007199254740993,"status":"available"}]',
  }),
  add({ name: CAT.repeat(255), categoryId: 1 }),
  add({ name: '\ufeff', categoryId: 1 }),
  noPet({ name: CAT.repeat(256), categoryId: 1 }, 'name: must be 1–255 characters (got 256)'),
  noPet({ name: '', categoryId: 1 }, 'name: must be 1–255 characters (got 0)'),
  ...[' \u00a0\n', '\u0085'].map((name) => noPet({ name, categoryId: 1 }, 'name: must not be only white space')),
  noPet(
    { ...newPet, id: 5, colour: 'red' },
    'id: is given by the service; leave it out; "colour": is unknown; leave it out',
  ),
  noPet({ name: 'a\0b', categoryId: 1 }, 'name: must not have the character U+0000'),
  noPet({}, `name: is missing (${NAME}); categoryId: is missing (${WHOLE})`),
  noPet({ name: 5, categoryId: '1', status: 'lost', id: 1, x: 1 }, [
    `name: must be ${NAME} (got 5); categoryId: must be ${WHOLE} (got "1"); status: must be ${STATUS} (got "lost"); id: `,
    'leave it out; "x": is unknown',
  ]),
  noPet({ name: {}, categoryId: [], status: null }, ['(got an object); ', '(got an array); ', '(got null)']),
  ...['[]', 'null', '1.5'].map((text) => noPet(undefined, 'must be a JSON object (got ', { text })),
  ...words('1.5 true 9223372036854775808 1.00000000000000000001').map((id) =>
    noPet(undefined, `categoryId: must be ${id === 'true' ? WHOLE : INT64} (got ${id})`, {
      text: `{"name":"x","categoryId":${id}}`,
    }),
  ),
  noPet(undefined, '__proto__', { text: '{"name":"x","categoryId":1,"__proto__":{}}' }),
  no(PETS, 'invalid_json'),
  ...['', '{"name":"x"', '"\\ud800"', '\ufeff{}', Uint8Array.of(0x22, 0xff, 0x22), '['.repeat(65) + ']'.repeat(65)].map(
    (text) => no(PETS, 'invalid_json', { text }),
  ),
  no(PETS, 'invalid_json', { text: '{"name":"x","name":"y","categoryId":1}', says: 'name' }),
  ...[sent('content-type', 'text/plain'), sent('content-type', 'application/json; charset=latin1')].map((headers) =>
    no(PETS, 'unsupported_media_type', { body: newPet, ...headers, has: { accept: 'application/json' } }),
  ),
  ...['gzip', 'identity'].map((name) =>
    no(PETS, 'unsupported_media_type', {
      body: newPet,
      ...sent('content-encoding', name),
      has: { 'accept-encoding': 'identity', 'accept-patch': null },
    }),
  ),
  add(newPet, sent('content-type', 'Application/JSON; charset="UTF-8";')),
  no(PETS, 'body_too_large', { text: `{"name":"${'x'.repeat(65_536)}"` }),
  no(`${PETS}?dry=1`, 'invalid_parameter', { body: newPet, says: 'dry' }),
  ...['GET', 'OPTIONS'].map((method) => no(`${method} /v1/pets?status=${'x'.repeat(2_040)}`, 'uri_too_long')),
  no('DELETE /v1/pets', 'method_not_allowed', allow('GET, HEAD, POST, OPTIONS')),
  no('PUT /v1/pets/1', 'method_not_allowed', allow(PET_METHODS)),
  options({ allow: 'GET, HEAD, POST, OPTIONS', 'access-control-allow-methods': null }),
  ok('/v1/pets/1', { json: pet(1, 'Bello', 1), has: DEPRECATED }),
  ok('HEAD /v1/pets/1', { has: DEPRECATED }),
  no('/v1/pets/1', 'missing_api_key', { key: null, has: DEPRECATED }),
  no(`/v1/pets/1?status=${'x'.repeat(2_040)}`, 'uri_too_long', { has: DEPRECATED }),
  ...words('999 0 -1 1.0 01 x 9223372036854775808 9223372036854775807 __proto__').map((id) =>
    no(`/v1/pets/${id}`, 'not_found', { has: DEPRECATED, json: NO_ANIMAL }),
  ),
];

const orders: Row[] = [
  ok(ORDERS, { json: [] }),
  place(1, { has: { location: `${ORDERS}/1` } }),
  ok('/v1/pets/1', { json: pet(1, 'Bello', 1, 'pending') }),
  ok(`${ORDERS}/1`, { says: '"id":1,"petId":1,"status":"placed","placedAt":"20' }),
  ok(`HEAD ${ORDERS}/1`),
  ...['2', '0', 'x', '01', '9223372036854775808'].map((id) => no(`${ORDERS}/${id}`, 'not_found')),
  no(`${ORDERS}/1?a`, 'invalid_parameter'),
  no(`PUT ${ORDERS}/1`, 'method_not_allowed', allow('GET, HEAD, PATCH, OPTIONS')),
  noOrder({ petId: 1 }, 'pet_unavailable', 'pending'),
  noOrder({ petId: 9 }, 'pet_unavailable', 'sold'),
  noOrder({ petId: 999 }, 'invalid_body', '999'),
  noOrder({ petId: 999, x: 1 }, 'invalid_body', 'petId: there is no animal 999; "x": is unknown; leave it out'),
  noOrder({ petId: 0 }, 'invalid_body'),
  noOrder({ petId: '1' }, 'invalid_body', 'petId'),
  noOrder({ petId: 1, status: 'placed' }, 'invalid_body', 'status'),
  noClose(1, 'lost', 'invalid_body', 'delivered'),
  noClose(1, 'placed', 'invalid_body'),
  no(`PATCH ${ORDERS}/1`, 'unsupported_media_type', {
    body: { status: 'delivered' },
    ...sent('content-type', 'text/plain'),
    has: { 'accept-patch': 'application/json', 'accept-encoding': null },
  }),
  ok(`OPTIONS ${ORDERS}/1`, { status: 204, has: { 'accept-patch': 'application/json' } }),
  ok(`OPTIONS ${ORDERS}`, { status: 204, has: { 'accept-patch': null } }),
  no(`PATCH ${ORDERS}/1`, 'invalid_body', { body: {}, says: 'status: is missing (one of "delivered", "cancelled")' }),
  no(`PATCH ${ORDERS}/1`, 'invalid_json'),
  noClose(2, 'delivered', 'not_found'),
  noClose('x', 'delivered', 'not_found'),
  close(1, 'cancelled'),
  noClose(1, 'delivered', 'order_closed', 'cancelled'),
  ok('/v1/pets/1', { json: pet(1, 'Bello', 1) }),
  place(1, { has: { location: `${ORDERS}/2` } }),
  close(2, 'delivered'),
  ok('/v1/pets/1', { json: pet(1, 'Bello', 1, 'sold') }),
  ok(`${ORDERS}?limit=1`, link(`${ORDERS}?limit=1&after=1`)),
  ok(`${ORDERS}?status=delivered`, link(null)),
  no(`${ORDERS}?status=available`, 'invalid_parameter', { says: 'placed, delivered, cancelled' }),
];

const categories: Row[] = [
  ok('/v1/categories?limit=1', { json: [{ id: 1, name: 'Dogs' }], ...link('/v1/categories?limit=1&after=1') }),
  category('9', { name: 'Ponies' }, { status: 201, json: { id: 9, name: 'Ponies' } }),
  category('9', { name: 'Horses' }, { json: { id: 9, name: 'Horses' } }),
  category('-9223372036854775808', { name: 'Least' }, { status: 201 }),
  ok('/v1/categories?after=8', { json: [{ id: 9, name: 'Horses' }] }),
  noCategory('9', { name: '' }, 'invalid_body'),
  noCategory('9', undefined, 'invalid_json'),
  noCategory('9', { id: 9, name: 'x' }, 'invalid_body', { says: 'id' }),
  noCategory('9223372036854775808', { name: 'x' }, 'not_found'),
  no('/v1/categories?status=sold', 'invalid_parameter'),
  no('/v1/categories/9', 'method_not_allowed', allow('PUT, OPTIONS')),
];

const like = (tags: string) => sent('if-match', tags);
const unlike = (tags: string) => sent('if-none-match', tags);
const TAGGED = { has: { etag: /^"[\w-]+"$/ } };
/** Not modified: the body is spared, and nothing else. */
const same = (asked: string, tags: string, has: Rest['has'] = {}) =>
  ok(asked, { ...unlike(tags), status: 304, has: { etag: 'ETAG', 'content-type': null, ...has } });
const unmet = (asked: string, rest: Rest) => no(asked, 'precondition_failed', { ...rest, has: { etag: null } });
const badTags = (asked: string, rest: Rest) =>
  no(asked, 'bad_request', { ...rest, says: 'must be * or a list of ETags', has: { connection: /./ } });
const dogs = { name: 'Dogs' };
const noPut = (id: number, rest: Rest) => unmet(`PUT /v1/categories/${id}`, { body: dogs, ...rest });
const deliver = { body: { status: 'delivered' } };
const conditions: Row[] = [
  ok('/v1/pets?limit=2', TAGGED),
  ...['ETAG', '*', 'W/ETAG', '"other", ETAG', ',, "a,b" ,\tETAG ,'].map((tags) =>
    same('/v1/pets?limit=2', tags, link('/v1/pets?limit=2&after=2').has),
  ),
  same('HEAD /v1/pets?limit=2', 'ETAG'),
  ...['"other"', '', 'W/"other"', '"a,b", "ETA"'].map((tags) => ok('/v1/pets?limit=2', { ...unlike(tags), ...TAGGED })),
  ...['other', 'ETAG ETAG', '*, ETAG', 'w/ETAG', '"', '"two words"', "'a'"].map((tags) =>
    badTags('/v1/pets?limit=2', unlike(tags)),
  ),
  ok('/v1/pets?limit=2', like('ETAG')),
  ok('/v1/pets?limit=2', like('*')),
  ...['"other"', 'W/ETAG', ''].map((tags) => unmet('/v1/pets?limit=2', like(tags))),
  no('/v1/pets?limit=0', 'invalid_parameter', { ...unlike('*'), has: { etag: null } }),
  ok('HEAD /v1/pets/3', { has: { ...DEPRECATED, ...TAGGED.has } }),
  same('/v1/pets/3', 'ETAG', DEPRECATED),
  unmet('/v1/pets/3', { ...like('"other"') }),
  no('/v1/pets/999', 'not_found', { ...unlike('*'), has: { etag: null } }),
  no('/v1/pets/999', 'not_found', like('"other"')),
  ok('/v1/categories', TAGGED),
  same('/v1/categories', 'ETAG'),
  ok(`${ORDERS}?status=placed`, TAGGED),
  same(`${ORDERS}?status=placed`, 'ETAG'),
  add(newPet, { ...unlike('*'), has: { etag: null } }),

  noPut(70, { ...like('*'), says: 'there is nothing at this path yet' }),
  noPut(70, like('"other"')),
  category('70', dogs, { ...unlike('*'), status: 201, ...TAGGED }),
  noPut(70, { ...unlike('*'), says: 'there is something at this path already' }),
  noPut(70, unlike('"other", ETAG')),
  noPut(70, { ...like('W/ETAG'), says: 'a weak ETag (W/) never matches here' }),
  noPut(70, like('')),
  category('70', { name: 'Hounds' }, { ...like('"other", ETAG'), ...TAGGED }),
  category('70', { name: 'Hounds' }, { ...like('ETAG'), has: { etag: 'ETAG' } }),
  category('70', { name: 'Dogs, all' }, { headers: { 'if-match': '*', 'if-none-match': '"other"' } }),
  noPut(70, { headers: { 'if-match': 'ETAG', 'if-none-match': 'ETAG' } }),
  badTags('PUT /v1/categories/70', { body: dogs, ...like('Dogs') }),
  badTags('PUT /v1/categories/70', { body: dogs, ...unlike('*, *') }),

  place(5, { says: '"id":3' }),
  ok(`${ORDERS}/3`, TAGGED),
  same(`${ORDERS}/3`, 'ETAG'),
  unmet(`PATCH ${ORDERS}/3`, { ...deliver, ...like('"other"'), says: 'it has changed' }),
  unmet(`PATCH ${ORDERS}/3`, { ...deliver, ...unlike('*') }),
  no(`PATCH ${ORDERS}/4`, 'not_found', { ...deliver, ...like('"other"') }),
  ok(`PATCH ${ORDERS}/3`, { ...deliver, ...like('ETAG'), ...TAGGED }),
  ok(`${ORDERS}/3`, { has: { etag: 'ETAG' }, says: 'delivered' }),
  unmet(`PATCH ${ORDERS}/3`, { ...deliver, ...like('"other"') }),
  no(`PATCH ${ORDERS}/3`, 'order_closed', { ...deliver, ...like('ETAG') }),
];

const under = (key: string) => sent('idempotency-key', key);
const REPLAYED = { has: { 'idempotent-replayed': 'true' } };
const change = (id: number, body: unknown, rest: Rest = {}) => ok(`PATCH /v1/pets/${id}`, { body, ...rest });
const noChange = (id: number | string, body: unknown, says: Rest['says'], rest: Rest = {}) =>
  no(`PATCH /v1/pets/${id}`, 'invalid_body', { body, says, ...rest });
const remove = (id: number, rest: Rest = {}) => ok(`DELETE /v1/pets/${id}`, { status: 204, ...rest });
const NEITHER = 'name, categoryId: at least one of them must be sent';
const changes: Row[] = [
  change(1, { name: 'Bella' }, { json: pet(1, 'Bella', 1), ...TAGGED }),
  change(1, { categoryId: 9 }, { json: pet(1, 'Bella', 9) }),
  ok('PATCH /v1/pets/1', { text: '{"categoryId":9007199254740993}', says: ',"categoryId":9007199254740993,' }),
  change(1, { name: 'Bello', categoryId: 1 }, { json: pet(1, 'Bello', 1) }),
  ok('/v1/pets?limit=1', { json: [pet(1, 'Bello', 1)] }),
  noChange(1, {}, NEITHER),
  noChange(1, { status: 'sold' }, 'status: moves with orders; leave it out'),
  noChange(1, { name: '', categoryId: 'x', status: 'sold', id: 2, x: 1 }, [
    'name: ',
    'categoryId: ',
    'status: ',
    'id: ',
    '"x"',
  ]),
  no('PATCH /v1/pets/1', 'invalid_json', { text: '{' }),
  no('PATCH /v1/pets/1?x=1', 'invalid_parameter', { body: { name: 'x' } }),
  no('PATCH /v1/pets/1', 'unsupported_media_type', {
    body: { name: 'x' },
    ...sent('content-type', 'application/merge-patch+json'),
    has: { 'accept-patch': 'application/json' },
  }),
  ...words('999 0 x 9223372036854775808').map((id) =>
    no(`PATCH /v1/pets/${id}`, 'not_found', { body: { name: 'x' }, json: NO_ANIMAL, has: { deprecation: null } }),
  ),
  ok('/v1/pets/2', TAGGED),
  unmet('PATCH /v1/pets/2', { body: { name: 'x' }, ...like('"other"'), says: 'it has changed' }),
  unmet('PATCH /v1/pets/2', { body: { name: 'x' }, ...unlike('*') }),
  badTags('PATCH /v1/pets/2', { body: { name: 'x' }, ...like('x') }),
  change(2, { name: 'Mimi II' }, { ...like('ETAG'), ...TAGGED }),
  unmet('DELETE /v1/pets/2', like('"other"')),
  no('DELETE /v1/pets/2?x=1', 'invalid_parameter'),
  no('DELETE /v1/pets/2', 'bad_request', { text: '{}', says: 'a DELETE request has no body' }),
  no('DELETE /v1/pets/999', 'not_found', { ...sent('content-type', 'text/plain'), json: NO_ANIMAL }),
  remove(2, { ...like('ETAG'), has: { 'content-type': null, etag: null, deprecation: null } }),
  no('/v1/pets/2', 'not_found', { json: NO_ANIMAL }),
  ...words('2 999 x').map((id) => no(`DELETE /v1/pets/${id}`, 'not_found', { json: NO_ANIMAL })),
  no('PATCH /v1/pets/2', 'not_found', { body: { name: 'x' } }),
  noOrder({ petId: 2 }, 'invalid_body', 'there is no animal 2'),
  ok('/v1/pets?limit=2', {
    json: [pet(1, 'Bello', 1), pet(3, 'Kiwi the budgerigar', 3)],
    ...link('/v1/pets?limit=2&after=3'),
  }),
  ok('/v1/pets?after=2&limit=1', { json: [pet(3, 'Kiwi the budgerigar', 3)] }),
  remove(30),
  ok('/v1/pets?after=28', { ...link(null), says: '"id":29' }),
  ok('/v1/pets?after=28&limit=1', link(null)),
  add(newPet, { json: pet(31, 'Rex', 3) }),
  place(1),
  no('DELETE /v1/pets/1', 'pet_unavailable', { says: 'has a placed order: deliver or cancel it first' }),
  change(1, { name: 'Bello II' }, { json: pet(1, 'Bello II', 1, 'pending') }),
  close(1, 'cancelled'),
  place(1),
  close(2, 'delivered'),
  remove(1),
  ok(`${ORDERS}/2`, { says: '"petId":1' }),
  ok('OPTIONS /v1/pets/1', { status: 204, ...allow(PET_METHODS) }),
  add({ name: 'Gone', categoryId: 1 }, { ...under('gone'), json: pet(32, 'Gone', 1) }),
  remove(32),
  add({ name: 'Gone', categoryId: 1 }, { ...under('gone'), ...REPLAYED, json: pet(32, 'Gone', 1) }),
  no('/v1/pets/32', 'not_found'),
  add({ name: 'New', categoryId: 1, status: 'pending' }, { json: pet(33, 'New', 1, 'pending') }),
  remove(33),
];

const MALFORMED_KEY = 'Idempotency-Key: must be sent once, with 1 to 255 visible ASCII characters';
const once = { name: 'Once', categoryId: 1 };
const again = (body: unknown, rest: Rest) => add(body, { ...under('a-1'), json: pet(31, 'Once', 1), ...rest });
const other = { name: 'Other', categoryId: 1 };
const repeats: Row[] = [
  again(once, { has: { 'idempotent-replayed': null } }),
  again({ categoryId: 1, name: 'Once' }, { has: { ...REPLAYED.has, location: '/v1/pets/31' } }),
  add(other, { ...under('"a-1"'), has: { 'idempotent-replayed': null } }), // the text as it stands
  no(PETS, 'idempotency_key_reused', { body: other, ...under('a-1') }),
  add(other, { ...under('a-1'), key: 'second', json: pet(33, 'Other', 1) }),
  noPet({ name: '', categoryId: 1 }, 'name', under('a-2')),
  add({ name: 'Fine', categoryId: 1 }, under('a-2')),
  add(newPet, under('x'.repeat(255))),
  ...['x'.repeat(256), 'two words', '"two words"', 'é'].map((key) =>
    no(PETS, 'bad_request', { body: newPet, ...under(key), says: MALFORMED_KEY }),
  ),
  place(31, under('a-1')),
  place(31, { ...under('a-1'), has: { ...REPLAYED.has, location: `${ORDERS}/1` } }),
  no(`POST ${ORDERS}`, 'idempotency_key_reused', { body: { petId: 32 }, ...under('a-1') }),
  close(1, 'delivered'),
  ok(`POST ${ORDERS}`, {
    text: '{"petId":31.0}',
    status: 201,
    ...under('a-1'),
    ...REPLAYED,
    says: '"status":"placed"',
  }),
  again(once, REPLAYED),
  place(1),
  no(`POST ${ORDERS}`, 'pet_unavailable', { body: { petId: 1 }, ...under('o-1') }),
  close(2, 'cancelled'),
  place(1, { ...under('o-1'), has: { 'idempotent-replayed': null } }),
];

const corsFrom = (origin: string, vary: string | null): Row[] => [
  ok('/v1/pets?limit=1', {
    has: {
      'access-control-allow-origin': origin,
      vary,
      'access-control-expose-headers':
        'X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, RateLimit, RateLimit-Policy, Retry-After, Link, \
Location, ETag, Deprecation, Sunset, Idempotent-Replayed, Allow, WWW-Authenticate, X-Request-Id',
    },
  }),
  no('/v1/pets', 'missing_api_key', { key: null, has: { 'access-control-allow-origin': origin } }),
  options({
    'access-control-allow-methods': 'GET, HEAD, POST, OPTIONS',
    'access-control-allow-headers': /Authorization.*Content-Type.*Idempotency-Key.*If-Match.*If-None-Match/,
  }),
];

const fromNobody = (...rows: [address: string, left: number][]) =>
  rows.map(([address, left]) => {
    const has = { 'x-ratelimit-remaining': `${left}` };
    return no('/v1/pets', 'missing_api_key', { key: null, ...sent('x-forwarded-for', address), has });
  });
const POOR = { key: 'one a minute' };
const limited = no('/v1/pets', 'rate_limited', POOR);
const banned = no('/v1/pets', 'key_banned', { ...POOR, has: { 'x-ratelimit-remaining': '0' } });

export const GROUPS: Group[] = [
  { name: 'as it comes', settings: {}, rows: [pages, keys, lists, animals, orders, categories, conditions].flat() },
  {
    name: 'changing and removing animals',
    settings: {},
    rows: [...changes],
  },
  {
    name: 'asking again, and any category',
    settings: {},
    rows: [
      ...repeats,
      noPet({ name: 'x', categoryId: 9, x: 1 }, undefined, {
        json: { code: 'invalid_body', message: '"x": is unknown; leave it out', status: 400 },
      }),
      add({ name: 'x', categoryId: 9 }),
    ],
  },
  {
    name: 'staging, and categories that are known',
    settings: { environment: 'staging', categories: 'known' },
    rows: [
      badKey('production', 'a production key ("ps_live_"), but this is the staging service: send a "ps_test_" key'),
      noPet({ name: 'x', categoryId: 9 }, 'categoryId'),
      noPet({ name: '', categoryId: 77, x: 1 }, ['categoryId: there is no category 77', 'name', '"x"']),
      add({ name: 'x', categoryId: 8 }),
      noChange(1, { categoryId: 9 }, 'categoryId: there is no category 9'),
      change(1, { categoryId: 8 }),
      no('/v1/nothing', 'missing_api_key', { key: null }),
    ],
  },
  {
    name: 'one proxy, one origin, a ban at the second refusal',
    settings: { trustProxy: 1, keepAlive: 60, corsOrigin: 'https://shop.example', banAfter: 2 },
    rows: [
      ...fromNobody(['192.0.2.1', 59], ['198.51.100.1, 192.0.2.1', 58], ['192.0.2.2', 59]),
      ...corsFrom('https://shop.example', 'Origin'),
      ...[ok('/v1/pets', POOR), limited, banned],
    ],
  },
  {
    name: 'no proxy, any origin, no ban',
    settings: { trustProxy: 0, corsOrigin: '*', banAfter: 0 },
    rows: [
      ...fromNobody(['192.0.2.1', 59], ['192.0.2.2', 58]),
      ...corsFrom('*', null),
      ...[ok('/v1/pets', POOR), ...Array(9).fill(limited)],
    ],
  },
];
