/**
 * The map: one request from its first byte to its reply, top to bottom. Each step is a function of another file:
 *
 *   target → place → message → caller → limits → endpoint → body → handler → reply
 *
 * A step that refuses the request throws an error, or returns the refusal as a reply. Wherever an error is caught,
 * `#refusal` makes a reply of it.
 */
import type { Server } from 'node:http';
import type { Callers } from './access/callers.ts';
import { clientAddress } from './access/client-address.ts';
import type { Limiter } from './access/limits.ts';
import { after } from './after.ts';
import { toApiError } from './api-errors.ts';
import type { Clock } from './clock.ts';
import { newest, requestIds } from './digits.ts';
import { type Answered, beginExchange, type Exchange, factsOf, type LabHook } from './exchange.ts';
import { Gate, type GateOptions } from './gate.ts';
import type { Connection, Outgoing } from './http/connection.ts';
import type { ConnectionOptions, Connections } from './http/connections.ts';
import { corsHeaders, preflight } from './http/cors.ts';
import { ApiError, methodNotAllowed, nothingThere } from './http/errors.ts';
import { type HostCheck, hostCheck } from './http/hosts.ts';
import type { Incoming } from './http/messages.ts';
import { type About, endingFor, errorReply, headersOf, type Reply, send, sendRaw } from './http/reply.ts';
import { checkMessage, checkTargetAndExpect, originForm, readBody } from './http/request.ts';
import { createServer } from './http/server.ts';
import { readJson } from './json/reader.ts';
import { answerPage, notNow, type Pages, type Unready } from './pages.ts';
import { type Endpoint, isUnder, placeAt } from './routes.ts';
import { ReplyCache } from './shop/cache.ts';
import { asWrite, type Call, type ReadCall, type Shop } from './shop/call.ts';
import type { ApiKey, Store } from './store/model.ts';

/** The parts of the service once it is open. Until then, requests under `/v1` get a 503 with `Retry-After`. */
interface Services {
  store: Store;
  shop: Shop;
  callers: Callers;
  limiter: Limiter;
  /** Whether requests can be served just now. */
  ready(): boolean;
  /** The lab, for trying clients; without it there is no `/lab`. */
  lab?: LabHook;
}

type Bounds = Partial<Pick<ConnectionOptions, 'maxConnections'>>;
export interface AppSettings extends Bounds, Pick<GateOptions, 'trustProxy'> {
  hosts?: readonly string[]; // names accepted in `Host`, besides those of `http/hosts.ts`; undefined: every name
  categories: 'open' | 'known';
  corsOrigin?: string;
  keepAlive: number; // seconds for which a connection may stay unused
}

interface AppOptions {
  settings: AppSettings;
  clock: Clock;
  /** The pages outside `/v1`, by path. */
  pages: Pages;
  log: Record<'info' | 'warn' | 'error', (message: string, fields?: Record<string, unknown>) => void>;
  onAnswered?: (answered: Answered) => void;
}

const NONE: readonly string[] = [];

export class App {
  readonly server: Server;
  readonly connections: Connections;
  readonly gate: Gate;
  readonly #options: AppOptions;
  readonly #cors: string[];
  readonly #ending: string;
  readonly #checkHost: HostCheck;
  readonly #date = newest((second) => `Date: ${new Date(second * 1000).toUTCString()}\r\n`);
  readonly #requestId = requestIds();
  #services: Services | undefined;
  #draining = false;

  constructor(options: AppOptions) {
    this.#options = options;
    const { clock, log, settings } = options;
    const onBan = (key: ApiKey, seconds: number) => log.info('a ban began', { key: key.id, seconds });
    this.gate = new Gate({ clock, trustProxy: settings.trustProxy, onBan, warn: log.warn });
    this.#cors = corsHeaders(settings.corsOrigin);
    this.#ending = endingFor(settings.keepAlive);
    this.#checkHost = hostCheck(settings.hosts);
    this.connections = createServer({
      handle: (req, res) => this.#handle(req, res),
      refuse: (connection, error) => this.#refuseRaw(connection, error),
      now: () => clock.now(),
      keepAliveSeconds: settings.keepAlive,
      ...settings,
      addressOf: settings.trustProxy === 0 ? (address) => clientAddress(address, undefined, 0) : undefined,
      onRefused: (refused) => log.warn('connections were refused; counts since the start', { ...refused }),
    });
    this.server = this.connections.server;
  }

  /** From now on requests under `/v1` are served. */
  open({ store, ...services }: Omit<Services, 'shop'>): void {
    const { clock, settings } = this.#options;
    const caches = { lists: new ReplyCache(), animals: new ReplyCache() };
    const { categories } = settings;
    const hasLab = services.lab !== undefined;
    const shop: Shop = { store, clock, categories, hasLab, ...caches, underWay: new Set() };
    this.#services = { store, shop, ...services };
  }

  /** Accepts no new connections, finishes requests under way within `maxMs`, and refuses those that come meanwhile. */
  drain(maxMs: number): Promise<void> {
    this.#draining = true;
    return this.connections.drain(maxMs, (connection) => this.#refuseRaw(connection, notNow('is shutting down')));
  }

  #handle(req: Incoming, res: Outgoing): void {
    const began = this.#options.onAnswered === undefined ? 0 : this.#options.clock.now();
    const exchange = beginExchange(req, res, this.#requestId(), began);
    const refuse = (error: unknown) => this.#reply(exchange, this.#refusal(exchange.id, error));
    try {
      const replied = after(this.#answer(exchange), (reply) => this.#reply(exchange, reply));
      if (replied instanceof Promise) replied.catch(refuse);
    } catch (error) {
      refuse(error);
    }
  }

  #answer(exchange: Exchange): Reply | Promise<Reply> {
    const { req } = exchange;
    const target = originForm(req);
    const cut = target.indexOf('?');
    const path = cut === -1 ? target : target.slice(0, cut);
    if (cut !== -1) exchange.query = target.slice(cut + 1);
    const place = placeAt(path);
    // Set before the checks below, so that their refusals too are logged and counted under this endpoint.
    exchange.endpoint = place?.endpoints.get(req.method as string);
    checkMessage(req);
    this.#checkHost(req.headers.host);
    const { pages, settings } = this.#options;
    const calledLab = isUnder('/lab', path) ? this.#services?.lab : undefined;
    if (calledLab === undefined && !isUnder('/v1', path)) {
      const refused = req.method === 'GET' && pages.has(path) ? this.gate.countLargePage(exchange) : undefined;
      return refused ?? answerPage(req, path, { pages, corsOrigin: settings.corsOrigin, unready: this.#unready() });
    }
    const allow = calledLab === undefined ? place?.allow : calledLab.allow(path);
    if (req.method === 'OPTIONS' && allow !== undefined) return preflight(req, allow, settings.corsOrigin);
    const cameWhileDraining = this.#draining && !exchange.res.isUnderWay; // one that waited by then is under way
    if (this.#services === undefined || cameWhileDraining) throw notNow(this.#unready() as Unready);
    const { callers, limiter } = this.#services;
    const admitted = this.gate.admit(exchange, callers, calledLab?.limiter ?? limiter);
    return after(admitted, (refused) => this.#afterGate(exchange, refused, path, allow, calledLab));
  }

  /** `refused`: the refusal by the gate; undefined: it admitted the request. `calledLab`: only under `/lab`. */
  #afterGate(exchange: Exchange, refused: Reply | undefined, path: string, allow?: string, calledLab?: LabHook) {
    const { req, res } = exchange;
    const isTrusted = refused === undefined;
    if (req.from.isTrusted !== isTrusted) this.connections.trust(req.from, isTrusted);
    const lab = calledLab === undefined && exchange.caller !== undefined ? this.#services?.lab : undefined;
    lab?.arrived(exchange);
    if (refused !== undefined) return lab === undefined ? refused : lab.refused(exchange).then(() => refused);
    checkTargetAndExpect(req);
    if (allow === undefined) throw nothingThere();
    if (calledLab === undefined) return this.#serve(exchange, path, allow);
    return calledLab.answer(exchange, path, () => readBody(req, res).then(readJson));
  }

  #serve(exchange: Exchange, path: string, allow: string): Reply | Promise<Reply> {
    const { req, res, query, endpoint, caller } = exchange as Exchange & { caller: ApiKey };
    if (endpoint === undefined) throw methodNotAllowed(allow);
    const param = path.slice(path.lastIndexOf('/') + 1);
    const reading: ReadCall = { caller, param, query, conditions: req.headers };
    if (endpoint.method === 'GET') return this.#callHandler(exchange, endpoint, reading as Call);
    return readBody(req, res).then((body) => {
      const { callers, lab, store } = this.#services as Services;
      if (lab !== undefined) exchange.body = body; // without a lab, the body is freed before the write is durable
      const { authorization, 'idempotency-key': idempotencyKey } = req.headers;
      const write = this.gate.writer({ authorization, caller: caller.id }, callers, store);
      return this.#callHandler(exchange, endpoint, asWrite(reading, { idempotencyKey, body, write }));
    });
  }

  #callHandler(exchange: Exchange, { handler }: Endpoint, call: Call): Reply | Promise<Reply> {
    const { shop, lab } = this.#services as Services;
    if (lab === undefined) return handler(shop, call);
    const operate = async () => handler(shop, call);
    return lab.around(exchange, () => operate().catch((error) => this.#refusal(exchange.id, error)));
  }

  #unready(): Unready | undefined {
    if (this.#draining) return 'is shutting down';
    if (this.#services === undefined) return 'is starting';
    return this.#services.ready() ? undefined : 'waits for its store';
  }

  /** The reply to a request that an error has ended. An error that is not for clients is a bug: it is logged. */
  #refusal(requestId: string, error: unknown): Reply {
    const known = toApiError(error);
    if (known !== undefined) return errorReply(known);
    this.#options.log.error('internal error', { requestId, error: (error as Error)?.stack ?? error });
    return errorReply(new ApiError('internal_error', 'something went wrong here; the request id names it in the log'));
  }

  #reply(exchange: Exchange, reply: Reply): void {
    const { req, res, id, endpoint, caller, fault } = exchange;
    req.replyDecided(res);
    const lab = this.#services?.lab;
    const limits = exchange.limits ?? this.gate.limitsWithoutKey(req, req.socket);
    let extra = reply.status < 400 || endpoint === undefined ? NONE : endpoint.headers;
    if (this.#cors.length > 0) extra = extra.concat(this.#cors);
    if (lab !== undefined && caller !== undefined) extra = extra.concat(lab.answers(exchange, reply));
    // The reply to the newest request ends the connection: if an earlier one did, the later replies would be lost.
    if (this.#draining && req.from.pending.at(-1) === res) req.from.endWith(res);
    const about = this.#about(id, limits, extra);
    if (fault?.send !== undefined) fault.send(exchange, reply, headersOf(reply, about));
    else if (!send(req, res, reply, about)) return;
    this.#reportAnswered(req.from, id, reply.status, exchange);
  }

  /** Answers in place of a handler if a request cannot be parsed, or is not whole at its time-out or when we stop. */
  #refuseRaw(connection: Connection, error: ApiError): void {
    const exchange = connection.pending[0]?.exchange as Exchange | undefined;
    const id = exchange?.id ?? this.#requestId();
    const limits = exchange?.limits ?? this.gate.limitsWithoutKey(exchange?.req, connection.socket);
    const reply = errorReply(error);
    sendRaw(connection, reply, this.#about(id, limits, [...(exchange?.endpoint?.headers ?? NONE), ...this.#cors]));
    this.#reportAnswered(connection, id, reply.status, exchange);
  }

  #about(id: string, limits: About['limits'], extra: readonly string[]): About {
    return { id, limits, date: this.#date(Math.floor(this.#options.clock.wall() / 1000)), ending: this.#ending, extra };
  }

  #reportAnswered(connection: Connection, requestId: string, status: number, exchange?: Exchange): void {
    const { onAnswered, clock } = this.#options;
    if (onAnswered === undefined) return;
    const address = () => this.gate.addressOf(exchange?.req, connection.socket);
    onAnswered({ ...factsOf(exchange, connection, status, clock.now()), address, status, requestId });
  }
}
