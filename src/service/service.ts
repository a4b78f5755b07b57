/** The service: what becomes of a request, from its parsed head to its reply. */
import { randomUUID } from 'node:crypto';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { Callers } from '../access/callers.ts';
import type { Limiter } from '../access/limiter.ts';
import { type Clock, onceAMinute } from '../clock.ts';
import { NO_BODY, readBody } from '../http/body.ts';
import type { Incoming } from '../http/connection.ts';
import { ApiError, type HeaderList, notNow } from '../http/errors.ts';
import { checkMessage, checkTargetAndExpect, header, readTarget, WITHOUT_BODY } from '../http/message.ts';
import { errorReply, type Reply, SAFE } from '../http/reply.ts';
import { HttpServer } from '../http/server.ts';
import type { HandlerContext } from '../shop/handler.ts';
import type { Log } from '../store/engine.ts';
import type { Environment, Store } from '../store/model.ts';
import { asApiError } from './failures.ts';
import { type Found as FoundByGate, Gate } from './gate.ts';
import { corsHeaders, healthEndpoints, preflight } from './public.ts';
import { type Endpoint, OPERATIONS, type PublicEndpoint, Router, type Summary } from './routes.ts';

export interface Settings {
  readonly environment: Environment;
  readonly corsOrigin?: string;
  /** How many proxies in front are trusted to say where a request came from. */
  readonly trustProxy: number;
  /** Seconds for which a connection may stay unused. */
  readonly keepAlive: number;
  readonly connectionsPerAddress?: number;
}

interface Options {
  readonly settings: Settings;
  readonly clock: Clock;
  readonly log: Log;
  readonly onReply?: (summary: Summary) => void;
}

/** What the service works on once it is open. */
interface Parts {
  readonly store: Store;
  readonly limiter: Limiter;
  /** Whether the store answers just now, for `/readyz`. */
  readonly ready: () => boolean;
  /** Rows of the route table beside those of the shop. */
  readonly endpoints?: readonly PublicEndpoint[];
}

/** What is found out about a request on its way, for its reply and the log. */
interface Found extends FoundByGate {
  /** The id of the request: random, so that nobody counts the requests of others. */
  readonly id: string;
  endpoint?: Endpoint;
}

export class Service {
  readonly server: Server;
  readonly #options: Options;
  readonly #http: HttpServer;
  readonly #gate: Gate;
  /** Headers of every reply. */
  readonly #common: HeaderList;
  #router: Router;
  #parts: (Parts & { readonly callers: Callers; readonly context: HandlerContext }) | undefined;

  constructor(options: Options) {
    this.#options = options;
    const { clock, log, settings } = options;
    const { trustProxy, keepAlive, connectionsPerAddress } = settings;
    this.#gate = new Gate({ clock, log, trustProxy });
    this.#common = [...SAFE, ...corsHeaders(settings.corsOrigin)];
    this.#router = this.#routerWith([]);
    const mayWarn = onceAMinute(() => clock.now());
    this.#http = new HttpServer({
      clock,
      keepAlive,
      connectionsPerAddress,
      addressOf: trustProxy === 0 ? (socket) => this.#gate.addressOf(socket) : undefined,
      handle: (incoming) => this.#handle(incoming),
      refusal: (why, socket, incoming) => this.#refusal(why, socket, incoming),
      onRefused: () => mayWarn() && log.warn(REFUSED, { ...this.#http.refused }),
    });
    this.server = this.#http.server;
  }

  /** From now on requests under `/v1` are served. Until then they get a 503. */
  open(parts: Parts): void {
    const { clock, settings } = this.#options;
    const { store } = parts;
    const callers = new Callers(store, settings.environment);
    this.#router = this.#routerWith(parts.endpoints ?? []);
    this.#parts = { ...parts, callers, context: { store, callers, clock } };
  }

  /** As `HttpServer.drain`. */
  drain(maxMs: number, how?: { leavesQueue?: boolean }): Promise<void> {
    return this.#http.drain(maxMs, how);
  }

  /** For the metrics. */
  get counts() {
    const { open, refused } = this.#http;
    const { addresses, bans } = this.#gate;
    return { connections: open.size, refused, sharedAllowance: addresses.shared, bans };
  }

  /** The way of every request. A step that refuses throws, and the refusal becomes the reply; that of the gate is returned. */
  async #answer({ req, res, body, isLate }: Incoming, found: Found): Promise<Reply> {
    const method = req.method!;
    const { path, query } = readTarget(req);
    const route = this.#router.find(path);
    const endpoint = (found.endpoint = route?.endpoints.get(method));
    const isLimited = path === '/v1' || path.startsWith('/v1/');
    checkMessage(req);
    if (!isLimited) found.limits = [];

    if (method === 'OPTIONS' && route !== undefined) {
      checkTargetAndExpect(req);
      return preflight(route.allow, this.#options.settings.corsOrigin);
    }

    const parts = this.#parts;
    if (isLimited && isLate) throw notNow(STOPPING);
    if (parts === undefined && (isLimited || route === undefined)) throw notNow(STARTING);
    if (isLimited) {
      const passed = await this.#gate.pass(req, found, parts!);
      if (passed instanceof ApiError) return errorReply(passed);
      if (passed.key.readOnly && !READING.includes(method)) throw READ_ONLY;
    }

    checkTargetAndExpect(req);
    if (route === undefined) throw new ApiError('not_found', 'there is nothing at this path');
    if (endpoint === undefined) {
      throw new ApiError('method_not_allowed', `this path takes: ${route.allow}`, ['Allow', route.allow]);
    }
    if ('answer' in endpoint) return endpoint.answer();

    const bytes = WITHOUT_BODY.includes(method) ? NO_BODY : await readBody(req, res, body);
    const param = path.slice(path.lastIndexOf('/') + 1);
    const idempotencyKey = header(req, 'idempotency-key');
    return endpoint.handler({ caller: found.caller!, param, query, idempotencyKey, body: bytes }, parts!.context);
  }

  async #handle(incoming: Incoming): Promise<Reply> {
    const found: Found = { id: randomUUID() };
    const reply = await this.#answer(incoming, found).catch((error) => this.#failure(error, found.id));
    // A store that does not answer is not asked once more.
    found.limits ??= await this.#gate.look(incoming.req, reply.status === 503 ? undefined : this.#parts);
    return this.#complete(reply, found, incoming.req.socket, incoming);
  }

  #failure(error: unknown, requestId: string): Reply {
    const known = asApiError(error);
    if (known !== undefined) return errorReply(known);
    this.#options.log.error('internal error', { requestId, error: (error as Error)?.stack ?? error });
    return errorReply(new ApiError('internal_error', 'something went wrong here; the request id names it in the log'));
  }

  /** The reply to what is not handled. No database is asked for its limits. */
  #refusal(why: ApiError, socket: Socket, incoming?: Incoming): Reply {
    const limits = this.#gate.lookByAddress(socket, incoming?.req);
    return this.#complete(errorReply(why), { id: randomUUID(), limits }, socket, incoming);
  }

  /** The reply with all of its headers, which is reported. `incoming` is missing if no request could be parsed. */
  #complete(reply: Reply, { id, endpoint, caller, limits = [] }: Found, socket: Socket, incoming?: Incoming): Reply {
    const { onReply, clock } = this.#options;
    onReply?.({
      route: endpoint?.name ?? 'other',
      method: incoming?.req.method,
      target: incoming?.req.url,
      address: () => this.#gate.addressOf(socket, incoming?.req),
      status: reply.status,
      ms: incoming === undefined ? 0 : clock.now() - incoming.receivedAt,
      requestId: id,
      keyId: caller?.key.id,
    });
    const own = endpoint?.headers ?? [];
    const headers = ['X-Request-Id', id, ...limits, ...own, ...this.#common, ...reply.headers];
    return { status: reply.status, headers, body: reply.body, isLast: reply.isLast };
  }

  #routerWith(others: readonly PublicEndpoint[]): Router {
    return new Router([...OPERATIONS, ...healthEndpoints(() => this.#unready()), ...others]);
  }

  #unready(): string | undefined {
    if (this.#http.isStopping) return STOPPING;
    if (this.#parts === undefined) return STARTING;
    return this.#parts.ready() ? undefined : 'the service waits for its store';
  }
}

const REFUSED = 'connections were refused; counts since the start';
const STARTING = 'the service is starting';
const STOPPING = 'the service is shutting down';

/** What a key that only reads may ask for. */
const READING = ['GET', 'HEAD'];
const READ_ONLY = new ApiError(
  'read_only_key',
  'this key may only read: it takes GET and HEAD; ask the operator for one that may write',
);
