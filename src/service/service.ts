/**
 * The life of a request, from its parsed head to its reply: target, message, caller, limits, endpoint, body, handler. A step
 * that refuses throws, and `#refusal` makes a reply of it.
 */
import { randomBytes } from 'node:crypto';
import type { Server } from 'node:http';
import { type Caller, Callers } from '../access/callers.ts';
import type { Limiter } from '../access/limiter.ts';
import type { Clock } from '../clock.ts';
import { NO_BODY } from '../http/body.ts';
import type { Connection } from '../http/connection.ts';
import { checkMessage, checkTargetAndExpect, readTarget } from '../http/edges.ts';
import { ApiError, type HeaderList, methodNotAllowed, nothingThere, notNow } from '../http/errors.ts';
import { errorReply, type Reply, rawReply, send } from '../http/reply.ts';
import type { Request } from '../http/request.ts';
import { type DrainOptions, HttpServer } from '../http/server.ts';
import type { HandlerContext } from '../shop/handler.ts';
import type { Log } from '../store/engine.ts';
import type { Environment, Store } from '../store/model.ts';
import { asApiError } from './failures.ts';
import { Gate } from './gate.ts';
import { after, type Later } from './later.ts';
import { corsHeaders, healthEndpoints, preflight } from './public.ts';
import {
  ENDPOINTS,
  type Endpoint,
  Exchange,
  isOperation,
  isPublic,
  type Operation,
  type PublicEndpoint,
  type Route,
  Router,
  type Summary,
} from './routes.ts';

export interface Settings {
  readonly environment: Environment;
  readonly corsOrigin?: string;
  /** How many proxies in front are trusted to say where a request came from. */
  readonly trustProxy: number;
  /** Seconds for which a connection may stay unused. */
  readonly keepAlive: number;
  readonly maxConnections?: number;
}

interface Options {
  readonly settings: Settings;
  readonly clock: Clock;
  readonly log: Log;
  readonly onReply?: (summary: Summary) => void;
  /** True: requests that come before the service is open wait for that. Else those under `/v1` get a 503. */
  readonly waitsToOpen?: boolean;
}

/** What the service works on once it is open. */
interface Parts {
  readonly store: Store;
  readonly limiter: Limiter;
  /** Whether the store answers just now, for `/readyz`. */
  readonly ready: () => boolean;
  /** Rows of the route table beside those of the shop. */
  readonly endpoints?: readonly Endpoint[];
}

export class Service {
  readonly server: Server;
  readonly #options: Options;
  readonly #http: HttpServer;
  readonly #gate: Gate;
  readonly #corsHeaders: HeaderList;
  readonly #keepAlive: HeaderList;
  /** For speed: the id of a request is this random text and a number. */
  readonly #idPrefix = `${randomBytes(9).toString('base64url')}-`;
  #ids = 0;
  readonly #early: Request[] = [];
  #public = new Router<PublicEndpoint>([]);
  #operations = new Router<Operation>([]);
  #parts: (Parts & { readonly callers: Callers; readonly context: HandlerContext }) | undefined;

  constructor(options: Options) {
    this.#options = options;
    const { clock, log, settings } = options;
    this.#gate = new Gate({ clock, log, trustProxy: settings.trustProxy });
    this.#corsHeaders = corsHeaders(settings.corsOrigin);
    this.#keepAlive = ['Connection', 'keep-alive', 'Keep-Alive', `timeout=${settings.keepAlive}`];
    this.#route([]);
    this.#http = new HttpServer({
      clock,
      keepAliveSeconds: settings.keepAlive,
      maxConnections: settings.maxConnections,
      addressOf: settings.trustProxy === 0 ? (socket) => this.#gate.addressOf(socket) : undefined,
      handle: (request) => this.#begin(request),
      refusal: (connection, error) => this.#rawRefusal(connection, error),
      onRefused: (refused) => log.warn('connections were refused; counts since the start', { ...refused }),
    });
    this.server = this.#http.server;
  }

  /** From now on requests under `/v1` are served. */
  open(parts: Parts): void {
    const { clock, settings } = this.#options;
    const { store } = parts;
    const callers = new Callers(store, settings.environment);
    const context = { store, callers, clock };
    this.#route(parts.endpoints ?? []);
    this.#parts = { ...parts, callers, context };
    for (const request of this.#early.splice(0)) this.#handle(request);
  }

  #route(endpoints: readonly Endpoint[]): void {
    this.#public = new Router([...healthEndpoints(() => this.#unready()), ...endpoints.filter(isPublic)]);
    this.#operations = new Router([...ENDPOINTS, ...endpoints.filter(isOperation)]);
  }

  /** As `HttpServer.drain`. */
  drain(maxMs: number, how?: DrainOptions): Promise<void> {
    return this.#http.drain(maxMs, how);
  }

  /** For the metrics. */
  get counts() {
    const { open, refused } = this.#http;
    const { addresses, bans } = this.#gate;
    return { connections: open.size, refused, sharedAllowance: addresses.shared, bans };
  }

  #begin(request: Request): void {
    if (this.#parts === undefined && this.#options.waitsToOpen) this.#early.push(request);
    else this.#handle(request);
  }

  #handle(request: Request): void {
    const exchange = new Exchange(this.#newId(), request);
    void after(this.#serve(exchange), (reply) =>
      after(exchange.limitHeaders ?? this.#lookAtLimits(request), (limitHeaders) => {
        send(request, reply, this.#about(exchange.id, limitHeaders, exchange.endpoint), this.#keepAlive);
        this.#report(exchange.connection, exchange.id, reply.status, exchange);
      }),
    );
  }

  #serve(exchange: Exchange): Later<Reply> {
    const { request } = exchange;
    const refuse = (error: unknown) => this.#refusal(exchange, error);
    try {
      const { path, query } = readTarget(request);
      const operation = this.#operations.find(path);
      const shown = operation === undefined ? this.#public.find(path) : undefined;
      exchange.path = path;
      exchange.query = query;
      exchange.endpoint = (operation ?? shown)?.endpoints.get(request.method);
      checkMessage(request);
      const isLimited = operation !== undefined || isUnder('/v1', path);
      if (!isLimited) exchange.limitHeaders = [];
      const known = operation ?? shown;
      if (request.method === 'OPTIONS' && known !== undefined) {
        checkTargetAndExpect(request);
        return preflight(known.allow, this.#options.settings.corsOrigin);
      }
      const reply = isLimited ? this.#operate(exchange, operation) : this.#show(exchange, shown);
      return reply instanceof Promise ? reply.catch(refuse) : reply;
    } catch (error) {
      return refuse(error);
    }
  }

  #show({ request }: Exchange, route: Route<PublicEndpoint> | undefined): Reply {
    if (route === undefined && this.#parts === undefined) throw notNow(STARTING);
    return endpointAt(route, request).answer();
  }

  #operate(exchange: Exchange, route: Route<Operation> | undefined): Later<Reply> {
    const { request } = exchange;
    const parts = this.#parts;
    if (request.isLate) throw notNow(STOPPING);
    if (parts === undefined) throw notNow(STARTING);
    const { callers, context, limiter } = parts;
    return after(this.#gate.identify(exchange, callers, limiter), ({ caller, refusal }) => {
      if (refusal !== undefined) return errorReply(refusal);
      if (caller.key.readOnly && !READING.includes(request.method)) throw readOnlyKey();
      return answer(exchange, caller, route, context);
    });
  }

  #unready(): string | undefined {
    if (this.#http.isDraining) return STOPPING;
    if (this.#parts === undefined) return STARTING;
    return this.#parts.ready() ? undefined : 'the service waits for its store';
  }

  #refusal({ id }: Exchange, error: unknown): Reply {
    const known = asApiError(error);
    if (known !== undefined) return errorReply(known);
    this.#options.log.error('internal error', { requestId: id, error: (error as Error)?.stack ?? error });
    return errorReply(new ApiError('internal_error', 'something went wrong here; the request id names it in the log'));
  }

  /** The whole reply to what is no request. */
  #rawRefusal(connection: Connection, error: ApiError): string {
    const id = this.#newId();
    const reply = errorReply(error);
    this.#report(connection, id, reply.status);
    return rawReply(reply, this.#about(id, this.#gate.lookByAddress(connection.socket)));
  }

  /** The limit headers of a refusal that came before the limits were asked. */
  #lookAtLimits(request: Request): Later<HeaderList> {
    if (this.#parts === undefined) return this.#gate.lookByAddress(request.connection.socket, request);
    return this.#gate.look(request, this.#parts.callers, this.#parts.limiter);
  }

  /** The headers that depend on the request. */
  #about(id: string, limitHeaders: HeaderList, endpoint?: Endpoint): HeaderList {
    return ['X-Request-Id', id, ...limitHeaders, ...(endpoint?.headers ?? []), ...this.#corsHeaders];
  }

  #newId(): string {
    return this.#idPrefix + this.#ids++;
  }

  #report({ socket }: Connection, requestId: string, status: number, exchange?: Exchange): void {
    const { onReply, clock } = this.#options;
    if (onReply === undefined) return;
    const { request, endpoint, caller } = exchange ?? {};
    onReply({
      route: endpoint?.name ?? 'other',
      method: request?.method,
      target: request?.url,
      address: () => this.#gate.addressOf(socket, request),
      status,
      ms: request === undefined ? 0 : clock.now() - request.receivedAt,
      requestId,
      keyId: caller?.key.id,
    });
  }
}

const STARTING = 'the service is starting';
const STOPPING = 'the service is shutting down';

/** What a key that only reads may ask for. */
const READING = ['GET', 'HEAD'];
const readOnlyKey = () =>
  new ApiError(
    'read_only_key',
    'this key may only read: it takes GET and HEAD; ask the operator for one that may write',
  );

/** The endpoint that the request asks for. */
function endpointAt<E extends Endpoint>(route: Route<E> | undefined, request: Request): E {
  checkTargetAndExpect(request);
  if (route === undefined) throw nothingThere();
  const endpoint = route.endpoints.get(request.method);
  if (endpoint === undefined) throw methodNotAllowed(route.allow);
  return endpoint;
}

/** Reads the body, and has the handler answer. */
function answer(
  exchange: Exchange,
  caller: Caller,
  route: Route<Operation> | undefined,
  context: HandlerContext,
): Later<Reply> {
  const { request, path, query } = exchange;
  const { method, handler } = endpointAt(route, request);
  const param = path.slice(path.lastIndexOf('/') + 1);
  const call = { caller, param, query, idempotencyKey: request.headers['idempotency-key'], body: NO_BODY };
  if (method === 'GET') return handler(call, context);
  return exchange.readBody().then((body) => handler({ ...call, body }, context));
}

const isUnder = (root: string, path: string): boolean =>
  path.startsWith(root) && (path.length === root.length || path[root.length] === '/');
