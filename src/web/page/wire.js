/** The one place that sends requests, and what their replies have told: the key's standing, its windows, waits. */
import { readJson } from './json.js';

export const MAX_EXCHANGES = 20;
const MAX_CACHED_REPLIES = 50;
const STORED = 'petstore-console';
/** Stands for the key where it is not shown. */
const KEY_VARIABLE = '$PETSTORE_KEY';

/** Events: `key`, `windows`, `wait`, `silence`, `exchange`. */
export const bus = new EventTarget();
const tell = (...names) => names.forEach((name) => void bus.dispatchEvent(new Event(name)));

const NEW = { standing: 'none', refusal: '', windows: [], wait: undefined, exchanges: [] };

/**
 * `keyId`: as the operator's commands name the key; '' where nobody said. `standing`: none, unknown, accepted, refused.
 * `isSilent`: the last request had no reply. `wait`: until when nothing is to be sent, and why. Key, windows and wait
 * outlive a reload: asking again during a wait could end in a ban. All times are of Date.now().
 */
export const wire = { key: '', keyId: '', isSilent: false, ...NEW, ...stored() };
/** By path: what was read with an ETag, so that what has not changed since is not sent again. */
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
  const { key, keyId, windows, wait } = wire;
  try {
    if (key === '') sessionStorage.removeItem(STORED);
    else sessionStorage.setItem(STORED, JSON.stringify({ key, keyId, windows, wait }));
  } catch {
    // as above
  }
}

/** What was known of another key is none of this one's business. */
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

/** The key's clock was moved: what was told of its windows is no longer so. */
export function forgetWindows() {
  wire.windows = [];
  tell('windows');
  endWait();
}

/**
 * Sends, unless the service asked to wait: then nothing, and undefined; the lab, which can end the wait, counts for
 * itself. Else what came back: `status` (0 if nothing did), `text` and the `value` of it, `message` (of what went wrong,
 * or empty), `next` (the path of the next page), and the `exchange`. `again`: what was read before need not be sent
 * again; a 304 then comes to what was read.
 * `isQuiet`: it is not shown among the requests.
 */
export async function call(method, path, { body, headers = {}, again = false, isQuiet = false } = {}) {
  if (wire.wait !== undefined && !path.startsWith('/lab/')) return undefined;
  const known = again ? cached.get(path) : undefined;
  const sent = {
    ...(body !== undefined && { 'Content-Type': 'application/json' }),
    ...(known && { 'If-None-Match': known.tag }),
    ...headers,
  };
  const exchange = { method, path, sent, body, at: new Date(), status: 0, received: [], text: '' };
  const usedKey = wire.key;
  const begun = performance.now();
  let failure = 'Not sent'; // as long as the headers are not known to be possible
  try {
    const all = new Headers({ ...(usedKey !== '' && { Authorization: `Bearer ${usedKey}` }), ...sent });
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
  const result = understand(exchange, known);
  if (again && usedKey === wire.key) keep(path, result);
  setSilence(exchange.status === 0 && failure !== 'Not sent');
  if (usedKey === wire.key && !isQuiet) learn(result);
  return result;
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
  if (status === 0 || !exchange.path.startsWith('/v1/')) return; // the lab counts for itself
  wire.windows = windowsOf(headers);
  if (wire.key !== '' && status === 401) wire.standing = 'refused';
  else if (wire.windows.some(({ name }) => name !== 'address')) wire.standing = 'accepted'; // only a good key has any
  wire.refusal = wire.standing === 'refused' ? message : '';
  const seconds = Number(headers.get('retry-after'));
  const mustWait = seconds > 0 && (status === 429 || status === 503);
  if (mustWait) wire.wait = { until: Date.now() + seconds * 1000, code: value?.code };
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
  return [...windows].map(([name, { q, r, t }]) => ({ name, limit: q, left: r, endsAt: Date.now() + t * 1000 }));
}

/** Request and reply as HTTP writes them; the key only if it is to be shown. */
export function requestHeaders({ sent }, showKey) {
  return { Authorization: `Bearer ${showKey ? wire.key : KEY_VARIABLE}`, ...sent };
}

/** The same request as a line for the shell. Where the key is not shown, the shell is to know it. */
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

/** For an Idempotency-Key. */
export function randomKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
