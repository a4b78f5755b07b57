/**
 * The map. One request from its first byte to its reply, top to bottom; each step is a function of one other room:
 *
 *   message → target → place → caller → limits → operation → body → handler → reply
 *
 * Whatever is wrong on the way is thrown as an error of its room, and caught and told in one place: `toApiError`.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Addresses } from './access/addresses.ts';
import type { Callers } from './access/callers.ts';
import type { Limiter } from './access/limits.ts';
import type { Clock } from './clock.ts';
import { toApiError } from './faults.ts';
import { Gate } from './gate.ts';
import { corsHeaders, preflightHeaders } from './http/cors.ts';
import { drain } from './http/drain.ts';
import { endWithNewest } from './http/ending.ts';
import { ApiError, methodNotAllowed } from './http/errors.ts';
import type { LimitTexts } from './http/limitheaders.ts';
import { emptyReply, errorReply, jsonReply, type Reply, send, sendRaw } from './http/reply.ts';
import { checkDemands, checkMessage, originForm, readBody } from './http/request.ts';
import { RequestIds } from './http/requestids.ts';
import { createServer } from './http/server.ts';
import { readJson } from './json/reader.ts';
import { createRouter, type Operation } from './routes.ts';
import { ReplyCache } from './shop/cache.ts';
import type { Call, Handler, Shop } from './shop/call.ts';
import type { ApiKey, Store } from './store/model.ts';

/** What must be there before anything but "not yet" can be answered. */
interface Services {
  shop: Shop;
  callers: Callers;
  limiter: Limiter;
}

export interface AppSettings {
  categories: 'open' | 'known';
  corsOrigin?: string;
  /** How many proxies in front are trusted to say where a request came from. */
  trustProxy: number;
}

/** One answered request, for metrics and the access log. */
export interface Answered {
  /** The operation's name, or `other`: never a text that a client chose. */
  route: string;
  /** As sent; undefined where no request could be read. */
  method: string | undefined;
  target: string | undefined;
  address(): string;
  status: number;
  ms: number;
  requestId: string;
  keyId: string | undefined;
}

interface AppOptions {
  settings: AppSettings;
  clock: Clock;
  addresses: Addresses;
  /** What stands outside `/v1`, by path. */
  pages: ReadonlyMap<string, () => Reply>;
  log: Record<'info' | 'error', (message: string, fields?: Record<string, unknown>) => void>;
  onAnswered?: (answered: Answered) => void;
}

/** One request on its way. What is found out about it is kept here, so that every reply can tell it. */
interface Exchange {
  req: IncomingMessage;
  res: ServerResponse;
  id: string;
  began: number;
  operation: Operation | undefined;
  caller: ApiKey | undefined;
  /** The caller's limits, once they were asked about. */
  limits: LimitTexts | undefined;
}

const HEALTHY = jsonReply(200, '{"status":"ok"}');
const READY = jsonReply(200, '{"status":"ready"}');
const NONE: readonly string[] = [];
const PAGE_ALLOW = 'GET, HEAD, OPTIONS';

export class App {
  readonly server: Server;
  readonly #options: AppOptions;
  readonly #router = createRouter();
  readonly #gate: Gate;
  readonly #cors: string[];
  #services: Services | undefined;
  #draining = false;
  readonly #requestIds = new RequestIds();

  constructor(options: AppOptions) {
    this.#options = options;
    const { clock, addresses, log, settings } = options;
    this.#gate = new Gate({
      clock,
      addresses,
      trustProxy: settings.trustProxy,
      onBan: (key, seconds) => log.info('a ban began', { key: key.id, seconds }),
    });
    this.#cors = corsHeaders(settings.corsOrigin);
    this.server = createServer({
      handle: (req, res) => this.#handle(req, res),
      refuse: (socket, error) => this.#refuseRaw(socket, error),
    });
  }

  /** From now on requests are served; until then they are told to come back. */
  open({ store, ...services }: Omit<Services, 'shop'> & { store: Store }): void {
    const { clock, settings } = this.#options;
    const kept = { lists: new ReplyCache(), animals: new ReplyCache() };
    this.#services = { shop: { store, clock, categories: settings.categories, ...kept }, ...services };
  }

  /** No new connections; what is under way is finished, at most `maxMs`; who asks meanwhile is refused. */
  drain(maxMs: number): Promise<void> {
    this.#draining = true;
    return drain(this.server, maxMs);
  }

  #handle(req: IncomingMessage, res: ServerResponse): void {
    const id = this.#requestIds.next();
    const began = this.#options.onAnswered === undefined ? 0 : this.#options.clock.now();
    const exchange: Exchange = { req, res, id, began, operation: undefined, caller: undefined, limits: undefined };
    try {
      const reply = this.#answer(exchange);
      if (reply instanceof Promise) {
        reply.then(
          (later) => this.#reply(exchange, later),
          (error) => this.#reply(exchange, this.#refusal(exchange, error)),
        );
      } else this.#reply(exchange, reply);
    } catch (error) {
      this.#reply(exchange, this.#refusal(exchange, error));
    }
  }

  #answer(exchange: Exchange): Reply | Promise<Reply> {
    const { req } = exchange;
    const target = originForm(req);
    const cut = target.indexOf('?');
    const path = cut === -1 ? target : target.slice(0, cut);
    const place = this.#router.find(path);
    const operation = place?.value.operations.get(req.method as string);
    exchange.operation = operation;
    checkMessage(req);
    if (path !== '/v1' && !path.startsWith('/v1/')) return this.#answerPage(req, path);
    if (req.method === 'OPTIONS' && place !== undefined) return this.#preflight(req, place.value.allow);
    if (this.#services === undefined || this.#draining) throw this.#notNow();
    const refused = this.#gate.admit(exchange, this.#services.callers, this.#services.limiter);
    if (refused !== undefined) return refused;

    checkDemands(req);
    if (place === undefined) throw new ApiError('not_found', 'there is nothing at this path');
    if (operation === undefined) throw methodNotAllowed(place.value.allow);
    const call: Call = {
      caller: exchange.caller as ApiKey,
      param: place.param,
      query: cut === -1 ? '' : target.slice(cut + 1),
      body: null,
      idempotencyKey: undefined,
    };
    if (operation.method === 'GET') return operation.handler(this.#services.shop, call);
    return this.#withBody(exchange, operation.handler, this.#services, call);
  }

  async #withBody({ req, res }: Exchange, handler: Handler, { shop, callers }: Services, call: Call): Promise<Reply> {
    call.idempotencyKey = req.headers['idempotency-key'] as string | undefined;
    const body = await readBody(req, res);
    this.#gate.askAgain(req, callers); // a body may take its time, and its key be revoked meanwhile
    call.body = readJson(body);
    return handler(shop, call);
  }

  /** Everything outside `/v1`: no key, no limits. */
  #answerPage(req: IncomingMessage, path: string): Reply {
    const page = this.#page(path);
    if (req.method === 'OPTIONS' && (page !== undefined || path === '*')) return this.#preflight(req, PAGE_ALLOW);
    checkDemands(req);
    if (page === undefined && this.#services === undefined) throw this.#notNow();
    if (page === undefined) throw new ApiError('not_found', 'there is nothing at this path');
    if (req.method !== 'GET' && req.method !== 'HEAD') throw methodNotAllowed(PAGE_ALLOW);
    return page;
  }

  #page(path: string): Reply | undefined {
    if (path === '/healthz') return HEALTHY;
    if (path !== '/readyz') return this.#options.pages.get(path)?.();
    return this.#services === undefined || this.#draining ? errorReply(this.#notNow()) : READY;
  }

  #preflight(req: IncomingMessage, allow: string): Reply {
    checkDemands(req);
    return emptyReply(204, ['Allow', allow, ...preflightHeaders(this.#options.settings.corsOrigin, allow)]);
  }

  #notNow(): ApiError {
    const why = this.#draining ? 'the service is shutting down' : 'the service is starting';
    return new ApiError('unavailable', why, ['Retry-After', '1']);
  }

  /** The one catch: whatever was thrown on the way, as a reply. */
  #refusal(exchange: Exchange, error: unknown): Reply {
    const known = toApiError(error);
    if (known !== undefined) return errorReply(known);
    this.#options.log.error('internal error', {
      requestId: exchange.id,
      error: (error as Error)?.stack ?? String(error),
    });
    return errorReply(new ApiError('internal_error', 'something went wrong here; the request id names it in the log'));
  }

  #reply(exchange: Exchange, reply: Reply): void {
    const { req, res, id, operation } = exchange;
    const limits = exchange.limits ?? this.#gate.limitsWithoutKey(req, req.socket);
    let extra = reply.status < 400 ? NONE : (operation?.headers ?? NONE);
    if (this.#cors.length > 0) extra = extra.concat(this.#cors);
    if (this.#draining) endWithNewest(res);
    if (!send(req, res, reply, { id, limits, extra })) return;
    this.#tell(req.socket, id, reply.status, exchange);
  }

  /** Answers where node:http found no request to hand over. */
  #refuseRaw(socket: Socket, error: ApiError): void {
    const id = this.#requestIds.next();
    const limits = this.#gate.limitsWithoutKey(undefined, socket);
    sendRaw(socket, errorReply(error), { id, limits, extra: this.#cors });
    this.#tell(socket, id, error.status);
  }

  #tell(socket: Socket, requestId: string, status: number, exchange?: Exchange): void {
    this.#options.onAnswered?.({
      route: exchange?.operation?.name ?? 'other',
      method: exchange?.req.method,
      target: exchange?.req.url,
      address: () => this.#gate.addressOf(exchange?.req, socket),
      status,
      ms: exchange === undefined ? 0 : this.#options.clock.now() - exchange.began,
      requestId,
      keyId: exchange?.caller?.id,
    });
  }
}
