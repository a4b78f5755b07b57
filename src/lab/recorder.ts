/** Watches each request of a key from its arrival until its reply has left, and adds it to the key's history. */
import type { Clock } from '../clock.ts';
import type { Exchange } from '../exchange.ts';
import type { Connection } from '../http/connection.ts';
import { idempotencyKeyIn } from '../http/idempotency-key.ts';
import type { Reply } from '../http/reply.ts';
import { isEmpty } from '../http/request.ts';
import type { ApiKey, Reading } from '../store/model.ts';
import type { FaultKind } from './faults.ts';
import type { KeyState } from './histories.ts';
import { mark, nextPage, pageOf, type RequestRecord, shownTarget } from './request-record.ts';

const NOTHING_SENT: readonly (string | null)[] = ['drop_before', 'drop_after', 'hang'];
const WAITS: readonly (string | undefined)[] = ['delay', 'hang'];
const PROXIES = ['via', 'forwarded', 'x-forwarded-for'] as const;
const CODE = /^\{"code":"(\w+)"/;

type Line = RequestRecord['line'] & { idleSince: number };

interface UnderWay {
  one: RequestRecord;
  state: KeyState;
  beganMs: number;
  /** Aborted when the request has ended. Made where somebody waits for it: it takes longer than all else here. */
  ended?: AbortController;
}

export class Recorder {
  readonly #clock: Clock;
  readonly #read: Reading;
  readonly #underWay = new WeakMap<Exchange, UnderWay>();
  /** The requests under way on each connection, and the moment it was last in use. */
  readonly #connections = new WeakMap<Connection, { underWay: Set<Exchange>; line: Line }>();

  constructor(clock: Clock, read: Reading) {
    this.#clock = clock;
    this.#read = read;
  }

  /** True for the first request on a connection, which is watched from then on. */
  sees(connection: Connection): boolean {
    if (this.#connections.has(connection)) return false;
    const underWay = new Set<Exchange>();
    const line: Line = { idleSince: this.#clock.now() };
    this.#connections.set(connection, { underWay, line });
    const over = () => (line.endedAfterMs ??= this.#clock.now() - line.idleSince);
    connection.socket.once('close', () => {
      over();
      for (const exchange of underWay) this.#end(exchange, true);
    });
    // A client that has ended its side may still read, but does not wait as long as the lab lets it.
    connection.socket.once('end', () => {
      over();
      for (const exchange of underWay) if (WAITS.includes(exchange.fault?.kind)) this.#end(exchange, true);
    });
    return true;
  }

  begin(exchange: Exchange, state: KeyState): void {
    const { req, id, endpoint, beginsBan } = exchange;
    const { cameAt } = exchange.res;
    const { url: target = '', method = '', headers } = req;
    const key = headers['idempotency-key'];
    const page = pageOf(target);
    const opens = this.sees(req.from);
    const { line, underWay } = this.#connections.get(req.from)!;
    if (cameAt !== undefined) line.isPipelined = true;
    const now = this.#clock.now();
    const beganMs = cameAt ?? now;
    const at = this.now(exchange.caller as ApiKey) - (now - beganMs);
    const one: RequestRecord = {
      at,
      endedAt: Number.POSITIVE_INFINITY,
      unix: this.#clock.wall() - (now - beganMs),
      method,
      target: shownTarget(target),
      operation: endpoint?.name ?? null,
      requestId: id,
      connection: req.from.number,
      connectedAt: at - (beganMs - req.from.openedAt),
      opens,
      line,
      key: key === undefined ? undefined : mark(idempotencyKeyIn(key) ?? key),
      isLinked: page === undefined ? undefined : state.history.links.has(page),
      isProxied: PROXIES.some((name) => headers[name] !== undefined),
      bans: beginsBan,
      // Not known yet:
      same: '',
      isUnread: false,
      ms: 0,
      fault: null,
      status: null,
      code: undefined,
      isLost: true,
      isKept: false,
      waitUntil: undefined,
      petsVersion: 0,
      judged: undefined,
    };
    state.history.begin(one);
    this.#underWay.set(exchange, { one, state, beganMs });
    underWay.add(exchange);
  }

  /** Aborted when nobody waits for the reply any more. */
  signalOf(exchange: Exchange): AbortSignal | undefined {
    const underWay = this.#underWay.get(exchange);
    return underWay && (underWay.ended ??= new AbortController()).signal;
  }

  /** Called when the reply, or a fault in its place, is about to leave. */
  answers(exchange: Exchange, reply: Reply): void {
    const underWay = this.#underWay.get(exchange);
    if (underWay === undefined) return;
    const { one } = underWay;
    const { req, res } = exchange;
    const fault = exchange.fault?.kind ?? null;
    one.status = NOTHING_SENT.includes(fault) ? null : reply.status;
    one.code = reply.status < 400 ? undefined : CODE.exec(reply.body)?.[1];
    one.petsVersion = this.#read.pets.version;
    one.waitUntil = this.#waitUntil(exchange, reply);
    const page = nextPage(headerOf(reply, 'Link'));
    // Known from the head on: a client may ask for the next page while the body is still under way.
    if (page !== undefined && one.status !== null) underWay.state.history.links.add(page);
    const end = (isLost: boolean) => this.#end(exchange, isLost);
    const isCut = fault === 'truncate' && reply.body !== '' && req.method !== 'HEAD';
    if (isCut || NOTHING_SENT.includes(fault)) req.from.socket.once('finish', () => end(true));
    else res.once('finish', () => end(false));
    if (res.closed || req.destroyed) end(true);
    else for (const either of [req, res]) either.once('close', () => end(true)); // a waiting reply does not close
  }

  #end(exchange: Exchange, isLost: boolean): void {
    const underWay = this.#underWay.get(exchange);
    if (underWay === undefined) return;
    this.#underWay.delete(exchange);
    const { one, state, beganMs } = underWay;
    const { req, res, body } = exchange;
    const { underWay: others, line } = this.#connections.get(req.from)!;
    others.delete(exchange);
    line.idleSince = this.#clock.now();
    one.same = mark(one.method, req.url as string, body ?? '');
    one.isUnread = body === undefined && !isEmpty(req);
    one.fault = (exchange.fault?.kind ?? null) as FaultKind | null;
    one.endedAt = this.now(exchange.caller as ApiKey);
    one.ms = Math.round(10 * (this.#clock.now() - beganMs)) / 10;
    one.isLost = isLost;
    one.isKept = !isLost && (endsByItself(req) || (res.shouldKeepAlive && !req.from.isEnding));
    if (isLost) one.waitUntil = undefined;
    if (isLost && res.socket === null) one.status = null; // its turn on the connection never came
    state.history.end(one);
    underWay.ended?.abort();
  }

  /** A 429 gives the end of its window in two headers, each rounded up by itself: a client may keep to either. */
  #waitUntil(exchange: Exchange, reply: Reply): number | undefined {
    const told = headerOf(reply, 'Retry-After');
    if (told === undefined) return undefined;
    const wall = this.#clock.wall();
    const ms = /^\d+$/.test(told) ? Number(told) * 1_000 : Date.parse(told) - wall;
    const { resetsAt = Number.POSITIVE_INFINITY } = exchange;
    return this.now(exchange.caller as ApiKey) + Math.min(ms, resetsAt * 1_000 - wall);
  }

  /** The moment on the key's own clock. */
  now(key: Pick<ApiKey, 'id'>): number {
    return this.#clock.now() + clockAdvanceOf(this.#read, key);
  }
}

/** True if the client itself ends the connection; otherwise the service does, as for an `Upgrade`. */
function endsByItself({ rawHeaders, httpVersionMinor }: Exchange['req']): boolean {
  const told = rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1].toLowerCase() === 'connection').join();
  return httpVersionMinor === 0 ? !/\bkeep-alive\b/i.test(told) : /\bclose\b/i.test(told);
}

/** The advance of a key's clock now. */
export function clockAdvanceOf(read: Reading, { id }: Pick<ApiKey, 'id'>): number {
  return read.keys.get(id)?.clockAdvanceMs ?? 0;
}

function headerOf({ headers }: Reply, name: string): string | undefined {
  const at = headers.indexOf(name);
  return at === -1 ? undefined : headers[at + 1];
}
