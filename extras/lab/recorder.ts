/** Records each request of a key, from its arrival until its reply has left. */
import type { Clock } from '../../src/clock.ts';
import type { Connection } from '../../src/http/connection.ts';
import type { Reply } from '../../src/http/reply.ts';
import type { Request } from '../../src/http/request.ts';
import type { Exchange } from '../../src/service/routes.ts';
import { type FaultKind, isDropped } from './faults.ts';
import type { KeyState } from './history.ts';
import { digest, nextPage, pageOf, type RequestRecord, shownTarget } from './record.ts';

const PROXY_HEADERS = ['via', 'forwarded', 'x-forwarded-for'] as const;
const CODE = /^\{"code":"(\w+)"/;

/** What is known of a connection. */
interface Watched {
  /** Its newest request, if that has ended, and when it has. */
  newest: RequestRecord | undefined;
  idleSince: number;
  /** Of the request under way: called when its reply has left, or is lost. */
  readonly ends: Set<(isLost?: boolean) => void>;
}

/** How a request is answered: unknown when it comes. */
interface Answer {
  readonly reply: Reply;
  /** The body of the request; undefined if it was not read. */
  readonly body: Uint8Array | undefined;
  readonly fault: FaultKind | undefined;
}

export class Recorder {
  readonly #clock: Clock;
  readonly #connections = new WeakMap<Connection, Watched>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The moment on the key's own clock. */
  now({ aheadMs }: KeyState): number {
    return this.#clock.now() + aheadMs;
  }

  /** A connection is watched from the first request on it. */
  watch(connection: Connection): Watched {
    const known = this.#connections.get(connection);
    if (known !== undefined) return known;
    const watched: Watched = { newest: undefined, idleSince: 0, ends: new Set() };
    this.#connections.set(connection, watched);
    const noteEnd = () => {
      if (watched.newest !== undefined) watched.newest.closedAfterMs ??= this.#clock.now() - watched.idleSince;
    };
    connection.socket.once('end', noteEnd).once('close', () => {
      noteEnd();
      for (const end of watched.ends) end(true);
    });
    // Our side is ended after the last reply. Its response goes on until the client ends the other.
    connection.socket.once('finish', () => {
      for (const end of watched.ends) end();
    });
    return watched;
  }

  /** Adds the request to the history. The function that it returns is called when a reply is about to leave. */
  begin(exchange: Exchange, state: KeyState): (answer: Answer) => void {
    const { request, connection } = exchange;
    const { url: target, method } = request;
    const opens = !this.#connections.has(connection);
    const watched = this.watch(connection);
    const record = this.#newRecord(exchange, state, opens);
    state.history.add(record);
    watched.newest = undefined;
    let body: Uint8Array | undefined;
    let isCut = true; // until a whole reply is about to leave

    const end = (isLost = isCut) => {
      if (!watched.ends.delete(end)) return;
      Object.assign(watched, { idleSince: this.#clock.now(), newest: record });
      record.content = digest(method, target, body ?? '');
      record.isBodyUnknown = body === undefined && !request.isEmpty;
      record.endedAt = this.now(state);
      record.ms = Math.round(10 * (this.#clock.now() - request.receivedAt)) / 10;
      record.isLost = isLost;
      record.isKeptAlive = !isLost && (connection.state === 'open' || isClosedByClient(request));
      if (isLost) record.retryAt = undefined;
    };
    watched.ends.add(end);

    return ({ reply, fault, ...read }) => {
      body = read.body;
      record.fault = fault ?? null;
      record.status = isDropped(fault) ? null : reply.status;
      record.code = reply.status < 400 ? undefined : CODE.exec(`${reply.body}`)?.[1];
      record.retryAt = this.#retryAt(exchange, state, reply);
      // Known when the head leaves: a client may ask for the next page while the body is still under way.
      const next = nextPage(reply.header('Link'));
      if (next !== undefined && record.status !== null) state.history.addLink(next);
      const isTruncated = fault === 'truncate' && reply.body.length > 0 && method !== 'HEAD';
      isCut = isDropped(fault) || isTruncated;
      request.res.on('finish', () => end());
      if (connection.socket.destroyed) end(true);
    };
  }

  #newRecord({ request, id, endpoint, decision, connection }: Exchange, state: KeyState, opens: boolean) {
    const { url: target, method, headers, receivedAt } = request;
    const key = headers['idempotency-key'];
    const page = pageOf(target);
    const waitedMs = this.#clock.now() - receivedAt;
    const at = this.now(state) - waitedMs;
    const record: RequestRecord = {
      at,
      endedAt: Number.POSITIVE_INFINITY,
      unix: this.#clock.wall() - waitedMs,
      ms: 0,
      method,
      target: shownTarget(target),
      operation: endpoint?.name ?? null,
      requestId: id,
      connection: connection.number,
      connectedAt: at - (receivedAt - connection.openedAt),
      opens,
      closedAfterMs: undefined,
      isKeptAlive: false,
      isPipelined: connection.isPipelined,
      isProxied: PROXY_HEADERS.some((name) => headers[name] !== undefined),
      content: '',
      isBodyUnknown: false,
      key: key === undefined ? undefined : digest(key),
      isLinked: page === undefined ? undefined : state.history.hasLink(page),
      fault: null,
      status: null,
      code: undefined,
      isLost: true,
      retryAt: undefined,
      beganBan: decision?.banBegan === true,
    };
    return record;
  }

  /** A 429 gives the end of its window in two headers, each rounded up by itself: a client may heed either. */
  #retryAt({ limitHeaders = [], decision }: Exchange, state: KeyState, reply: Reply): number | undefined {
    const after = reply.header('Retry-After');
    if (after === undefined) return undefined;
    const wall = this.#clock.wall();
    const ms = /^\d+$/.test(after) ? Number(after) * 1_000 : Date.parse(after) - wall;
    const reset = limitHeaders[limitHeaders.indexOf('X-RateLimit-Reset') + 1];
    const isLimited = decision !== undefined && decision.verdict !== 'admitted' && reset !== undefined;
    return this.now(state) + (isLimited ? Math.min(ms, Number(reset) * 1_000 - wall) : ms);
  }
}

/** Whether the client asked for the end of the connection; otherwise the service decided it, as for an `Upgrade`. */
function isClosedByClient({ message: { rawHeaders, httpVersionMinor } }: Request): boolean {
  const sent = rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1].toLowerCase() === 'connection').join();
  return httpVersionMinor === 0 ? !/\bkeep-alive\b/i.test(sent) : /\bclose\b/i.test(sent);
}
