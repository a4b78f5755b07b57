/**
 * The life of a request, from its parsed head to its reply: target, message, caller, limits, endpoint, body, handler. Each
 * step returns, or throws a refusal; `#refusal` makes a reply of it. Refusals that come by the thousand (401, 429) are
 * returned: a rejected promise costs more than the reply.
 */
import { randomBytes } from 'node:crypto';
import type { Server } from 'node:http';
import { Callers } from '../access/callers.ts';
import type { Limiter } from '../access/limiter.ts';
import type { Clock } from '../clock.ts';
import type { Connection } from '../http/connection.ts';
import { checkMessage, checkTargetAndExpect, originForm } from '../http/edges.ts';
import { ApiError, asApiError, methodNotAllowed, nothingThere, notNow } from '../http/errors.ts';
import { underConditions } from '../http/etag.ts';
import { type About, CLOSE, errorReply, headOf, type Outgoing, type Reply, send } from '../http/reply.ts';
import type { Incoming } from '../http/request.ts';
import { type DrainOptions, HttpServer } from '../http/server.ts';
import { RowTexts } from '../shop/lists.ts';
import { orderJson } from '../shop/orders.ts';
import { petJson } from '../shop/pets.ts';
import type { Shop } from '../shop/shop.ts';
import type { Log } from '../store/engine.ts';
import type { Environment, Store } from '../store/model.ts';
import { Gate } from './gate.ts';
import { corsHeaders, healthEndpoints, preflight } from './pages.ts';
import { type Around, ENDPOINTS, type Endpoint, Exchange, type Route, Router, type Summary } from './routes.ts';

export interface Settings {
  readonly environment: Environment;
  readonly categories: 'open' | 'known';
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
}

/** What the service works on once it is open. */
export interface Parts {
  readonly store: Store;
  readonly limiter: Limiter;
  /** Whether the store answers just now, for `/readyz`. */
  readonly ready: () => boolean;
  /** Rows of the route table beside those of the shop. */
  readonly endpoints?: readonly Endpoint[];
  readonly around?: Around;
}

export class Service {
  readonly server: Server;
  readonly #options: Options;
  readonly #http: HttpServer;
  readonly #gate: Gate;
  readonly #extra: string;
  readonly #keepAlive: string;
  readonly #idPrefix = `${randomBytes(9).toString('base64url')}-`;
  #ids = 0;
  #date = { second: 0, line: '' };
  #router: Router;
  #parts: (Parts & { readonly callers: Callers; readonly shop: Shop }) | undefined;

  constructor(options: Options) {
    this.#options = options;
    const { clock, log, settings } = options;
    this.#gate = new Gate({ clock, log, trustProxy: settings.trustProxy });
    this.#extra = corsHeaders(settings.corsOrigin);
    this.#keepAlive = `Connection: keep-alive\r\nKeep-Alive: timeout=${settings.keepAlive}\r\n\r\n`;
    this.#router = this.#routerFor();
    this.#http = new HttpServer({
      clock,
      keepAliveSeconds: settings.keepAlive,
      maxConnections: settings.maxConnections,
      addressOf: settings.trustProxy === 0 ? (socket) => this.#gate.addressOf(socket) : undefined,
      handle: (req, res, isLate) => this.#handle(req, res, isLate),
      refusal: (connection, error) => this.#rawRefusal(connection, error),
      onRefused: (refused) => log.warn('connections were refused; counts since the start', { ...refused }),
    });
    this.server = this.#http.server;
  }

  /** From now on requests under `/v1` are served. Until then they get a 503. */
  open(parts: Parts): void {
    const { clock, settings } = this.#options;
    const { store } = parts;
    const callers = new Callers(store, settings.environment);
    const { pets, orders } = store.read;
    const texts = { pets: new RowTexts(pets, petJson), orders: new RowTexts(orders, orderJson) };
    const shop = {
      store,
      callers,
      clock,
      categories: settings.categories,
      texts,
    };
    this.#router = this.#routerFor(parts.endpoints);
    this.#parts = { ...parts, callers, shop };
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

  async #handle(req: Incoming, res: Outgoing, isLate: boolean): Promise<void> {
    const exchange = new Exchange(this.#newId(), req, res, this.#options.clock);
    const reply = await this.#serve(exchange, isLate);
    const sent = send(req, res, reply, this.#about(exchange));
    this.#report(exchange.connection, exchange.id, reply.status, exchange);
    if (sent !== undefined) await sent;
  }

  async #serve(exchange: Exchange, isLate: boolean): Promise<Reply> {
    const { req } = exchange;
    try {
      const route = this.#locate(exchange);
      checkMessage(req);
      const needsKey = route?.needsKey ?? isUnder('/v1', exchange.path);
      if (req.method === 'OPTIONS' && route !== undefined) {
        checkTargetAndExpect(req);
        return preflight(route.allow, this.#options.settings.corsOrigin);
      }
      if (!needsKey && this.#parts === undefined && route === undefined) throw notNow('the service is starting');
      if (!needsKey) return await this.#answer(exchange, route);
      if (this.#parts === undefined || isLate) throw notNow(this.#unready() as string);
      const { callers, limiter, around } = this.#parts;
      const decision = await this.#gate.identify(exchange, callers, exchange.endpoint?.limiter ?? limiter);
      if (decision instanceof ApiError) return errorReply(decision);
      const refusal = this.#gate.refusal(decision);
      if (around === undefined) return refusal ?? (await this.#answer(exchange, route));
      const next = async () => refusal ?? this.#answer(exchange, route);
      return await around(exchange, () => next().catch((error) => this.#refusal(exchange, error)));
    } catch (error) {
      return this.#refusal(exchange, error);
    }
  }

  #locate(exchange: Exchange): Route | undefined {
    const target = originForm(exchange.req);
    const cut = target.indexOf('?');
    const path = cut === -1 ? target : target.slice(0, cut);
    const route = this.#router.find(path);
    exchange.path = path;
    if (cut !== -1) exchange.query = target.slice(cut + 1);
    exchange.endpoint = route?.endpoints.get(exchange.req.method);
    return route;
  }

  /** Not async: a GET only reads memory, and a promise would cost 3 % of the CPU of a list. */
  #answer(exchange: Exchange, route: Route | undefined): Reply | Promise<Reply> {
    const { req, endpoint } = exchange;
    checkTargetAndExpect(req);
    if (route === undefined) throw nothingThere();
    if (endpoint === undefined) throw methodNotAllowed(route.allow);
    if (endpoint.method !== 'GET') return this.#write(exchange, endpoint);
    const reply = endpoint.handler(exchange, this.#parts?.shop as Shop);
    return reply instanceof Promise || reply.etag === undefined ? reply : underConditions(req.headers, reply);
  }

  async #write(exchange: Exchange, endpoint: Endpoint): Promise<Reply> {
    exchange.body = await exchange.readBody();
    return endpoint.handler(exchange, this.#parts?.shop as Shop);
  }

  #routerFor(endpoints: readonly Endpoint[] = []): Router {
    return new Router([...healthEndpoints(() => this.#unready()), ...ENDPOINTS, ...endpoints]);
  }

  #unready(): string | undefined {
    if (this.#http.isDraining) return 'the service is shutting down';
    if (this.#parts === undefined) return 'the service is starting';
    return this.#parts.ready() ? undefined : 'the service waits for its store';
  }

  #refusal({ id }: Exchange, error: unknown): Reply {
    const known = asApiError(error);
    if (known !== undefined) return errorReply(known);
    this.#options.log.error('internal error', { requestId: id, error: (error as Error)?.stack ?? error });
    return errorReply(new ApiError('internal_error', 'something went wrong here; the request id names it in the log'));
  }

  /** The whole reply to a request that could not be parsed. */
  #rawRefusal(connection: Connection, error: ApiError): string {
    const id = this.#newId();
    const reply = errorReply(error);
    const limits = this.#gate.limitsWithoutKey(connection.socket);
    const about = { id, limits, extra: this.#extra, date: this.#dateLine(), keepAlive: '' };
    this.#report(connection, id, reply.status);
    return headOf(reply.status, about) + reply.tail(CLOSE);
  }

  #about({ id, req, connection, limits, endpoint }: Exchange): About {
    return {
      id,
      limits: limits ?? this.#gate.limitsWithoutKey(connection.socket, req),
      extra: (endpoint?.headers ?? '') + this.#extra,
      date: this.#dateLine(),
      keepAlive: this.#keepAlive,
    };
  }

  #dateLine(): string {
    const second = Math.floor(this.#options.clock.wall() / 1_000);
    if (second !== this.#date.second) {
      this.#date = { second, line: `Date: ${new Date(1_000 * second).toUTCString()}\r\n` };
    }
    return this.#date.line;
  }

  #newId(): string {
    return this.#idPrefix + this.#ids++;
  }

  #report({ socket }: Connection, requestId: string, status: number, exchange?: Exchange): void {
    const { onReply, clock } = this.#options;
    if (onReply === undefined) return;
    const { req, endpoint, caller, receivedAt } = exchange ?? {};
    onReply({
      route: endpoint?.name ?? 'other',
      method: req?.method,
      target: req?.url,
      address: () => this.#gate.addressOf(socket, req),
      status,
      ms: receivedAt === undefined ? 0 : clock.now() - receivedAt,
      requestId,
      keyId: caller?.key.id,
    });
  }
}

const isUnder = (root: string, path: string): boolean =>
  path.startsWith(root) && (path.length === root.length || path[root.length] === '/');
