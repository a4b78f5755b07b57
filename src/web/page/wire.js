/** The one place that sends requests, and what is known from their replies: the key's standing, windows, waits. */
import { readJson } from './json.js';

export const MAX_EXCHANGES = 20;
const STORED = 'petstore-key';
/** Stands for the key where it is not shown. */
export const KEY_VARIABLE = '$PETSTORE_KEY';

/** Events: `key`, `windows`, `wait`, `exchange`. */
export const bus = new EventTarget();
const tell = (name) => bus.dispatchEvent(new Event(name));

/** `standing`: none, unknown, accepted, refused. `wait`: `until` when, by performance.now(), nothing is to be sent. */
export const wire = {
  key: stored(),
  standing: 'none',
  refusal: '',
  windows: [],
  wait: undefined,
  exchanges: [],
};
wire.standing = wire.key === '' ? 'none' : 'unknown';

function stored() {
  try {
    return sessionStorage.getItem(STORED) ?? '';
  } catch {
    return ''; // storage is switched off: the key lives as long as the page
  }
}

export function setKey(key) {
  wire.key = key;
  wire.standing = key === '' ? 'none' : 'unknown';
  wire.refusal = '';
  wire.windows = [];
  wire.wait = undefined;
  wire.exchanges = []; // another key's are none of this one's
  try {
    if (key === '') sessionStorage.removeItem(STORED);
    else sessionStorage.setItem(STORED, key);
  } catch {
    // as above
  }
  for (const name of ['key', 'windows', 'wait', 'exchange']) tell(name);
}

export const isWaiting = () => wire.wait !== undefined;

export function endWait() {
  wire.wait = undefined;
  tell('wait');
}

/**
 * Sends, unless the service asked to wait: then nothing, and undefined. Else what came back: `status` (0 if nothing
 * did), `value`, `message` (of what went wrong, or empty), `next` (the path of the next page).
 */
export async function call(method, path, { body, headers = {} } = {}) {
  if (isWaiting()) return undefined;
  const sent = { ...(body !== undefined && { 'Content-Type': 'application/json' }), ...headers };
  const exchange = { method, path, sent, body, at: new Date(), status: 0, received: [], text: '' };
  const usedKey = wire.key;
  const begun = performance.now();
  let failure = 'Not sent'; // as long as the headers are not known to be possible
  try {
    const init = {
      method,
      body,
      headers: new Headers({ Authorization: `Bearer ${usedKey}`, ...sent }),
      cache: 'no-store',
      redirect: 'error',
      credentials: 'omit',
    };
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
  if (usedKey === wire.key) learn(result, exchange);
  return result;
}

function understand({ status, text, failure, received }) {
  const headers = new Map(received);
  const next = /<([^>]+)>;\s*rel="next"/.exec(headers.get('link') ?? '')?.[1];
  const result = { status, headers, next, value: undefined, message: failure ?? '' };
  try {
    if (text !== '') result.value = readJson(text);
  } catch {
    result.message = 'The reply is not JSON.';
  }
  if (status >= 400) result.message = result.value?.message ?? `The service answered ${status}.`;
  result.ok = status >= 200 && status < 300 && result.message === '';
  return result;
}

function learn(result, exchange) {
  wire.exchanges = [exchange, ...wire.exchanges].slice(0, MAX_EXCHANGES);
  tell('exchange');
  if (result.status === 0) return;
  const code = result.value?.code;
  wire.windows = windowsOf(result.headers).map((window) => ({ ...window, banned: code === 'key_banned' }));
  if (result.status === 401) {
    wire.standing = 'refused';
    wire.refusal = result.message;
  } else if (wire.windows.some(({ name }) => name !== 'address')) {
    wire.standing = 'accepted'; // only a good key has windows of its own
  }
  tell('key');
  tell('windows');
  const seconds = Number(result.headers.get('retry-after'));
  if (seconds > 0 && (result.status === 429 || result.status === 503)) {
    wire.wait = { until: performance.now() + seconds * 1000, code, windows: wire.windows };
    tell('wait');
  }
}

/** `"minute";r=59;t=60, "day";…` beside `"minute";q=60;w=60, …`: the windows of this reply, by name. */
export function windowsOf(headers) {
  const now = performance.now();
  const windows = new Map();
  for (const name of ['ratelimit-policy', 'ratelimit']) {
    for (const [, window, rest] of (headers.get(name) ?? '').matchAll(/"([^"]+)"((?:;\w+=\d+)*)/g)) {
      const fields = Object.fromEntries(
        [...rest.matchAll(/;(\w+)=(\d+)/g)].map(([, key, value]) => [key, Number(value)]),
      );
      windows.set(window, { ...windows.get(window), name: window, ...fields });
    }
  }
  return [...windows.values()].map(({ name, q, w, r, t }) => ({
    name,
    limit: q,
    seconds: w,
    left: r,
    endsAt: now + t * 1000,
  }));
}

/** The same request as a line for the shell. Without a key, the shell is to know it. */
export function curlLine({ method, path, sent, body }, key) {
  const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const authorization = `Authorization: Bearer ${key ?? KEY_VARIABLE}`;
  const parts = ['curl -i', ...(method === 'GET' ? [] : [`-X ${method}`]), quoted(location.origin + path)];
  parts.push(`-H ${key === undefined ? `"${authorization}"` : quoted(authorization)}`);
  for (const [name, value] of Object.entries(sent)) parts.push(`-H ${quoted(`${name}: ${value}`)}`);
  if (body !== undefined) parts.push(`--data-raw ${quoted(body)}`);
  return parts.join(' ');
}

/** Not used up by asking again: a repeated press of the same button makes nothing twice. */
export function onceKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
