/** The one place that sends requests, and the state learned from replies: the key's standing, its windows, waits. */
import { readJson } from './json.js';

export const MAX_EXCHANGES = 20;
const MAX_OPEN_POSTS = 50;
const STORED = 'petstore-console';
/** In place of a key that is not to be shown. */
const KEY_VARIABLE = '$PETSTORE_KEY';

/**
 * Events of this file: `key`, `windows`, `wait`, `silence`, `exchange`, `pending`; `reset`: the shop may be another one
 * than before. Of the panel: `start`, with a key; `resume`, after a wait; `retry`, to read again what is shown.
 */
export const bus = new EventTarget();
export const emit = (...names) => names.forEach((name) => void bus.dispatchEvent(new Event(name)));

const NEW = { standing: 'none', refusal: '', windows: [], wait: undefined, openPosts: [], exchanges: [] };

/**
 * `standing` of the key: none, unknown, accepted, refused. `isSilent`: the last request had no reply. `pending`: the
 * requests under way. `wait`: the end of a wait, its length and its cause. `openPosts`: POSTs of unknown outcome, each
 * with its Idempotency-Key. Key, windows, wait and open POSTs outlive a reload: a request during a wait could end in a
 * ban, and the same POST with another Idempotency-Key could make two. All times are of Date.now().
 */
export const wire = { key: '', isSilent: false, pending: 0, ...NEW, ...stored() };
if (wire.key !== '') wire.standing = 'unknown';

function stored() {
  try {
    return JSON.parse(sessionStorage.getItem(STORED));
  } catch {
    return {}; // storage is switched off: the key lives as long as the page
  }
}

function store() {
  const { key, windows, wait, openPosts } = wire;
  try {
    if (key === '') sessionStorage.removeItem(STORED);
    else sessionStorage.setItem(STORED, JSON.stringify({ key, windows, wait, openPosts }));
  } catch {
    // as above
  }
}

/** Sets another key, and forgets all that was learned with the one before. */
export function setKey(key) {
  Object.assign(wire, NEW, { key, standing: key === '' ? 'none' : 'unknown' });
  store();
  emit('key', 'windows', 'wait', 'exchange');
}

export function endWait() {
  wire.wait = undefined;
  store();
  emit('wait');
}

export function setSilence(isSilent) {
  if (wire.isSilent === isSilent) return;
  wire.isSilent = isSilent;
  emit('silence');
}

/** The lab can end a wait, and has a limit of its own. */
const isOfLab = (path) => /^\/lab(?:[/?]|$)/.test(path);

function addPending(count) {
  wire.pending += count;
  emit('pending');
}

/**
 * Sends a request. Returns undefined if none may be sent, or if this one was refused by a limit: the banner says until
 * when. Otherwise `status` (0 without a reply), `text` and its `value`, `message` (the error, or empty), `next` (the
 * path of the next page), and the `exchange`.
 * `isQuiet`: the request is not listed under “Requests”. `showsLimit`: a refusal by a limit is returned as any other
 * reply.
 */
export async function call(method, path, options = {}) {
  const { body, headers = {}, isQuiet = false, showsLimit = false } = options;
  if (wire.wait !== undefined && !isOfLab(path)) return undefined;
  const sent = { ...(body !== undefined && { 'Content-Type': 'application/json' }), ...headers };
  const usedKey = wire.key;
  const exchange = await transfer({ method, path, hasKey: usedKey !== '', sent, body }, isQuiet);
  const result = understand(exchange);
  setSilence(exchange.status === 0 && !exchange.isUnsendable);
  const isLimited = usedKey === wire.key && learn(result, isQuiet);
  return isLimited && !showsLimit ? undefined : result;
}

async function transfer(request, isQuiet) {
  const { method, path, hasKey, sent, body } = request;
  const exchange = { ...request, at: new Date(), status: 0, received: [], text: '', isUnsendable: true };
  const begun = performance.now();
  if (!isQuiet) addPending(1);
  try {
    const headers = new Headers({ ...(hasKey && { Authorization: `Bearer ${wire.key}` }), ...sent });
    exchange.isUnsendable = false; // the headers are valid
    const reply = await fetch(path, {
      method,
      body,
      headers,
      cache: 'no-store',
      redirect: 'error',
      credentials: 'omit',
    });
    exchange.text = await reply.text();
    exchange.status = reply.status;
    exchange.phrase = reply.statusText;
    exchange.received = [...reply.headers];
  } catch (error) {
    exchange.failure = `${exchange.isUnsendable ? 'Not sent' : 'No reply from the service'} (${error.message}).`;
  }
  exchange.ms = performance.now() - begun;
  if (!isQuiet) addPending(-1);
  return exchange;
}

function understand(exchange) {
  const { status, failure, received } = exchange;
  const headers = new Map(received);
  const { text } = exchange;
  const next = /<([^>]+)>;\s*rel="next"/.exec(headers.get('link') ?? '')?.[1];
  const result = { status, headers, next, exchange, text, value: undefined, message: failure ?? '' };
  try {
    if (text !== '') result.value = readJson(text);
  } catch {
    result.message = 'The reply is not JSON.';
  }
  if (status >= 400) result.message = result.value?.message ?? `The service answered ${status}.`;
  result.ok = status >= 200 && status < 300 && result.message === '';
  return result;
}

/** Returns whether the reply began a wait. */
function learn(result, isQuiet) {
  const { status, ok, headers, value, message, exchange } = result;
  const { method, path } = exchange;
  if (!isQuiet) {
    wire.exchanges = [exchange, ...wire.exchanges].slice(0, MAX_EXCHANGES);
    emit('exchange');
  }
  if (status === 0) return false;
  const before = wire.standing;
  const windows = windowsOf(headers);
  const isAccepted = isOfLab(path) ? ok : windows.some(({ name }) => name !== 'address'); // only a valid key has any
  if (wire.key !== '' && status === 401) wire.standing = 'refused';
  else if (isAccepted) wire.standing = 'accepted';
  wire.refusal = wire.standing === 'refused' ? message : '';
  const events = isOfLab(path) ? learnOfLab(ok && method === 'POST', path) : ['windows'];
  const seconds = Number(headers.get('retry-after'));
  const isLimited = !isOfLab(path) && seconds > 0 && (status === 429 || status === 503);
  if (!isOfLab(path)) wire.windows = windows;
  if (isLimited) wire.wait = { ...endIn(seconds), status, code: value?.code, message };
  if (isLimited) events.push('wait');
  store();
  if (wire.standing !== before || wire.standing === 'refused') events.unshift('key');
  emit(...events);
  return isLimited;
}

/** Time that passed, or a reset, ends what is known of the limits; a reset ends all that was read of the shop too. */
function learnOfLab(isDone, path) {
  const isReset = path === '/lab/reset';
  if (!isDone || !(isReset || path === '/lab/clock')) return [];
  Object.assign(wire, { windows: [], wait: undefined, ...(isReset && { openPosts: [] }) });
  return ['windows', 'wait', ...(isReset ? ['reset'] : [])];
}

/** `"minute";r=59;t=60, "day";…` beside `"minute";q=60;w=60, …`: the windows of this reply. */
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

/** The seconds that a wait or a window still lasts: never more than at first, also where the clock was set back. */
export function secondsLeft(of) {
  of.endsAt = Math.min(of.endsAt, Date.now() + of.seconds * 1000);
  return Math.max(0, Math.ceil((of.endsAt - Date.now()) / 1000));
}

/**
 * Sends a POST. The same one again while the outcome is open, after a lost reply say, has the same Idempotency-Key.
 * `isReplay` of the result: it was made before, by such a request.
 */
export async function postOnce(path, body) {
  const content = `${path} ${body}`;
  const known = wire.openPosts.find((one) => one.content === content);
  const { key } = known ?? { key: randomKey() };
  wire.openPosts = [...wire.openPosts.filter((one) => one !== known), { content, key }].slice(-MAX_OPEN_POSTS);
  store();
  const usedKey = wire.key;
  const reply = await call('POST', path, { body, headers: { 'Idempotency-Key': key } });
  if (reply === undefined || !isSettled(reply)) return reply;
  if (usedKey === wire.key) wire.openPosts = wire.openPosts.filter((one) => one.key !== key);
  store();
  return { ...reply, isReplay: known !== undefined && reply.headers.get('idempotent-replayed') === 'true' };
}

/** Whether the service itself said what became of a write. Anything else leaves it open: the write may be repeated. */
export function isSettled({ ok, status, value }) {
  const isRefused = status >= 400 && status < 500 && status !== 429 && typeof value?.code === 'string';
  return ok || isRefused;
}

/** For an Idempotency-Key. */
export function randomKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
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
