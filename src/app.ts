/**
 * The map. One request from its first byte to its reply, top to bottom; each step is a function of one other room:
 *
 *   message → target → place → caller → limits → operation → body → handler → reply
 *
 * Whatever is wrong on the way is thrown as an error of its room, and caught and told in one place: `toApiError`.
 */
import type { Server } from 'node:http';
import type { Addresses } from './access/addresses.ts';
import type { Callers } from './access/callers.ts';
import type { Limiter } from './access/limits.ts';
import type { Clock } from './clock.ts';
import type { Answered, Exchange, LabHook } from './exchange.ts';
import { toApiError } from './faults.ts';
import { Gate } from './gate.ts';
import type { Connection, Connections, Outgoing } from './http/connection.ts';
import { corsHeaders } from './http/cors.ts';
import { drain } from './http/drain.ts';
import { ApiError, methodNotAllowed, notFound } from './http/errors.ts';
import type { Incoming } from './http/messages.ts';
import { Dates, errorReply, headersOf, type Reply, send, sendRaw } from './http/reply.ts';
import { checkDemands, checkMessage, originForm, readBody } from './http/request.ts';
import { RequestIds } from './http/requestids.ts';
import type { Match } from './http/router.ts';
import { createServer } from './http/server.ts';
import { readJson } from './json/reader.ts';
import { answerPage, notNow, preflight, type Unready } from './pages.ts';
import { createRouter, type Operation, type Place } from './routes.ts';
import { ReplyCache } from './shop/cache.ts';
import type { Call, Shop } from './shop/call.ts';
import type { ApiKey, Store } from './store/model.ts';

/** What must be there before anything but "not yet" can be answered. */
interface Services {
  shop: Shop;
  callers: Callers;
  limiter: Limiter;
  /** Whether requests can be served just now. */
  ready(): boolean;
  /** For trying clients; without it `/lab` is nowhere. */
  lab?: LabHook;
}

export interface AppSettings {
  categories: 'open' | 'known';
  corsOrigin?: string;
  /** How many proxies in front are trusted to say where a request came from. */
  trustProxy: number;
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

const NONE: readonly string[] = [];

export class App {
  readonly server: Server;
  readonly #connections: Connections;
  readonly #options: AppOptions;
  readonly #router = createRouter();
  readonly #gate: Gate;
  readonly #cors: string[];
  readonly #dates: Dates;
  readonly #requestIds = new RequestIds();
  #services: Services | undefined;
  #draining = false;

  constructor(options: AppOptions) {
    this.#options = options;
    const { clock, addresses, log, settings } = options;
    const onBan = (key: ApiKey, seconds: number) => {
      log.info('a ban began', { key: key.id, seconds });
      this.#services?.lab?.banned(key);
    };
    this.#gate = new Gate({ addresses, trustProxy: settings.trustProxy, onBan });
    this.#cors = corsHeaders(settings.corsOrigin);
    this.#dates = new Dates(() => clock.wall());
    const { server, connections } = createServer({
      handle: (req, res) => this.#handle(req, res),
      refuse: (connection, error) => this.#refuseRaw(connection, error),
    });
    this.server = server;
    this.#connections = connections;
  }

  /** From now on requests are served; until then they are told to come back. */
  open({ store, ...services }: Omit<Services, 'shop'> & { store: Store }): void {
    const { clock, settings } = this.#options;
    const caches = { lists: new ReplyCache(), animals: new ReplyCache() };
    this.#services = { shop: { store, clock, categories: settings.categories, ...caches }, ...services };
  }

  /** No new connections; what is under way is finished, at most `maxMs`; who asks meanwhile is refused. */
  drain(maxMs: number): Promise<void> {
    this.#draining = true;
    return drain(this.server, this.#connections, maxMs);
  }

  #handle(req: Incoming, res: Outgoing): void {
    const id = this.#requestIds.next();
    const began = this.#options.onAnswered === undefined ? 0 : this.#options.clock.now();
    const unknown = { operation: undefined, caller: undefined, limits: undefined, body: undefined, fault: undefined };
    const exchange: Exchange = { req, res, id, began, ...unknown };
    try {
      const reply = this.#answer(exchange);
      if (reply instanceof Promise) {
        const refuse = (error: unknown) => this.#reply(exchange, this.#refusal(exchange, error));
        reply.then((later) => this.#reply(exchange, later)).catch(refuse);
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
    const query = cut === -1 ? '' : target.slice(cut + 1);
    const place = this.#router.find(path);
    exchange.operation = place?.value.operations.get(req.method as string);
    checkMessage(req);
    if (path === '/v1' || path.startsWith('/v1/')) return this.#answerCall(exchange, place, query);
    const lab = path === '/lab' || path.startsWith('/lab/') ? this.#services?.lab : undefined;
    if (lab !== undefined) return this.#answerLab(exchange, lab, path, query);
    const { pages, settings } = this.#options;
    return answerPage(req, path, { pages, corsOrigin: settings.corsOrigin, unready: this.#unready() });
  }

  #answerCall(exchange: Exchange, place: Match<Place> | undefined, query: string): Reply | Promise<Reply> {
    const { req } = exchange;
    if (req.method === 'OPTIONS' && place !== undefined) return this.#preflight(req, place.value.allow);
    const { callers, limiter } = this.#opened();
    const refused = this.#gate.admit(exchange, callers, limiter);
    if (refused instanceof Promise) return refused.then((later) => this.#decided(later, exchange, place, query));
    return this.#decided(refused, exchange, place, query);
  }

  /** By the gate: the request is refused, or served. */
  #decided(refused: Reply | undefined, exchange: Exchange, place: Match<Place> | undefined, query: string) {
    const { lab } = this.#services as Services;
    if (lab !== undefined && exchange.caller !== undefined) lab.arrived(exchange);
    return refused ?? this.#serve(exchange, place, query);
  }

  /** Whoever asks is known, and has paid. */
  #serve(exchange: Exchange, place: Match<Place> | undefined, query: string): Reply | Promise<Reply> {
    const { req, res, operation, caller } = exchange as Exchange & { caller: ApiKey };
    checkDemands(req);
    if (place === undefined) throw notFound();
    if (operation === undefined) throw methodNotAllowed(place.value.allow);
    const { callers } = this.#services as Services;
    const recheck: Call['recheck'] = (ahead) => this.#gate.recheck(exchange, callers, ahead.key(caller.id));
    const idempotencyKey = req.headers['idempotency-key'] as string | undefined;
    const call: Call = { caller, param: place.param, query, body: null, idempotencyKey, recheck };
    if (operation.method === 'GET') return this.#operate(exchange, operation, call);
    return readBody(req, res).then((body) => {
      exchange.body = body;
      call.body = readJson(body);
      return this.#operate(exchange, operation, call);
    });
  }

  #operate(exchange: Exchange, { handler }: Operation, call: Call): Reply | Promise<Reply> {
    const { shop, lab } = this.#services as Services;
    if (lab === undefined) return handler(shop, call);
    const operate = async () => handler(shop, call);
    return lab.around(exchange, call, () => operate().catch((error) => this.#refusal(exchange, error)));
  }

  #answerLab(exchange: Exchange, lab: LabHook, path: string, query: string): Reply | Promise<Reply> {
    const { req, res } = exchange;
    const allow = lab.allow(path);
    if (req.method === 'OPTIONS' && allow !== undefined) return this.#preflight(req, allow);
    const answer = () => {
      checkDemands(req);
      if (allow === undefined) throw notFound();
      if (!allow.split(', ').includes(req.method as string)) throw methodNotAllowed(allow);
      return lab.answer(exchange, { path, query, body: () => readBody(req, res).then(readJson) });
    };
    const refused = this.#gate.admit(exchange, this.#opened().callers, lab.limiter);
    return refused instanceof Promise ? refused.then((later) => later ?? answer()) : (refused ?? answer());
  }

  #preflight(req: Incoming, allow: string): Reply {
    return preflight(req, allow, this.#options.settings.corsOrigin);
  }

  #opened(): Services {
    if (this.#services === undefined || this.#draining) throw notNow(this.#unready() as Unready);
    return this.#services;
  }

  #unready(): Unready | undefined {
    if (this.#draining) return 'is shutting down';
    if (this.#services === undefined) return 'is starting';
    return this.#services.ready() ? undefined : 'waits for its store';
  }

  /** The one catch: whatever was thrown on the way, as a reply. */
  #refusal(exchange: Exchange, error: unknown): Reply {
    const known = toApiError(error);
    if (known !== undefined) return errorReply(known);
    this.#options.log.error('internal error', { requestId: exchange.id, error: (error as Error)?.stack ?? error });
    return errorReply(new ApiError('internal_error', 'something went wrong here; the request id names it in the log'));
  }

  #reply(exchange: Exchange, reply: Reply): void {
    const { req, res, id, operation, caller, fault } = exchange;
    const lab = this.#services?.lab;
    const limits = exchange.limits ?? this.#gate.limitsWithoutKey(req, req.socket);
    let extra = reply.status < 400 ? NONE : (operation?.headers ?? NONE);
    if (this.#cors.length > 0) extra = extra.concat(this.#cors);
    if (lab !== undefined && caller !== undefined) extra = extra.concat(lab.answers(exchange, reply));
    if (this.#draining) req.from.endWithNewest(res);
    const about = { id, limits, date: this.#dates.text(), extra };
    if (fault?.send !== undefined) fault.send(exchange, reply, headersOf(reply, about));
    else if (!send(req, res, reply, about)) return;
    this.#tell(req.from, id, reply.status, exchange);
  }

  /** Answers where node:http found no request to hand over. */
  #refuseRaw(connection: Connection, error: ApiError): void {
    const id = this.#requestIds.next();
    const limits = this.#gate.limitsWithoutKey(undefined, connection.socket);
    sendRaw(connection, errorReply(error), { id, limits, date: this.#dates.text(), extra: this.#cors });
    this.#tell(connection, id, error.status);
  }

  #tell({ socket }: Connection, requestId: string, status: number, exchange?: Exchange): void {
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
