/** The endpoints, one a row; the router that finds them; and a request, as it is on its way to one. */
import type { Caller } from '../access/callers.ts';
import type { Decision, Limiter } from '../access/limiter.ts';
import type { Clock } from '../clock.ts';
import type { Connection } from '../http/connection.ts';
import { METHODS, readBody } from '../http/edges.ts';
import type { Outgoing, Reply } from '../http/reply.ts';
import { type Headers, type Incoming, NO_BODY } from '../http/request.ts';
import { listCategories, putCategory } from '../shop/categories.ts';
import { createOrder, getOrder, listOrders, updateOrder } from '../shop/orders.ts';
import { createPet, deletePet, GET_PET_HEADERS, getPet, listPets, updatePet } from '../shop/pets.ts';
import type { Call, Handler } from '../shop/shop.ts';

export interface Endpoint {
  readonly name: string;
  /** A GET serves HEAD too. */
  readonly method: Exclude<(typeof METHODS)[number], 'HEAD'>;
  /** Only the last segment can be a parameter. */
  readonly path: string;
  readonly handler: Handler;
  /** Headers of every reply, refusals too, as lines. */
  readonly headers?: string;
  /** In place of the limiter of the plans. */
  readonly limiter?: Pick<Limiter, 'take'>;
  /** True if no key is needed. */
  readonly isOpen?: boolean;
}

const row = (name: string, method: Endpoint['method'], path: string, handler: Handler, headers?: string): Endpoint => ({
  name,
  method,
  path,
  handler,
  headers,
});

export const ENDPOINTS: readonly Endpoint[] = [
  row('listPets', 'GET', '/v1/pets', listPets),
  row('createPet', 'POST', '/v1/pets', createPet),
  row('getPet', 'GET', '/v1/pets/{petId}', getPet, GET_PET_HEADERS),
  row('updatePet', 'PATCH', '/v1/pets/{petId}', updatePet),
  row('deletePet', 'DELETE', '/v1/pets/{petId}', deletePet),
  row('listCategories', 'GET', '/v1/categories', listCategories),
  row('putCategory', 'PUT', '/v1/categories/{categoryId}', putCategory),
  row('listOrders', 'GET', '/v1/store/orders', listOrders),
  row('getOrder', 'GET', '/v1/store/orders/{orderId}', getOrder),
  row('createOrder', 'POST', '/v1/store/orders', createOrder),
  row('updateOrder', 'PATCH', '/v1/store/orders/{orderId}', updateOrder),
];

/** The endpoints at one path, by method. HEAD has the endpoint of GET. */
export interface Route {
  /** Up to its parameter. */
  readonly path: string;
  readonly allow: string;
  readonly needsKey: boolean;
  readonly endpoints: ReadonlyMap<string, Endpoint>;
}

/**
 * Finds endpoints by comparing the path as text: no trailing slash, case folding or decoding. Two dozen comparisons are
 * faster than a Map, for which V8 first looks each path up among all texts that it knows.
 */
export class Router {
  readonly #exact: Route[] = [];
  /** Their path ends with a parameter, which matches any last segment. */
  readonly #withParameter: Route[] = [];

  constructor(rows: readonly Endpoint[]) {
    for (const path of new Set(rows.map((one) => one.path))) {
      const route = routeOf(rows.filter((one) => one.path === path));
      (route.path === path ? this.#exact : this.#withParameter).push(route);
    }
  }

  find(path: string): Route | undefined {
    for (const route of this.#exact) if (route.path === path) return route;
    const cut = path.lastIndexOf('/') + 1;
    if (cut === path.length) return undefined;
    const before = path.slice(0, cut);
    return this.#withParameter.find((route) => route.path === before);
  }
}

function routeOf(here: readonly Endpoint[]): Route {
  const endpoints = new Map<string, Endpoint>(here.map((one) => [one.method, one]));
  const get = endpoints.get('GET');
  if (get !== undefined) endpoints.set('HEAD', get);
  const allow = [...METHODS.filter((method) => endpoints.has(method)), 'OPTIONS'].join(', ');
  const path = here[0].path.replace(/\{\w+\}$/, '');
  return { path, allow, needsKey: !here.some(({ isOpen }) => isOpen), endpoints };
}

/** One request and all that the steps on its way have found out about it. */
export class Exchange implements Call {
  /** The request id. */
  readonly id: string;
  readonly req: Incoming;
  readonly res: Outgoing;
  readonly connection: Connection;
  /** When its head was read, in ms of the monotonic clock. */
  readonly receivedAt: number;
  path = '';
  query = '';
  /** Undefined if there is none at this path and method. */
  endpoint: Endpoint | undefined = undefined;
  /** Set when the key is known. No handler is called before. */
  caller!: Caller;
  /** The decision of the limiter; undefined until then. */
  decision: Decision | undefined = undefined;
  /** The limit headers of the reply, as lines; undefined before the limits are known. */
  limits: string | undefined = undefined;
  body = NO_BODY;
  clock: Clock;
  #reading: Promise<Uint8Array> | undefined;

  constructor(id: string, req: Incoming, res: Outgoing, clock: Clock) {
    this.id = id;
    this.req = req;
    this.res = res;
    this.connection = req.from;
    this.receivedAt = req.waitsSince ?? clock.now();
    this.clock = clock;
  }

  get headers(): Headers {
    return this.req.headers;
  }

  get param(): string {
    return this.path.slice(this.path.lastIndexOf('/') + 1);
  }

  /** Reads the body, or throws the refusal of it. The same promise however often it is called. */
  readBody(): Promise<Uint8Array> {
    return (this.#reading ??= readBody(this.req));
  }
}

/** One answered request, for the metrics and the access log. */
export interface Summary {
  /** The endpoint's name, or `other`: never a text that a client chose. */
  readonly route: string;
  /** The method as it was sent; undefined if no request could be parsed. So is `target`. */
  readonly method: string | undefined;
  readonly target: string | undefined;
  readonly address: () => string;
  readonly status: number;
  readonly ms: number;
  readonly requestId: string;
  readonly keyId: number | undefined;
}

/**
 * Stands round every request with a valid key, refused by the limits or not. `next` serves it; a refusal is a reply too,
 * so `next` never rejects. No reply is sent if the connection was ended: `exchange.connection.end()`.
 */
export type Around = (exchange: Exchange, next: () => Promise<Reply>) => Promise<Reply>;
