/**
 * The small edition with its five exercises solved, in one file. Each mend begins with a comment that names its exercise.
 *
 *   node docs/small/mended.ts [--port 8080] [--data DIR]     (before Node 22.18: npx tsx docs/small/mended.ts)
 */
import { createHash, randomInt, randomUUID } from 'node:crypto';
import { appendFileSync, existsSync, mkdirSync, readFileSync, truncateSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { crc32 } from 'node:zlib';

// The content: animals, orders and keys. Ids are 1, 2, 3, …: the next id is the number of items, plus one.
const PET_STATUSES = ['available', 'pending', 'sold'] as const;
const ORDER_STATUSES = ['placed', 'delivered', 'cancelled'] as const;
type Pet = { id: number; name: string; categoryId: number | bigint; status: (typeof PET_STATUSES)[number] };
type Order = { id: number; petId: number; status: (typeof ORDER_STATUSES)[number]; placedAt: string };
/** Only the digest of a key is stored, so that nobody who reads the log can use the key. */
type Key = { digest: string; plan: keyof typeof PLANS };
const keys = new Map<string, Key>();
const pets = new Map<number, Pet>();
const orders = new Map<number, Order>();

/** A line of the log: the things that changed, as they are now. An order, its animal and the reply change in one line. */
type Change = { key?: Key; pet?: Pet; order?: Order; reply?: [name: string, Reply]; windows?: [string, Window[]][] };
const replies = new Map<string, Reply>();

function apply({ key, pet, order, reply, windows: changed = [] }: Change): void {
  if (key !== undefined) keys.set(key.digest, key);
  if (pet !== undefined) pets.set(pet.id, pet);
  if (order !== undefined) orders.set(order.id, order);
  if (reply !== undefined) replies.set(...reply);
  for (const [caller, own] of changed) windows.set(caller, own);
}

/** Writes the line first: nobody may see a change that the disk has refused. `power`: `flush` waits for the disk. */
function write(change: Change): void {
  appendFileSync(log, `${toJson(change)}\n`, { flush: true });
  apply(change);
}

/** `int64`: stands before the digits of a long number, in a string. No client can know it. */
const MARK = randomUUID();
/** `JSON.parse`, but a whole number of 16 digits or more is a `BigInt`. A string is taken whole, with the digits in it. */
function parseJson(text: string): unknown {
  const mark = (token: string) => (/^-?[1-9]\d{15,}$/.test(token) ? `"${MARK}${token}"` : token);
  const marked = text.replace(/"(\\.|[^"\\])*"|-?\d[\d.eE+-]*/gs, mark);
  const isMarked = (value: unknown) => typeof value === 'string' && value.startsWith(MARK);
  return JSON.parse(marked, (_, value) => (isMarked(value) ? BigInt(value.slice(MARK.length)) : value));
}
function toJson(value: unknown): string {
  const text = JSON.stringify(value, (_, one) => (typeof one === 'bigint' ? MARK + one : one));
  return text.replace(new RegExp(`"${MARK}(-?\\d+)"`, 'g'), '$1');
}

// Refusals. Each has a status, a code that a program can read, and a message for people.
type Headers = Record<string, string | number>;
type Reply = { status: number; body: unknown; headers?: Headers };

class Refusal extends Error {
  reply: Reply;
  constructor(status: number, code: string, message: string, headers: Headers = {}) {
    super(message);
    this.reply = { status, body: { code, message, status }, headers };
  }
}

/** Any other error is a bug, a failing disk, or a body that broke off. Only our terminal gets the details. */
function replyTo(error: unknown): Reply {
  if (error instanceof Refusal) return error.reply;
  console.error(error);
  return new Refusal(500, 'internal_error', 'something went wrong here').reply;
}

// Keys. A key is `ps_live_`, 30 random letters and digits, and 6 for a checksum of all before them.
const LETTERS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const hash = (text: string) => createHash('sha256').update(text).digest('base64url');

function makeKey(): string {
  const text = `ps_live_${Array.from({ length: 30 }, () => LETTERS[randomInt(62)]).join('')}`;
  let rest = crc32(text);
  let checksum = '';
  while (checksum.length < 6) {
    checksum = LETTERS[rest % 62] + checksum;
    rest = Math.floor(rest / 62);
  }
  return text + checksum;
}

/** The key in an `Authorization` header, or the refusal if it has no valid one. */
function findKey(header = ''): Key | Refusal {
  const [, text] = /^bearer +(.+)$/is.exec(header) ?? [];
  const challenge = 'Bearer realm="petstore"';
  const missing = 'No API key was sent. Send "Authorization: Bearer <key>".';
  if (text === undefined) return new Refusal(401, 'missing_api_key', missing, { 'WWW-Authenticate': challenge });
  const invalid = { 'WWW-Authenticate': `${challenge}, error="invalid_token"` };
  return keys.get(hash(text)) ?? new Refusal(401, 'invalid_api_key', 'This server does not know the API key.', invalid);
}

// Limits. Each window is a token bucket that is refilled whole: it begins with the first request, and is full again when
// it ends. If it were refilled bit by bit, "3 requests remain until 12:00" would be untrue a second later.
type Window = { name: string; limit: number; seconds: number; used: number; endsAt: number };
const unused = (name: string, limit: number, seconds: number) => ({ name, limit, seconds, used: 0, endsAt: 0 });
const ofKey = (perMinute: number, perDay: number) => [unused('minute', perMinute, 60), unused('day', perDay, 86_400)];
const PLANS = { free: ofKey(60, 1_000), pro: ofKey(300, 10_000), business: ofKey(1_000, 100_000) };
/** Requests without a valid key are counted by address, so that nobody can try keys for ever. */
const OF_ADDRESS = [unused('address', 60, 60)];
const windows = new Map<string, Window[]>();
/** The windows of a caller. One that has ended counts as unused, so no timer is needed. */
function windowsOf(caller: string, fresh: Window[]): Window[] {
  const own = windows.get(caller) ?? fresh.map((window) => ({ ...window }));
  windows.set(caller, own);
  changedCallers.add(caller);
  for (const window of own) {
    if (window.endsAt <= Date.now()) Object.assign(window, { used: 0, endsAt: Date.now() });
  }
  return own;
}

/** `restart-limits`: the callers whose windows are not in the log yet. After a crash a second of counting is missing. */
const changedCallers = new Set<string>();
function writeWindows(): void {
  if (changedCallers.size === 0) return;
  write({ windows: [...changedCallers].map((caller) => [caller, windows.get(caller)!]) });
  changedCallers.clear();
}
setInterval(writeWindows, 1_000).unref();
process.on('SIGTERM', () => {
  writeWindows();
  process.exit();
});

const left = ({ limit, used }: Window) => limit - used;
/** The window with the fewest requests left; on a tie the one that ends later. It is the one that refuses. */
const tightest = (own: Window[]) => [...own].sort((a, b) => left(a) - left(b) || b.endsAt - a.endsAt)[0];
const secondsTo = ({ endsAt }: Window) => Math.ceil((endsAt - Date.now()) / 1000);

/** Takes a request from all windows of its caller or from none, so that a refusal costs nothing. */
function take(own: Window[]): Refusal | undefined {
  const window = tightest(own);
  if (left(window) === 0) {
    const wait = { 'Retry-After': Math.max(1, secondsTo(window)) };
    return new Refusal(429, 'rate_limited', `all ${window.limit} requests are used up`, wait);
  }
  for (const one of own) {
    if (one.used === 0) one.endsAt = Date.now() + one.seconds * 1000;
    one.used++;
  }
}

/** The headers of every reply: a client that knows how many requests remain need never be refused. */
function limitHeaders(own: Window[]): Headers {
  const window = tightest(own);
  return {
    'X-RateLimit-Limit': window.limit,
    'X-RateLimit-Remaining': left(window),
    'X-RateLimit-Reset': Math.ceil(window.endsAt / 1000),
    'RateLimit-Policy': own.map(({ name, limit, seconds }) => `"${name}";q=${limit};w=${seconds}`).join(', '),
    RateLimit: own.map((one) => `"${one.name}";r=${left(one)};t=${secondsTo(one)}`).join(', '),
  };
}

// Input. All faults of a request are named at once. A rule says in words what is right, and whether a value is that.
type Rule<T> = { right: string; fits: (value: unknown) => value is T; isOptional?: boolean };
const NAME: Rule<string> = {
  right: 'a string of 1–255 characters',
  // Counts Unicode characters, not the UTF-16 units of a string. At least one must not be white space.
  fits: (value): value is string =>
    typeof value === 'string' && /\P{White_Space}/u.test(value) && Array.from(value).length <= 255,
};
const INTEGER: Rule<number | bigint> = {
  right: 'a whole number of 64 bits',
  fits: (value): value is number | bigint =>
    typeof value === 'bigint' ? BigInt.asIntN(64, value) === value : Number.isSafeInteger(value),
};
const ANIMAL: Rule<number> = {
  right: 'the id of an animal',
  fits: (value): value is number => typeof value === 'number' && pets.has(value),
};
function oneOf<T>(values: readonly T[]): Rule<T> {
  const right = `one of ${values.map((one) => `"${one}"`).join(', ')}`;
  return { right, fits: (value): value is T => (values as readonly unknown[]).includes(value) };
}
/** The text of a parameter. */
const form = (right: string, pattern: RegExp): Rule<string> => {
  return { right, fits: (value): value is string => typeof value === 'string' && pattern.test(value) };
};
const optional = <T>(rule: Rule<T>): Rule<T | undefined> => ({ ...rule, isOptional: true });

type Rules = Record<string, Rule<unknown>>;
type Values<R extends Rules> = { [Name in keyof R]: R[Name] extends Rule<infer T> ? T : never };
/** Checks each value against the rule for its name: the members of a body, or the parameters of a query. */
function read<R extends Rules>(code: string, sent: [string, unknown][], rules: R): Values<R> {
  const names = sent.map(([name]) => name);
  const missing = Object.entries(rules).filter(([name, { isOptional }]) => !isOptional && !names.includes(name));
  const faults = missing.map(([name, { right }]) => `${name}: is missing (${right})`);
  for (const [index, [name, value]] of sent.entries()) {
    const rule = Object.hasOwn(rules, name) ? rules[name] : undefined;
    if (rule === undefined) faults.push(`${JSON.stringify(name)}: is unknown; leave it out`);
    else if (names.indexOf(name) < index) faults.push(`${name}: is given twice`);
    else if (!rule.fits(value)) faults.push(`${name}: must be ${rule.right}`);
  }
  if (faults.length > 0) throw new Refusal(400, code, faults.join('; '));
  return Object.fromEntries(sent) as Values<R>; // each name has a rule, which its value fits
}

async function readBody(req: IncomingMessage): Promise<[string, unknown][]> {
  const { 'content-type': type = '', 'content-encoding': encoding } = req.headers;
  const bytes = Buffer.concat(await req.toArray());
  const isJson = bytes.length === 0 || /^application\/json *($|;(?!.*charset=(?!"?utf-8\b)))/i.test(type);
  if (encoding !== undefined || !isJson) {
    throw new Refusal(415, 'unsupported_media_type', 'the body must be plain JSON', { Accept: 'application/json' });
  }
  if (bytes.length > 65_536) throw new Refusal(413, 'body_too_large', 'the body may have at most 65536 bytes');
  let body: unknown;
  try {
    body = parseJson(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch (error) {
    throw new Refusal(400, 'invalid_json', `the body is not JSON: ${(error as Error).message}`);
  }
  if (body instanceof Object && !Array.isArray(body)) return Object.entries(body);
  throw new Refusal(400, 'invalid_body', 'the body must be a JSON object');
}

// The endpoints.
/** `once`: the name under which the reply is kept. */
type Call = { param: string; query: Record<string, unknown>; body: [string, unknown][]; once?: string };
/** `repeated-post`: in the line of the change, so that a crash leaves both or neither. */
const kept = (once: string | undefined, reply: Reply): Change['reply'] =>
  once === undefined ? undefined : [once, reply];
const pageQuery = (statuses: readonly string[]) => ({
  limit: optional(form('a whole number from 1 to 100', /^([1-9]\d?|100)$/)),
  status: optional(form(`one of ${statuses.join(', ')}`, new RegExp(`^(${statuses.join('|')})$`))),
  after: optional(form('an id, a 64-bit integer', /^(0|-?[1-9]\d{0,18})$/)),
});
/** A page of items by ascending id, after the id `after`. Ids only grow: new items never get onto earlier pages. */
function page({ query }: Call, path: string, all: Map<number, Pet | Order>): Reply {
  const { limit = 20, status: wanted, after = 0 } = query;
  const found = [...all.values()].filter(({ id, status }) => id > Number(after) && status === (wanted ?? status));
  const body = found.slice(0, Number(limit));
  const next = `${path}?limit=${limit}${wanted ? `&status=${wanted}` : ''}&after=${body.at(-1)?.id}`;
  return { status: 200, body, headers: found.length > body.length ? { Link: `<${next}>; rel="next"` } : {} };
}

function find<T extends Pet | Order>(all: Map<number, T>, { param }: Call, what: string): T {
  const item = /^[1-9]\d*$/.test(param) ? all.get(Number(param)) : undefined;
  if (item === undefined) throw new Refusal(404, 'not_found', `there is no such ${what}`);
  return item;
}

const listPets = (call: Call) => page(call, '/v1/pets', pets);
const listOrders = (call: Call) => page(call, '/v1/store/orders', orders);
const getPet = (call: Call): Reply => ({ status: 200, body: find(pets, call, 'animal') });
const getOrder = (call: Call): Reply => ({ status: 200, body: find(orders, call, 'order') });

function createPet({ body, once }: Call): Reply {
  const rules = { name: NAME, categoryId: INTEGER, status: optional(oneOf(PET_STATUSES)) };
  const { name, categoryId, status = 'available' } = read('invalid_body', body, rules);
  const pet: Pet = { id: pets.size + 1, name, categoryId, status };
  const reply = { status: 201, body: pet, headers: { Location: `/v1/pets/${pet.id}` } };
  write({ pet, reply: kept(once, reply) });
  return reply;
}

function createOrder({ body, once }: Call): Reply {
  const { petId } = read('invalid_body', body, { petId: ANIMAL });
  const pet = pets.get(petId)!;
  if (pet.status !== 'available') throw new Refusal(409, 'pet_unavailable', `animal ${petId} is ${pet.status}`);
  const order: Order = { id: orders.size + 1, petId, status: 'placed', placedAt: new Date().toISOString() };
  const reply = { status: 201, body: order, headers: { Location: `/v1/store/orders/${order.id}` } };
  write({ order, pet: { ...pet, status: 'pending' }, reply: kept(once, reply) });
  return reply;
}

function updateOrder(call: Call): Reply {
  const { status } = read('invalid_body', call.body, { status: oneOf(['delivered', 'cancelled'] as const) });
  const old = find(orders, call, 'order');
  if (old.status !== 'placed') throw new Refusal(409, 'order_closed', `order ${old.id} is already ${old.status}`);
  const order = { ...old, status };
  write({ order, pet: { ...pets.get(old.petId)!, status: status === 'delivered' ? 'sold' : 'available' } });
  return { status: 200, body: order };
}

const SUCCESSOR = '</v1/pets>; rel="successor-version"';
const DEPRECATED = { Sunset: 'Thu, 05 Dec 2030 00:00:00 GMT', Link: SUCCESSOR };
/** `query`: the parameters that a GET takes. */
type Route = { path: RegExp; handlers: Record<string, (call: Call) => Reply>; query?: Rules; headers?: Headers };
const ROUTES: Route[] = [
  { path: /^\/v1\/pets$/, handlers: { GET: listPets, POST: createPet }, query: pageQuery(PET_STATUSES) },
  { path: /^\/v1\/pets\/([^/]+)$/, handlers: { GET: getPet }, headers: DEPRECATED },
  {
    path: /^\/v1\/store\/orders$/,
    handlers: { GET: listOrders, POST: createOrder },
    query: pageQuery(ORDER_STATUSES),
  },
  { path: /^\/v1\/store\/orders\/([^/]+)$/, handlers: { GET: getOrder, PATCH: updateOrder } },
];

/**
 * Serves one request. The key is checked before the path, so that nobody without one learns which paths exist.
 * `addHeaders` takes headers as soon as they are known, so that a refusal, which is thrown later, has them too.
 */
async function serve(req: IncomingMessage, addHeaders: (headers: Headers) => void): Promise<Reply> {
  const [path, query = ''] = req.url!.split(/\?(.*)/s);
  const route = ROUTES.find((one) => one.path.test(path));
  const address = windowsOf(req.socket.remoteAddress ?? '', OF_ADDRESS);
  const isRead = req.method === 'GET' || req.method === 'HEAD';
  addHeaders({ ...limitHeaders(address), ...(isRead ? route?.headers : {}) });
  let caller = '';
  if (/^\/v1(\/|$)/.test(path)) {
    const key = findKey(req.headers.authorization);
    const own = key instanceof Refusal ? address : windowsOf(key.digest, PLANS[key.plan]);
    const limited = take(own);
    addHeaders(limitHeaders(own));
    if (limited !== undefined) throw limited;
    if (key instanceof Refusal) throw key;
    caller = key.digest;
  }
  if (req.url!.length > 2_048) throw new Refusal(414, 'uri_too_long', 'the target may have at most 2048 characters');
  if (route === undefined) throw new Refusal(404, 'not_found', 'there is nothing at this path');
  const handler = route.handlers[isRead ? 'GET' : req.method!];
  const Allow = Object.keys(route.handlers).join(', ').replace('GET', 'GET, HEAD');
  if (handler === undefined) throw new Refusal(405, 'method_not_allowed', `this path takes: ${Allow}`, { Allow });
  const parameters = read('invalid_parameter', [...new URLSearchParams(query)], (isRead && route.query) || {});
  const body = isRead ? [] : await readBody(req);
  const name = req.method === 'POST' ? req.headers['idempotency-key'] : undefined;
  const once = name === undefined ? undefined : JSON.stringify([caller, path, name]);
  const first = once === undefined ? undefined : replies.get(once);
  return first ?? handler({ param: route.path.exec(path)![1], query: parameters, body, once });
}

const server = createServer(async (req, res) => {
  const common: Headers = { 'X-Request-Id': randomUUID(), 'X-Content-Type-Options': 'nosniff' };
  const head: Headers = { ...common, 'Cache-Control': 'no-store', 'Content-Type': 'application/json; charset=utf-8' };
  const { status, body, headers } = await serve(req, (more) => Object.assign(head, more)).catch(replyTo);
  const text = toJson(body);
  res.writeHead(status, { ...head, ...headers, 'Content-Length': Buffer.byteLength(text) }).end(text);
});

// The start: memory is rebuilt from the log. Then the first key, which is shown only this once.
const { values } = parseArgs({ options: { port: { type: 'string' }, data: { type: 'string' } } });
const { port = '8080', data = 'petstore-small' } = values;
const log = join(data, 'petstore.log');
mkdirSync(data, { recursive: true });
// `torn-line`: what stands after the last line feed was torn by a crash, and nobody got a reply to it.
const bytes = existsSync(log) ? readFileSync(log) : Buffer.alloc(0);
const end = bytes.lastIndexOf('\n') + 1;
if (end < bytes.length) truncateSync(log, end);
const written = bytes.toString('utf8', 0, end);
for (const line of written.split('\n').filter((text) => text !== '')) apply(parseJson(line) as Change);

server.listen(Number(port), '127.0.0.1', () => {
  const url = `http://127.0.0.1:${(server.address() as { port: number }).port}/v1`;
  console.log(`petstore listening on ${url}`);
  if (keys.size > 0) return;
  const key = makeKey();
  write({ key: { digest: hash(key), plan: 'free' } });
  console.log(`${key}\ncurl -s -H 'Authorization: Bearer ${key}' ${url}/pets`);
});
