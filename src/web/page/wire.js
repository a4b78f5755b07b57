/** The one place that sends requests, and the state learned from replies: the key's standing, its windows, waits. */
import { readJson } from './json.js';

export const MAX_EXCHANGES = 20;
const MAX_CACHED_REPLIES = 50;
const MAX_OPEN_WISHES = 50;
/** A request without a reply for that long is named on the page. */
const SLOW_MS = 2_000;
const STORED = 'petstore-console';
/** In place of a key that is not to be shown. */
const KEY_VARIABLE = '$PETSTORE_KEY';

/** Events: `key`, `windows`, `wait`, `silence`, `slow`, `exchange`; `reset`: the shop may be another one than before. */
export const bus = new EventTarget();
const tell = (...names) => names.forEach((name) => void bus.dispatchEvent(new Event(name)));

const NEW = { standing: 'none', refusal: '', windows: [], wait: undefined, wishes: [], exchanges: [] };

/**
 * `keyId`: the key's id in the operator's commands; '' if unknown. `standing`: none, unknown, accepted, refused.
 * `isSilent`: the last request had no reply. `slow`: the oldest request that waits for its reply, once that takes long.
 * `wait`: the end of a wait, its length and its cause. `wishes`: POSTs whose outcome is open, each with its
 * Idempotency-Key. Key, windows, wait and wishes outlive a reload: asking again during a wait could end in a ban, and
 * asking for the same again could make two. All times are of Date.now().
 */
export const wire = { key: '', keyId: '', isSilent: false, slow: undefined, ...NEW, ...stored() };
/** Replies with an ETag, by path, so that unchanged content is not transferred again. */
const cached = new Map();
if (wire.key !== '') wire.standing = 'unknown';

function stored() {
  try {
    return JSON.parse(sessionStorage.getItem(STORED));
  } catch {
    return {}; // storage is switched off: the key lives as long as the page
  }
}

function store() {
  const { key, keyId, windows, wait, wishes } = wire;
  try {
    if (key === '') sessionStorage.removeItem(STORED);
    else sessionStorage.setItem(STORED, JSON.stringify({ key, keyId, windows, wait, wishes }));
  } catch {
    // as above
  }
}

/** Sets another key, and forgets all that was learned with the one before. */
export function setKey(key, keyId = '') {
  Object.assign(wire, NEW, { key, keyId, standing: key === '' ? 'none' : 'unknown' });
  cached.clear();
  store();
  tell('key', 'windows', 'wait', 'exchange');
}

export function endWait() {
  wire.wait = undefined;
  store();
  tell('wait');
}

export function setSilence(isSilent) {
  if (wire.isSilent === isSilent) return;
  wire.isSilent = isSilent;
  tell('silence');
}

/** The lab can end a wait, and has a limit of its own. */
const isOfLab = (path) => /^\/lab(?:[/?]|$)/.test(path);

/** The requests that have waited long, in order. */
const slow = new Set();

function tellSlow() {
  const [oldest] = slow;
  const before = wire.slow;
  wire.slow = oldest && `${oldest.method} ${oldest.path}`;
  if (wire.slow !== before) tell('slow');
}

/** Names a request while it has no reply. The result is called when it has one. */
function watchFor(exchange) {
  const timer = setTimeout(() => {
    slow.add(exchange);
    tellSlow();
  }, SLOW_MS);
  return () => {
    clearTimeout(timer);
    slow.delete(exchange);
    tellSlow();
  };
}

/**
 * Sends a request. During a wait it sends nothing and returns undefined, except to the lab. Returns `status` (0 without
 * a reply), `text` and its `value`, `message` (the error, or empty), `next` (the path of the next page), and the
 * `exchange`. `again`: asks with the ETag of the cached reply, whose text is returned for a 304. `isQuiet`: the request is not listed under “Requests”.
 */
export async function call(method, path, { body, headers = {}, again = false, isQuiet = false } = {}) {
  if (wire.wait !== undefined && !isOfLab(path)) return undefined;
  const known = again ? cached.get(path) : undefined;
  const sent = {
    ...(body !== undefined && { 'Content-Type': 'application/json' }),
    ...(known && { 'If-None-Match': known.tag }),
    ...headers,
  };
  const usedKey = wire.key;
  const hasKey = usedKey !== '';
  const exchange = { method, path, hasKey, sent, body, at: new Date(), status: 0, received: [], text: '' };
  const begun = performance.now();
  const came = isQuiet ? () => {} : watchFor(exchange);
  let failure = 'Not sent'; // until the headers have proved valid
  try {
    const all = new Headers({ ...(hasKey && { Authorization: `Bearer ${usedKey}` }), ...sent });
    const init = { method, body, headers: all, cache: 'no-store', redirect: 'error', credentials: 'omit' };
    failure = 'No reply from the service';
    const reply = await fetch(path, init);
    exchange.text = await reply.text();
    exchange.status = reply.status;
    exchange.phrase = reply.statusText;
    exchange.received = [...reply.headers];
  } catch (error) {
    exchange.failure = `${failure} (${error.message}).`;
  }
  exchange.ms = performance.now() - begun;
  came();
  const result = understand(exchange, known);
  if (again && usedKey === wire.key) keep(path, result);
  setSilence(exchange.status === 0 && failure !== 'Not sent');
  if (usedKey === wire.key && !isQuiet) learn(result);
  if (usedKey === wire.key && isOfLab(path)) learnOfLab(result);
  return result;
}

/** Time that passed, or a reset, ends what was told of the limits; and a reset ends all that was read of the shop. */
function learnOfLab({ ok, status, message, exchange: { method, path } }) {
  const before = wire.standing;
  if (ok) wire.standing = 'accepted';
  else if (status === 401) wire.standing = 'refused';
  wire.refusal = wire.standing === 'refused' ? message : '';
  if (ok && method === 'POST' && /^\/lab\/(?:clock|reset)$/.test(path)) {
    const isReset = path === '/lab/reset';
    Object.assign(wire, { windows: [], wait: undefined, ...(isReset && { wishes: [] }) });
    store();
    tell('windows', 'wait', ...(isReset ? ['reset'] : []));
  }
  if (wire.standing !== before) tell('key');
}

function keep(path, { ok, status, headers, text }) {
  const tag = headers.get('etag');
  if (!ok || status !== 200 || tag === undefined) return;
  cached.delete(path); // so that it is the newest
  cached.set(path, { tag, text });
  if (cached.size > MAX_CACHED_REPLIES) cached.delete(cached.keys().next().value);
}

function understand(exchange, known) {
  const { status, failure, received } = exchange;
  const headers = new Map(received);
  const isKnown = status === 304 && known !== undefined;
  const text = isKnown ? known.text : exchange.text;
  const next = /<([^>]+)>;\s*rel="next"/.exec(headers.get('link') ?? '')?.[1];
  const result = { status, headers, next, exchange, text, value: undefined, message: failure ?? '' };
  try {
    if (text !== '') result.value = readJson(text);
  } catch {
    result.message = 'The reply is not JSON.';
  }
  if (status >= 400) result.message = result.value?.message ?? `The service answered ${status}.`;
  result.ok = (isKnown || (status >= 200 && status < 300)) && result.message === '';
  return result;
}

function learn({ status, headers, value, message, exchange }) {
  wire.exchanges = [exchange, ...wire.exchanges].slice(0, MAX_EXCHANGES);
  tell('exchange');
  if (status === 0 || !exchange.path.startsWith('/v1/')) return; // the lab has a limit of its own
  wire.windows = windowsOf(headers);
  if (wire.key !== '' && status === 401) wire.standing = 'refused';
  else if (wire.windows.some(({ name }) => name !== 'address')) wire.standing = 'accepted'; // only a good key has any
  wire.refusal = wire.standing === 'refused' ? message : '';
  const seconds = Number(headers.get('retry-after'));
  const mustWait = seconds > 0 && (status === 429 || status === 503);
  if (mustWait) wire.wait = { ...endIn(seconds), code: value?.code, message };
  store();
  tell('key', 'windows', ...(mustWait ? ['wait'] : []));
}

/** `"minute";r=59;t=60, "day";…` beside `"minute";q=60;w=60, …`: the windows of this reply, by name. */
function windowsOf(headers) {
  const windows = new Map();
  for (const header of ['ratelimit-policy', 'ratelimit']) {
    for (const [, name, rest] of (headers.get(header) ?? '').matchAll(/"([^"]+)"((?:;\w+=\d+)*)/g)) {
      const fields = [...rest.matchAll(/;(\w+)=(\d+)/g)].map(([, field, digits]) => [field, Number(digits)]);
      windows.set(name, { ...windows.get(name), ...Object.fromEntries(fields) });
    }
  }
  return [...windows].map(([name, { q, r, t }]) => ({ name, limit: q, left: r, ...endIn(t) }));
}

const endIn = (seconds) => ({ endsAt: Date.now() + seconds * 1000, seconds });

/** The seconds that a wait or a window still lasts: never more than was told, also where the clock was set back. */
export function secondsLeft(of) {
  of.endsAt = Math.min(of.endsAt, Date.now() + of.seconds * 1000);
  return Math.max(0, Math.ceil((of.endsAt - Date.now()) / 1000));
}

/** The headers of a request as shown; its key only if `showKey`. */
export function requestHeaders({ hasKey, sent }, showKey) {
  return { ...(hasKey && { Authorization: `Bearer ${showKey ? wire.key : KEY_VARIABLE}` }), ...sent };
}

/** The request as a line for the shell. Without `showKey` it takes the key from a variable of the shell. */
export function curlLine(exchange, showKey) {
  const { method, path, body } = exchange;
  const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const parts = ['curl -i', ...(method === 'GET' ? [] : [`-X ${method}`]), quoted(location.origin + path)];
  for (const [name, value] of Object.entries(requestHeaders(exchange, showKey))) {
    const line = `${name}: ${value}`;
    parts.push(`-H ${value.includes(KEY_VARIABLE) ? `"${line}"` : quoted(line)}`);
  }
  if (body !== undefined) parts.push(`--data-raw ${quoted(body)}`);
  return parts.join(' ');
}

/**
 * Sends a POST. Who asks for the same again while the outcome is open, after a lost reply say, means the same one: it has
 * the same Idempotency-Key. `isAgain` of the result: it was made before, by such a request.
 */
export async function postOnce(path, body) {
  const wish = `${path} ${body}`;
  const known = wire.wishes.find((one) => one.wish === wish);
  const { key } = known ?? { key: randomKey() };
  wire.wishes = [...wire.wishes.filter((one) => one !== known), { wish, key }].slice(-MAX_OPEN_WISHES);
  store();
  const usedKey = wire.key;
  const reply = await call('POST', path, { body, headers: { 'Idempotency-Key': key } });
  if (reply === undefined || !isSettled(reply)) return reply;
  if (usedKey === wire.key) wire.wishes = wire.wishes.filter((one) => one.key !== key);
  store();
  return { ...reply, isAgain: known !== undefined && reply.headers.get('idempotent-replayed') === 'true' };
}

/** Whether the service itself said what became of a write. Anything else leaves it open: the write may come again. */
export function isSettled({ ok, status, value }) {
  const isRefused = status >= 400 && status < 500 && status !== 429 && typeof value?.code === 'string';
  return ok || (isRefused && value.code !== 'idempotency_in_flight');
}

/** For an Idempotency-Key. */
export function randomKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
