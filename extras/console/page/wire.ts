/** The one place that sends requests, and the state learned from replies: the key's standing, its windows, waits. */
import { readJson } from './json.ts';

const MAX_OPEN_POSTS = 50;
const STORED = 'petstore-console';
/** In place of the key, which is not shown. */
const KEY_VARIABLE = '$PETSTORE_KEY';

/** What listeners hear of: a part of `wire` that changed; `start`: another key; `resume`: a wait has ended. */
type News = 'key' | 'windows' | 'wait' | 'exchange' | 'start' | 'resume';

const bus = new EventTarget();
const emit = (...all: News[]): void => {
  for (const news of all) bus.dispatchEvent(new Event(news));
};
export const hear = (news: News, listener: () => unknown): void => bus.addEventListener(news, listener);

/** All times are of Date.now(). */
interface Span {
  endsAt: number;
  /** Its whole length. */
  seconds: number;
}
export type Window = Span & { name: string; limit: number; left: number };
export type Wait = Span & { status: number; code: string | undefined; message: string };

interface Known {
  standing: 'none' | 'unknown' | 'accepted' | 'onlyReads' | 'refused';
  /** Why the key is refused. */
  refusal: string;
  windows: Window[];
  wait?: Wait | undefined;
  /** POSTs of unknown outcome, each with its Idempotency-Key. */
  openPosts: { content: string; key: string }[];
  /** The last request, with what came of it. */
  newest?: Exchange | undefined;
}

const NEW: Known = { standing: 'none', refusal: '', windows: [], wait: undefined, openPosts: [], newest: undefined };

interface Wire extends Known {
  key: string;
  readonly isAccepted: boolean;
}

/**
 * Key, windows, wait and open POSTs outlive a reload: a request during a wait could end in a ban, and the same POST with
 * another Idempotency-Key could make two.
 */
export const wire: Wire = {
  key: '',
  ...NEW,
  ...stored(),
  get isAccepted() {
    return this.standing === 'accepted' || this.standing === 'onlyReads';
  },
};
if (wire.key !== '') wire.standing = 'unknown';

function stored(): Partial<Wire> {
  try {
    return JSON.parse(sessionStorage.getItem(STORED) ?? '{}');
  } catch {
    return {}; // storage is switched off: the key lives as long as the page
  }
}

function store(): void {
  const { key, windows, wait, openPosts } = wire;
  try {
    if (key === '') sessionStorage.removeItem(STORED);
    else sessionStorage.setItem(STORED, JSON.stringify({ key, windows, wait, openPosts }));
  } catch {
    // as above
  }
}

/** Sets another key, and forgets all that was learned with the one before. */
export function setKey(key: string): void {
  Object.assign(wire, NEW, { key, standing: key === '' ? 'none' : 'unknown' });
  store();
  emit('key', 'windows', 'wait', 'exchange', 'start');
}

export function endWait(): void {
  wire.wait = undefined;
  store();
  emit('wait', 'resume');
}

interface Request {
  method: string;
  path: string;
  hasKey: boolean;
  sent: Record<string, string>;
  body: string | undefined;
}

export interface Exchange extends Request {
  at: Date;
  ms: number;
  /** 0 without a reply; `failure` says why then. */
  status: number;
  phrase: string;
  failure?: string;
  received: [name: string, value: string][];
  text: string;
  /** The browser refused to send it. */
  isUnsendable: boolean;
}

interface Facts {
  status: number;
  headers: Map<string, string>;
  text: string;
  /** The path of the next page. */
  next: string | undefined;
  /** The error, or empty. */
  message: string;
  /** Of an error of the service. */
  code: string | undefined;
  exchange: Exchange;
  /** What a POST made was there already, by the same request before. */
  isReplay?: boolean;
}
export type Success<T> = Facts & { ok: true; value: T };
export type Reply<T = unknown> = Success<T> | (Facts & { ok: false });

interface CallOptions {
  body?: string | undefined;
  headers?: Record<string, string>;
}

/**
 * Sends a request; `T` is what the service promises to give. Undefined if none may be sent, or if this one was refused
 * by a limit: the banner says until when.
 */
export async function call<T>(method: string, path: string, options: CallOptions = {}): Promise<Reply<T> | undefined> {
  const { body, headers = {} } = options;
  if (wire.wait !== undefined) return undefined;
  const type: Record<string, string> = body === undefined ? {} : { 'Content-Type': 'application/json' };
  const usedKey = wire.key;
  const sent = { ...type, ...headers };
  const exchange = await transfer({ method, path, hasKey: usedKey !== '', sent, body });
  const reply = understand<T>(exchange);
  const isLimited = usedKey === wire.key && learn(reply);
  return isLimited ? undefined : reply;
}

async function transfer(request: Request): Promise<Exchange> {
  const { method, path, hasKey, sent, body } = request;
  const unknown = { status: 0, phrase: '', received: [], text: '', isUnsendable: true };
  const exchange: Exchange = { ...request, ...unknown, at: new Date(), ms: 0 };
  const begun = performance.now();
  try {
    const headers = new Headers({ ...(hasKey && { Authorization: `Bearer ${wire.key}` }), ...sent });
    exchange.isUnsendable = false; // the headers are valid
    const options = { cache: 'no-store', redirect: 'error', credentials: 'omit' } as const;
    const reply = await fetch(path, { method, body, headers, ...options });
    exchange.text = await reply.text();
    exchange.status = reply.status;
    exchange.phrase = reply.statusText;
    exchange.received = [...reply.headers];
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    exchange.failure = `${exchange.isUnsendable ? 'Not sent' : 'No reply from the service'} (${why}).`;
  }
  exchange.ms = performance.now() - begun;
  return exchange;
}

function understand<T>(exchange: Exchange): Reply<T> {
  const { status, failure, received, text } = exchange;
  const headers = new Map(received);
  const next = /<([^>]+)>;\s*rel="next"/.exec(headers.get('link') ?? '')?.[1];
  const facts = { status, headers, text, next, exchange, code: undefined };
  if (failure !== undefined) return { ...facts, ok: false, message: failure };
  let value: unknown;
  try {
    if (text !== '') value = readJson(text);
  } catch {
    return { ...facts, ok: false, message: 'The reply is not JSON.' };
  }
  if (status >= 200 && status < 300) return { ...facts, ok: true, message: '', value: value as T };
  const { code, message = `The service answered ${status}.` } = (value ?? {}) as { code?: string; message?: string };
  return { ...facts, ok: false, code, message };
}

/** Returns whether the reply began a wait. */
function learn({ status, headers, code, message, exchange }: Reply): boolean {
  wire.newest = exchange;
  emit('exchange');
  if (status === 0) return false;
  wire.windows = windowsOf(headers);
  const isAccepted = wire.windows.some(({ name }) => name !== 'address'); // only a valid key has any
  if (wire.key !== '' && status === 401) wire.standing = 'refused';
  else if (code === 'read_only_key') wire.standing = 'onlyReads';
  else if (isAccepted && !wire.isAccepted) wire.standing = 'accepted';
  wire.refusal = wire.standing === 'refused' ? message : '';
  const seconds = Number(headers.get('retry-after'));
  const isLimited = seconds > 0 && (status === 429 || status === 503);
  if (isLimited) wire.wait = { ...endIn(seconds), status, code, message };
  store();
  emit('key', 'windows');
  if (isLimited) emit('wait');
  return isLimited;
}

/** `"minute";r=59;t=60, "day";…` beside `"minute";q=60;w=60, …`: the windows of this reply. */
function windowsOf(headers: Map<string, string>): Window[] {
  const windows = new Map<string, Record<string, number>>();
  for (const header of ['ratelimit-policy', 'ratelimit']) {
    for (const [, name, rest] of (headers.get(header) ?? '').matchAll(/"([^"]+)"((?:;\w+=\d+)*)/g)) {
      const fields = [...rest.matchAll(/;(\w+)=(\d+)/g)].map(([, field, digits]) => [field, Number(digits)]);
      windows.set(name, { ...windows.get(name), ...Object.fromEntries(fields) });
    }
  }
  return [...windows].map(([name, { q, r, t }]) => ({ name, limit: q, left: r, ...endIn(t) }));
}

const endIn = (seconds: number): Span => ({ endsAt: Date.now() + seconds * 1000, seconds });

/** The seconds that a wait or a window still lasts: never more than at first, also where the clock was set back. */
export function secondsLeft(of: Span): number {
  of.endsAt = Math.min(of.endsAt, Date.now() + of.seconds * 1000);
  return Math.max(0, Math.ceil((of.endsAt - Date.now()) / 1000));
}

/** Sends a POST. The same one again while the outcome is open, after a lost reply say, has the same Idempotency-Key. */
export async function postOnce<T>(path: string, body: string): Promise<Reply<T> | undefined> {
  const content = `${path} ${body}`;
  const known = wire.openPosts.find((one) => one.content === content);
  const { key } = known ?? { key: randomKey() };
  wire.openPosts = [...wire.openPosts.filter((one) => one !== known), { content, key }].slice(-MAX_OPEN_POSTS);
  store();
  const usedKey = wire.key;
  const reply = await call<T>('POST', path, { body, headers: { 'Idempotency-Key': key } });
  if (reply === undefined || !isSettled(reply)) return reply;
  if (usedKey === wire.key) wire.openPosts = wire.openPosts.filter((one) => one.key !== key);
  store();
  return { ...reply, isReplay: known !== undefined && reply.headers.get('idempotent-replayed') === 'true' };
}

/** Whether the service itself said what became of a write. Anything else leaves it open: the write may be repeated. */
function isSettled({ ok, status, code }: Reply): boolean {
  const isRefused = status >= 400 && status < 500 && status !== 429 && code !== undefined;
  return ok || isRefused;
}

/** For an Idempotency-Key. */
function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** The headers of a request as shown. */
export function requestHeaders({ hasKey, sent }: Request): Record<string, string> {
  return { ...(hasKey && { Authorization: `Bearer ${KEY_VARIABLE}` }), ...sent };
}

/** The request as a line for the shell. */
export function curlLine(exchange: Exchange): string {
  const { method, path, body } = exchange;
  const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
  const parts = ['curl -i', ...(method === 'GET' ? [] : [`-X ${method}`]), quoted(location.origin + path)];
  for (const [name, value] of Object.entries(requestHeaders(exchange))) {
    const line = `${name}: ${value}`;
    parts.push(`-H ${value.includes(KEY_VARIABLE) ? `"${line}"` : quoted(line)}`);
  }
  if (body !== undefined) parts.push(`--data-raw ${quoted(body)}`);
  return parts.join(' ');
}
