/** The one place that sends requests, and what their replies have told: the key's standing, its windows, waits. */
import { readJson } from './json.js';

export const MAX_EXCHANGES = 20;
const STORED = 'petstore-console';
/** Stands for the key where it is not shown. */
const KEY_VARIABLE = '$PETSTORE_KEY';

/** Events: `key`, `windows`, `wait`, `exchange`. */
export const bus = new EventTarget();
const tell = (...names) => names.forEach((name) => void bus.dispatchEvent(new Event(name)));

const NEW = { standing: 'none', refusal: '', windows: [], wait: undefined, exchanges: [] };

/**
 * `standing`: none, unknown, accepted, refused. `wait`: until when nothing is to be sent, and why. Key, windows and
 * wait outlive a reload: asking again during a wait could end in a ban. All times are of Date.now().
 */
export const wire = { key: '', ...NEW, ...stored() };
if (wire.key !== '') wire.standing = 'unknown';

function stored() {
  try {
    return JSON.parse(sessionStorage.getItem(STORED));
  } catch {
    return {}; // storage is switched off: the key lives as long as the page
  }
}

function store() {
  const { key, windows, wait } = wire;
  try {
    if (key === '') sessionStorage.removeItem(STORED);
    else sessionStorage.setItem(STORED, JSON.stringify({ key, windows, wait }));
  } catch {
    // as above
  }
}

/** What was known of another key is none of this one's business. */
export function setKey(key) {
  Object.assign(wire, NEW, { key, standing: key === '' ? 'none' : 'unknown' });
  store();
  tell('key', 'windows', 'wait', 'exchange');
}

export function endWait() {
  wire.wait = undefined;
  store();
  tell('wait');
}

/** The key's clock was moved: what was told of its windows is no longer so. */
export function forgetWindows() {
  wire.windows = [];
  tell('windows');
  endWait();
}

/**
 * Sends, unless the service asked to wait: then nothing, and undefined; the lab, which can end the wait, counts for
 * itself. Else what came back: `status` (0 if nothing
 * did), `value`, `message` (of what went wrong, or empty), `next` (the path of the next page), and the `exchange`.
 */
export async function call(method, path, { body, headers = {} } = {}) {
  if (wire.wait !== undefined && !path.startsWith('/lab/')) return undefined;
  const sent = { ...(body !== undefined && { 'Content-Type': 'application/json' }), ...headers };
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
  const result = understand(exchange);
  if (usedKey === wire.key) learn(result);
  return result;
}

function understand(exchange) {
  const { status, text, failure, received } = exchange;
  const headers = new Map(received);
  const next = /<([^>]+)>;\s*rel="next"/.exec(headers.get('link') ?? '')?.[1];
  const result = { status, headers, next, exchange, value: undefined, message: failure ?? '' };
  try {
    if (text !== '') result.value = readJson(text);
  } catch {
    result.message = 'The reply is not JSON.';
  }
  if (status >= 400) result.message = result.value?.message ?? `The service answered ${status}.`;
  result.ok = status >= 200 && status < 300 && result.message === '';
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
