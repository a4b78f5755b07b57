/**
 * The contract as a table: what is asked → status, code, headers. The rows of a group run in order against one server
 * with the group's settings on the seed (30 animals, 8 categories). A helper is named for the operation; one that ends in
 * `Fails`, for an operation that is answered by an error.
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
  /** Reply headers: exact text, a pattern, or null for absent. */
  has?: Record<string, string | RegExp | null>;
}

export interface Group {
  name: string;
  settings: Partial<Settings> & { banAfter?: number };
  rows: Row[];
}

type Rest = Partial<Row>;
const words = (text: string) => text.split(' ');

/** `asked`: `METHOD path`, or a path to GET. */
function succeeds(asked: string, rest: Rest = {}): Row {
  const [path, method = 'GET'] = asked.split(' ').reverse();
  return { method, path, status: 200, ...rest };
}
const fails = (asked: string, code: ErrorCode, rest: Rest = {}): Row =>
  succeeds(asked, { status: CATALOGUE[code], code, ...rest });

const pet = (id: number, name: string, categoryId: number, status = 'available') => ({ id, name, categoryId, status });
const newPet = { name: 'Rex', categoryId: 3 };
const POST_PETS = 'POST /v1/pets';
const addPet = (body: unknown, rest: Rest = {}) => succeeds(POST_PETS, { body, status: 201, ...rest });
const addPetFails = (body: unknown, says: Rest['says'], rest: Rest = {}) =>
  fails(POST_PETS, 'invalid_body', { body, says, ...rest });
const withHeader = (name: string, value: string): Rest => ({ headers: { [name]: value } });

const ORDERS = '/v1/store/orders';
const placeOrder = (petId: unknown, rest: Rest = {}) =>
  succeeds(`POST ${ORDERS}`, { body: { petId }, status: 201, ...rest });
const placeOrderFails = (body: unknown, code: ErrorCode, says?: Rest['says']) =>
  fails(`POST ${ORDERS}`, code, { body, says });
const closeOrder = (id: number, status: string) => succeeds(`PATCH ${ORDERS}/${id}`, { body: { status } });
const closeOrderFails = (id: number | string, status: string, code: ErrorCode, says?: string) =>
  fails(`PATCH ${ORDERS}/${id}`, code, { body: { status }, says });
const putCategory = (id: string, body: unknown, rest: Rest = {}) =>
  succeeds(`PUT /v1/categories/${id}`, { body, ...rest });
const putCategoryFails = (id: string, body: unknown, code: ErrorCode, rest: Rest = {}) =>
  fails(`PUT /v1/categories/${id}`, code, { body, ...rest });

const PET_METHODS = 'GET, HEAD, PATCH, DELETE, OPTIONS';
const allow = (methods: string): Rest => ({ has: { allow: methods } });
const linkTo = (target: string | null): Rest => ({ has: { link: target && `<${target}>; rel="next"` } });
const DEPRECATED = {
  sunset: 'Thu, 05 Dec 2030 00:00:00 GMT',
  link: '</v1/pets>; rel="successor-version"',
};
const NO_ANIMAL = { code: 'not_found', message: 'there is no such animal', status: 404 };
const preflight = (has: Rest['has']) => succeeds('OPTIONS /v1/pets', { key: null, status: 204, has });
const NO_KEY = { key: null, has: { 'www-authenticate': 'Bearer realm="petstore"' } };
const BAD_KEY = { 'www-authenticate': 'Bearer realm="petstore", error="invalid_token"' };
const badKey = (key: string, says: string) => fails('/v1/pets', 'invalid_api_key', { key, has: BAD_KEY, says });
const noBearer = (key: string, says: string) => fails('/v1/pets', 'missing_api_key', { ...NO_KEY, key, says });
const PAGE_METHODS = allow('GET, HEAD, OPTIONS');

const pages: Row[] = [
  succeeds('/', { has: { 'content-type': 'text/html; charset=utf-8' } }),
  succeeds('/healthz', { json: { status: 'ok' } }),
  succeeds('/readyz', { json: { status: 'ready' } }),
  succeeds('HEAD /readyz'),
  succeeds('OPTIONS /healthz', { status: 204, ...PAGE_METHODS }),
  fails('POST /healthz', 'method_not_allowed', PAGE_METHODS),
  ...words('/nothing /healthz/ /HEALTHZ /lab/clock').map((path) => fails(path, 'not_found')),
  fails(`/${'a'.repeat(2_100)}`, 'uri_too_long'),
].map((row) => ({ ...row, key: null }));

const keys: Row[] = [
  ...['/v1/pets', '/v1/nothing', '/v1', 'DELETE /v1/pets'].map((asked) =>
    fails(asked, 'missing_api_key', { ...NO_KEY, says: 'No API key was sent. Send "Authorization: Bearer <key>".' }),
  ),
  ...['Basic YTpi', 'BearerKEY', 'KEY'].map((header) => noBearer(header, 'is not of the Bearer scheme. Send')),
  noBearer('Bearer', 'names the Bearer scheme, but no API key. Send'),
  ...['nonsense', 'KEY x', '"KEY"', 'KEY,', 'xKEY', 'KEY0', 'KEYé', 'ps_live_0'].map((key) =>
    badKey(`Bearer ${key}`, 'This is not an API key: one begins with "ps_live_" or "ps_test_"'),
  ),
  badKey('mistyped', 'The API key is mistyped: its checksum does not match'),
  badKey('unknown', 'This server does not know the API key'),
  badKey('staging', 'a staging key ("ps_test_"), but this is the production service: send a "ps_live_" key'),
  ...['bearer KEY', 'BEARER KEY', 'beArer    KEY'].map((key) => succeeds('/v1/pets?limit=1', { key })),
  ...words('nothing store pets/ /pets pets//1 pets/1/ pets/1/2 PETS %70ets {petId} constructor')
    .map((rest) => `/v1/${rest}`)
    .concat('/v1', '/v1/')
    .map((path) => fails(path, 'not_found')),
];

const listPetsFails = (query: string, says: Rest['says']) => fails(`/v1/pets?${query}`, 'invalid_parameter', { says });
const lists: Row[] = [
  succeeds('/v1/pets?limit=1&'),
  succeeds('/v1/pets?limit=2', {
    json: [pet(1, 'Bello', 1), pet(2, 'Mimi', 2)],
    has: { ...linkTo('/v1/pets?limit=2&after=2').has, 'content-type': 'application/json; charset=utf-8' },
  }),
  succeeds('/v1/pets', linkTo('/v1/pets?limit=20&after=20')),
  succeeds('/v1/pets?limit=100', linkTo(null)),
  succeeds('/v1/pets?after=29', { json: [pet(30, 'Hazel', 7)], ...linkTo(null) }),
  succeeds('/v1/pets?after=30', { json: [] }),
  succeeds('/v1/pets?after=-5&limit=1', { json: [pet(1, 'Bello', 1)] }),
  succeeds('/v1/pets?after=9223372036854775807', { json: [] }),
  succeeds('/v1/pets?status=sold&limit=2', {
    json: [pet(9, 'Waldi', 1, 'sold'), pet(18, 'Tiger', 2, 'sold')],
    ...linkTo('/v1/pets?limit=2&status=sold&after=18'),
  }),
  succeeds('/v1/pets?status=sold&limit=2&after=18', { json: [pet(23, 'Krümel', 7, 'sold')], ...linkTo(null) }),
  succeeds('/v1/pets?%6cimit=%31', { json: [pet(1, 'Bello', 1)] }),
  succeeds('HEAD /v1/pets?limit=1'),
  listPetsFails('limit=0', 'limit: must be a whole number from 1 to 100'),
  ...words(
    'limit limit= limit=101 limit=abc limit=1.0 limit=%2B5 limit=05 limit=99999999999999999999 limit=%zz limit=%ff',
  ).map((wrong) => listPetsFails(wrong, 'limit')),
  listPetsFails('limit=5&limit=5', 'twice'),
  listPetsFails('status=lost', 'available, pending, sold'),
  listPetsFails('status=Available', 'status'),
  ...['x', '9223372036854775808'].map((wrong) => listPetsFails(`after=${wrong}`, 'after')),
  listPetsFails('colour=red', 'colour'),
  listPetsFails('limit=0&status=lost&after=x&page=2', ['limit', 'status', 'after', 'page']),
  listPetsFails('a=1&b=2&limit=1&limit=2', ['"a"', '"b"', 'twice']),
  listPetsFails('__proto__=1', '__proto__'),
];

const CAT_FACE = '\u{1f63a}';
const NAME = 'a string of 1–255 characters';
const WHOLE = 'a whole number';
const INT64 = `${WHOLE} from -9223372036854775808 to 9223372036854775807`;
const STATUS = 'one of "available", "pending", "sold"';
const animals: Row[] = [
  addPet(newPet, { json: pet(31, 'Rex', 3), has: { location: '/v1/pets/31' } }),
  addPet({ ...newPet, status: 'sold' }, { json: pet(32, 'Rex', 3, 'sold') }),
  succeeds(POST_PETS, { text: '{"name":"Pow","categoryId":1e2}', status: 201, json: pet(33, 'Pow', 100) }),
  ...words('9007199254740993 -9007199254740993 9223372036854775807 -9223372036854775808 0').map((id) =>
    succeeds(POST_PETS, {
      text: `{"name":"Pow","categoryId":${id}}`,
      status: 201,
      says: `,"categoryId":${id},"status"`,
    }),
  ),
  succeeds('/v1/pets?after=33&limit=1', {
    says: '[{"id":34,"name":"Pow","categoryId":9007199254740993,"status":"available"}]',
  }),
  addPet({ name: CAT_FACE.repeat(255), categoryId: 1 }),
  addPet({ name: '\ufeff', categoryId: 1 }),
  addPetFails({ name: CAT_FACE.repeat(256), categoryId: 1 }, 'name: must be 1–255 characters (got 256)'),
  addPetFails({ name: '', categoryId: 1 }, 'name: must be 1–255 characters (got 0)'),
  ...[' \u00a0\n', '\u0085'].map((name) => addPetFails({ name, categoryId: 1 }, 'name: must not be only white space')),
  addPetFails(
    { ...newPet, id: 5, colour: 'red' },
    'id: is given by the service; leave it out; "colour": is unknown; leave it out',
  ),
  addPetFails({ name: 'a\0b', categoryId: 1 }, 'name: must not have the character U+0000'),
  addPetFails({}, `name: is missing (${NAME}); categoryId: is missing (${WHOLE})`),
  addPetFails({ name: 5, categoryId: '1', status: 'lost', id: 1, x: 1 }, [
    `name: must be ${NAME} (got 5); categoryId: must be ${WHOLE} (got "1"); status: must be ${STATUS} (got "lost"); id: `,
    'leave it out; "x": is unknown',
  ]),
  addPetFails({ name: {}, categoryId: [], status: null }, ['(got an object); ', '(got an array); ', '(got null)']),
  ...['[]', 'null', '1.5'].map((text) => addPetFails(undefined, 'must be a JSON object (got ', { text })),
  ...words('1.5 true 9223372036854775808 1.00000000000000000001').map((id) =>
    addPetFails(undefined, `categoryId: must be ${id === 'true' ? WHOLE : INT64} (got ${id})`, {
      text: `{"name":"x","categoryId":${id}}`,
    }),
  ),
  addPetFails(undefined, '__proto__', { text: '{"name":"x","categoryId":1,"__proto__":{}}' }),
  fails(POST_PETS, 'invalid_json'),
  ...['', '{"name":"x"', '"\\ud800"', '\ufeff{}', Uint8Array.of(0x22, 0xff, 0x22), '['.repeat(65) + ']'.repeat(65)].map(
    (text) => fails(POST_PETS, 'invalid_json', { text }),
  ),
  fails(POST_PETS, 'invalid_json', { text: '{"name":"x","name":"y","categoryId":1}', says: 'name' }),
  ...['text/plain', 'application/json; charset=latin1', 'application/json; x=y; charset=utf-8; charset=utf-16'].map(
    (type) =>
      fails(POST_PETS, 'unsupported_media_type', {
        body: newPet,
        ...withHeader('content-type', type),
        has: { accept: 'application/json' },
        says: 'utf-8',
      }),
  ),
  ...['gzip', 'identity'].map((name) =>
    fails(POST_PETS, 'unsupported_media_type', {
      body: newPet,
      ...withHeader('content-encoding', name),
      has: { 'accept-encoding': 'identity', 'accept-patch': null },
    }),
  ),
  ...['Application/JSON; charset="UTF-8";', 'application/json; foo="bar"; Charset=utf-8; x=y'].map((type) =>
    addPet(newPet, withHeader('content-type', type)),
  ),
  fails(POST_PETS, 'body_too_large', { text: `{"name":"${'x'.repeat(65_536)}"` }),
  fails(`${POST_PETS}?dry=1`, 'invalid_parameter', { body: newPet, says: 'dry' }),
  ...['GET', 'OPTIONS'].map((method) => fails(`${method} /v1/pets?status=${'x'.repeat(2_040)}`, 'uri_too_long')),
  fails('DELETE /v1/pets', 'method_not_allowed', allow('GET, HEAD, POST, OPTIONS')),
  fails('PUT /v1/pets/1', 'method_not_allowed', allow(PET_METHODS)),
  preflight({ allow: 'GET, HEAD, POST, OPTIONS', 'access-control-allow-methods': null }),
  succeeds('/v1/pets/1', { json: pet(1, 'Bello', 1), has: DEPRECATED }),
  succeeds('HEAD /v1/pets/1', { has: DEPRECATED }),
  fails('/v1/pets/1', 'missing_api_key', { key: null, has: DEPRECATED }),
  fails(`/v1/pets/1?status=${'x'.repeat(2_040)}`, 'uri_too_long', { has: DEPRECATED }),
  ...words('999 0 -1 1.0 01 x 9223372036854775808 9223372036854775807 __proto__').map((id) =>
    fails(`/v1/pets/${id}`, 'not_found', { has: DEPRECATED, json: NO_ANIMAL }),
  ),
];

const orders: Row[] = [
  succeeds(ORDERS, { json: [] }),
  placeOrder(1, { has: { location: `${ORDERS}/1` } }),
  succeeds('/v1/pets/1', { json: pet(1, 'Bello', 1, 'pending') }),
  succeeds(`${ORDERS}/1`, { says: '"id":1,"petId":1,"status":"placed","placedAt":"20' }),
  succeeds(`HEAD ${ORDERS}/1`),
  ...['2', '0', 'x', '01', '9223372036854775808'].map((id) => fails(`${ORDERS}/${id}`, 'not_found')),
  fails(`${ORDERS}/1?a`, 'invalid_parameter'),
  fails(`PUT ${ORDERS}/1`, 'method_not_allowed', allow('GET, HEAD, PATCH, OPTIONS')),
  placeOrderFails({ petId: 1 }, 'pet_unavailable', 'pending'),
  placeOrderFails({ petId: 9 }, 'pet_unavailable', 'sold'),
  placeOrderFails({ petId: 999 }, 'invalid_body', '999'),
  placeOrderFails({ petId: 999, x: 1 }, 'invalid_body', 'petId: there is no animal 999; "x": is unknown; leave it out'),
  placeOrderFails({ petId: 0 }, 'invalid_body'),
  placeOrderFails({ petId: '1' }, 'invalid_body', 'petId'),
  placeOrderFails({ petId: 1, status: 'placed' }, 'invalid_body', 'status'),
  closeOrderFails(1, 'lost', 'invalid_body', 'delivered'),
  closeOrderFails(1, 'placed', 'invalid_body'),
  fails(`PATCH ${ORDERS}/1`, 'unsupported_media_type', {
    body: { status: 'delivered' },
    ...withHeader('content-type', 'text/plain'),
    has: { 'accept-patch': 'application/json', 'accept-encoding': null },
  }),
  succeeds(`OPTIONS ${ORDERS}/1`, { status: 204, has: { 'accept-patch': 'application/json' } }),
  succeeds(`OPTIONS ${ORDERS}`, { status: 204, has: { 'accept-patch': null } }),
  fails(`PATCH ${ORDERS}/1`, 'invalid_body', {
    body: {},
    says: 'status: is missing (one of "delivered", "cancelled")',
  }),
  fails(`PATCH ${ORDERS}/1`, 'invalid_json'),
  closeOrderFails(2, 'delivered', 'not_found'),
  closeOrderFails('x', 'delivered', 'not_found'),
  closeOrder(1, 'cancelled'),
  closeOrderFails(1, 'delivered', 'order_closed', 'cancelled'),
  succeeds('/v1/pets/1', { json: pet(1, 'Bello', 1) }),
  placeOrder(1, { has: { location: `${ORDERS}/2` } }),
  closeOrder(2, 'delivered'),
  succeeds('/v1/pets/1', { json: pet(1, 'Bello', 1, 'sold') }),
  succeeds(`${ORDERS}?limit=1`, linkTo(`${ORDERS}?limit=1&after=1`)),
  succeeds(`${ORDERS}?status=delivered`, linkTo(null)),
  fails(`${ORDERS}?status=available`, 'invalid_parameter', { says: 'placed, delivered, cancelled' }),
];

const categories: Row[] = [
  succeeds('/v1/categories?limit=1', { json: [{ id: 1, name: 'Dogs' }], ...linkTo('/v1/categories?limit=1&after=1') }),
  putCategory('9', { name: 'Ponies' }, { status: 201, json: { id: 9, name: 'Ponies' } }),
  putCategory('9', { name: 'Horses' }, { json: { id: 9, name: 'Horses' } }),
  putCategory('-9223372036854775808', { name: 'Least' }, { status: 201 }),
  succeeds('/v1/categories?after=8', { json: [{ id: 9, name: 'Horses' }] }),
  putCategoryFails('9', { name: '' }, 'invalid_body'),
  putCategoryFails('9', undefined, 'invalid_json'),
  putCategoryFails('9', { id: 9, name: 'x' }, 'invalid_body', { says: 'id' }),
  putCategoryFails('9223372036854775808', { name: 'x' }, 'not_found'),
  fails('/v1/categories?status=sold', 'invalid_parameter'),
  fails('/v1/categories/9', 'method_not_allowed', allow('PUT, OPTIONS')),
];

const idempotencyKey = (key: string) => withHeader('idempotency-key', key);
const REPLAYED = { has: { 'idempotent-replayed': 'true' } };
const changePet = (id: number, body: unknown, rest: Rest = {}) => succeeds(`PATCH /v1/pets/${id}`, { body, ...rest });
const changePetFails = (id: number | string, body: unknown, says: Rest['says'], rest: Rest = {}) =>
  fails(`PATCH /v1/pets/${id}`, 'invalid_body', { body, says, ...rest });
const removePet = (id: number, rest: Rest = {}) => succeeds(`DELETE /v1/pets/${id}`, { status: 204, ...rest });
const NEITHER = 'name, categoryId: at least one of them must be sent';
const changes: Row[] = [
  changePet(1, { name: 'Bella' }, { json: pet(1, 'Bella', 1) }),
  changePet(1, { categoryId: 9 }, { json: pet(1, 'Bella', 9) }),
  succeeds('PATCH /v1/pets/1', { text: '{"categoryId":9007199254740993}', says: ',"categoryId":9007199254740993,' }),
  changePet(1, { name: 'Bello', categoryId: 1 }, { json: pet(1, 'Bello', 1) }),
  succeeds('/v1/pets?limit=1', { json: [pet(1, 'Bello', 1)] }),
  changePetFails(1, {}, NEITHER),
  changePetFails(1, { status: 'sold' }, 'status: moves with orders; leave it out'),
  changePetFails(1, { name: '', categoryId: 'x', status: 'sold', id: 2, x: 1 }, [
    'name: ',
    'categoryId: ',
    'status: ',
    'id: ',
    '"x"',
  ]),
  fails('PATCH /v1/pets/1', 'invalid_json', { text: '{' }),
  fails('PATCH /v1/pets/1?x=1', 'invalid_parameter', { body: { name: 'x' } }),
  fails('PATCH /v1/pets/1', 'unsupported_media_type', {
    body: { name: 'x' },
    ...withHeader('content-type', 'application/merge-patch+json'),
    has: { 'accept-patch': 'application/json' },
  }),
  ...words('999 0 x 9223372036854775808').map((id) =>
    fails(`PATCH /v1/pets/${id}`, 'not_found', { body: { name: 'x' }, json: NO_ANIMAL, has: { sunset: null } }),
  ),
  fails('DELETE /v1/pets/2?x=1', 'invalid_parameter'),
  fails('DELETE /v1/pets/2', 'bad_request', { text: '{}', says: 'a DELETE request has no body' }),
  fails('DELETE /v1/pets/999', 'not_found', { ...withHeader('content-type', 'text/plain'), json: NO_ANIMAL }),
  removePet(2, { has: { 'content-type': null, sunset: null } }),
  fails('/v1/pets/2', 'not_found', { json: NO_ANIMAL }),
  ...words('2 999 x').map((id) => fails(`DELETE /v1/pets/${id}`, 'not_found', { json: NO_ANIMAL })),
  fails('PATCH /v1/pets/2', 'not_found', { body: { name: 'x' } }),
  placeOrderFails({ petId: 2 }, 'invalid_body', 'there is no animal 2'),
  succeeds('/v1/pets?limit=2', {
    json: [pet(1, 'Bello', 1), pet(3, 'Kiwi the budgerigar', 3)],
    ...linkTo('/v1/pets?limit=2&after=3'),
  }),
  succeeds('/v1/pets?after=2&limit=1', { json: [pet(3, 'Kiwi the budgerigar', 3)] }),
  removePet(30),
  succeeds('/v1/pets?after=28', { ...linkTo(null), says: '"id":29' }),
  succeeds('/v1/pets?after=28&limit=1', linkTo(null)),
  addPet(newPet, { json: pet(31, 'Rex', 3) }),
  placeOrder(1),
  fails('DELETE /v1/pets/1', 'pet_unavailable', { says: 'has a placed order: deliver or cancel it first' }),
  changePet(1, { name: 'Bello II' }, { json: pet(1, 'Bello II', 1, 'pending') }),
  closeOrder(1, 'cancelled'),
  placeOrder(1),
  closeOrder(2, 'delivered'),
  removePet(1),
  succeeds(`${ORDERS}/2`, { says: '"petId":1' }),
  succeeds('OPTIONS /v1/pets/1', { status: 204, ...allow(PET_METHODS) }),
  addPet({ name: 'Gone', categoryId: 1 }, { ...idempotencyKey('gone'), json: pet(32, 'Gone', 1) }),
  removePet(32),
  addPet({ name: 'Gone', categoryId: 1 }, { ...idempotencyKey('gone'), ...REPLAYED, json: pet(32, 'Gone', 1) }),
  fails('/v1/pets/32', 'not_found'),
  addPet({ name: 'New', categoryId: 1, status: 'pending' }, { json: pet(33, 'New', 1, 'pending') }),
  removePet(33),
];

const MALFORMED_KEY = 'Idempotency-Key: must be sent once, with 1 to 255 visible ASCII characters';
const once = { name: 'Once', categoryId: 1 };
const addOnceAgain = (body: unknown, rest: Rest) =>
  addPet(body, { ...idempotencyKey('a-1'), json: pet(31, 'Once', 1), ...rest });
const other = { name: 'Other', categoryId: 1 };
const repeats: Row[] = [
  addOnceAgain(once, { has: { 'idempotent-replayed': null } }),
  addOnceAgain({ categoryId: 1, name: 'Once' }, { has: { ...REPLAYED.has, location: '/v1/pets/31' } }),
  addPet(other, { ...idempotencyKey('"a-1"'), has: { 'idempotent-replayed': null } }), // the text as it stands
  fails(POST_PETS, 'idempotency_key_reused', { body: other, ...idempotencyKey('a-1') }),
  addPet(other, { ...idempotencyKey('a-1'), key: 'second', json: pet(33, 'Other', 1) }),
  addPetFails({ name: '', categoryId: 1 }, 'name', idempotencyKey('a-2')),
  addPet({ name: 'Fine', categoryId: 1 }, idempotencyKey('a-2')),
  addPet(newPet, idempotencyKey('x'.repeat(255))),
  ...['x'.repeat(256), 'two words', '"two words"', 'é'].map((key) =>
    fails(POST_PETS, 'bad_request', { body: newPet, ...idempotencyKey(key), says: MALFORMED_KEY }),
  ),
  placeOrder(31, idempotencyKey('a-1')),
  placeOrder(31, { ...idempotencyKey('a-1'), has: { ...REPLAYED.has, location: `${ORDERS}/1` } }),
  fails(`POST ${ORDERS}`, 'idempotency_key_reused', { body: { petId: 32 }, ...idempotencyKey('a-1') }),
  closeOrder(1, 'delivered'),
  succeeds(`POST ${ORDERS}`, {
    text: '{"petId":31.0}',
    status: 201,
    ...idempotencyKey('a-1'),
    ...REPLAYED,
    says: '"status":"placed"',
  }),
  addOnceAgain(once, REPLAYED),
  placeOrder(1),
  fails(`POST ${ORDERS}`, 'pet_unavailable', { body: { petId: 1 }, ...idempotencyKey('o-1') }),
  closeOrder(2, 'cancelled'),
  placeOrder(1, { ...idempotencyKey('o-1'), has: { 'idempotent-replayed': null } }),
];

const corsFrom = (origin: string, vary: string | null): Row[] => [
  succeeds('/v1/pets?limit=1', {
    has: {
      'access-control-allow-origin': origin,
      vary,
      'access-control-expose-headers':
        'X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, RateLimit, RateLimit-Policy, Retry-After, Link, \
Location, Sunset, Idempotent-Replayed, Allow, WWW-Authenticate, X-Request-Id',
    },
  }),
  fails('/v1/pets', 'missing_api_key', { key: null, has: { 'access-control-allow-origin': origin } }),
  preflight({
    'access-control-allow-methods': 'GET, HEAD, POST, OPTIONS',
    'access-control-allow-headers': /Authorization.*Content-Type.*Idempotency-Key$/,
  }),
];

const fromNobody = (...rows: [address: string, left: number][]) =>
  rows.map(([address, left]) => {
    const has = { 'x-ratelimit-remaining': `${left}` };
    return fails('/v1/pets', 'missing_api_key', { key: null, ...withHeader('x-forwarded-for', address), has });
  });
const READ_ONLY = { key: 'read only' };
const READS_ALONE = { ...READ_ONLY, says: 'this key may only read: it takes GET and HEAD' };
const readOnly: Row[] = [
  ...words('/v1/pets /v1/pets/1 /v1/categories /v1/store/orders').flatMap((path) => [
    succeeds(path, READ_ONLY),
    succeeds(`HEAD ${path}`, READ_ONLY),
  ]),
  fails(POST_PETS, 'read_only_key', { ...READS_ALONE, body: newPet, has: { 'x-ratelimit-remaining': '291' } }),
  fails(POST_PETS, 'read_only_key', { ...READS_ALONE, text: 'no JSON' }),
  fails('PATCH /v1/pets/1', 'read_only_key', { ...READS_ALONE, body: { name: 'x' } }),
  fails('DELETE /v1/pets/1', 'read_only_key', READS_ALONE),
  fails('PUT /v1/categories/1', 'read_only_key', { ...READS_ALONE, body: { name: 'x' } }),
  fails(`POST ${ORDERS}`, 'read_only_key', { ...READS_ALONE, body: { petId: 1 } }),
  fails('POST /v1/nothing', 'read_only_key', { ...READS_ALONE, body: {} }),
  fails('/v1/nothing', 'not_found', READ_ONLY),
  succeeds('OPTIONS /v1/pets', { ...READ_ONLY, status: 204 }),
];
const ONE_A_MINUTE = { key: 'one a minute' };
const limited = fails('/v1/pets', 'rate_limited', ONE_A_MINUTE);
const banned = fails('/v1/pets', 'key_banned', { ...ONE_A_MINUTE, has: { 'x-ratelimit-remaining': '0' } });

export const GROUPS: Group[] = [
  { name: 'pages outside /v1, and keys', settings: {}, rows: [...pages, ...keys] },
  { name: 'lists of animals', settings: {}, rows: lists },
  { name: 'adding animals, and reading one', settings: {}, rows: animals },
  { name: 'orders', settings: {}, rows: orders },
  { name: 'categories', settings: {}, rows: categories },
  { name: 'a key that only reads', settings: {}, rows: readOnly },
  {
    name: 'changing and removing animals',
    settings: {},
    rows: changes,
  },
  {
    name: 'asking again, and any category',
    settings: {},
    rows: [
      ...repeats,
      addPetFails({ name: 'x', categoryId: 9, x: 1 }, undefined, {
        json: { code: 'invalid_body', message: '"x": is unknown; leave it out', status: 400 },
      }),
      addPet({ name: 'x', categoryId: 9 }),
    ],
  },
  {
    name: 'staging',
    settings: { environment: 'staging' },
    rows: [
      badKey('production', 'a production key ("ps_live_"), but this is the staging service: send a "ps_test_" key'),
      fails('/v1/nothing', 'missing_api_key', { key: null }),
    ],
  },
  {
    name: 'one proxy, one origin, a ban at the second refusal',
    settings: { trustProxy: 1, keepAlive: 60, corsOrigin: 'https://shop.example', banAfter: 2 },
    rows: [
      ...fromNobody(['192.0.2.1', 59], ['198.51.100.1, 192.0.2.1', 58], ['192.0.2.2', 59]),
      ...corsFrom('https://shop.example', 'Origin'),
      ...[succeeds('/v1/pets', ONE_A_MINUTE), limited, banned],
    ],
  },
  {
    name: 'no proxy, any origin, no ban',
    settings: { trustProxy: 0, corsOrigin: '*', banAfter: 0 },
    rows: [
      ...fromNobody(['192.0.2.1', 59], ['192.0.2.2', 58]),
      ...corsFrom('*', null),
      ...[succeeds('/v1/pets', ONE_A_MINUTE), ...Array(9).fill(limited)],
    ],
  },
];
