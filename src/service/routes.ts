/** The endpoints, one a row; the router that finds them; and a request, as it is on its way to one. */
import type { Caller } from '../access/callers.ts';
import type { Connection } from '../http/connection.ts';
import { METHODS, readBody } from '../http/edges.ts';
import type { HeaderList } from '../http/errors.ts';
import type { Reply } from '../http/reply.ts';
import type { Request } from '../http/request.ts';
import { listCategories, putCategory } from '../shop/categories.ts';
import type { Handler } from '../shop/handler.ts';
import { createOrder, getOrder, listOrders, updateOrder } from '../shop/orders.ts';
import { createPet, deletePet, GET_PET_HEADERS, getPet, listPets, updatePet } from '../shop/pets.ts';

interface EndpointBase {
  readonly name: string;
  /** A GET serves HEAD too. */
  readonly method: Exclude<(typeof METHODS)[number], 'HEAD'>;
  /** Only the last segment can be a parameter. */
  readonly path: string;
  /** Headers of every reply, refusals too. */
  readonly headers?: HeaderList;
}

/** What a caller with a valid key may ask for. */
export interface Operation extends EndpointBase {
  readonly handler: Handler;
}

/** What everybody may ask for. */
export interface PublicEndpoint extends EndpointBase {
  readonly answer: () => Reply;
}

export type Endpoint = Operation | PublicEndpoint;

export const isPublic = (endpoint: Endpoint): endpoint is PublicEndpoint => 'answer' in endpoint;
export const isOperation = (endpoint: Endpoint): endpoint is Operation => 'handler' in endpoint;

const operation = (
  name: string,
  method: Operation['method'],
  path: string,
  handler: Handler,
  headers?: HeaderList,
): Operation => ({ name, method, path, handler, headers });

export const ENDPOINTS: readonly Operation[] = [
  operation('listPets', 'GET', '/v1/pets', listPets),
  operation('createPet', 'POST', '/v1/pets', createPet),
  operation('getPet', 'GET', '/v1/pets/{petId}', getPet, GET_PET_HEADERS),
  operation('updatePet', 'PATCH', '/v1/pets/{petId}', updatePet),
  operation('deletePet', 'DELETE', '/v1/pets/{petId}', deletePet),
  operation('listCategories', 'GET', '/v1/categories', listCategories),
  operation('putCategory', 'PUT', '/v1/categories/{categoryId}', putCategory),
  operation('listOrders', 'GET', '/v1/store/orders', listOrders),
  operation('getOrder', 'GET', '/v1/store/orders/{orderId}', getOrder),
  operation('createOrder', 'POST', '/v1/store/orders', createOrder),
  operation('updateOrder', 'PATCH', '/v1/store/orders/{orderId}', updateOrder),
];

/** The endpoints at one path, by method. HEAD has the endpoint of GET. */
export interface Route<E extends Endpoint = Endpoint> {
  readonly allow: string;
  readonly endpoints: ReadonlyMap<string, E>;
}

/** Finds the endpoints at a path. The path is taken as its text: no trailing slash, case folding or decoding. */
export class Router<E extends Endpoint> {
  readonly #exact = new Map<string, Route<E>>();
  /** By what stands before the parameter, which is any last segment. */
  readonly #withParameter = new Map<string, Route<E>>();

  constructor(rows: readonly E[]) {
    for (const { path } of rows) {
      const route = routeOf(rows.filter((one) => one.path === path));
      const before = path.replace(/\{\w+\}$/, '');
      (before === path ? this.#exact : this.#withParameter).set(before, route);
    }
  }

  find(path: string): Route<E> | undefined {
    const exact = this.#exact.get(path);
    if (exact !== undefined || path.endsWith('/')) return exact;
    return this.#withParameter.get(path.slice(0, path.lastIndexOf('/') + 1));
  }
}

function routeOf<E extends Endpoint>(here: readonly E[]): Route<E> {
  const endpoints = new Map<string, E>(here.map((one) => [one.method, one]));
  const get = endpoints.get('GET');
  if (get !== undefined) endpoints.set('HEAD', get);
  const allow = [...METHODS.filter((method) => endpoints.has(method)), 'OPTIONS'].join(', ');
  return { allow, endpoints };
}

/** One request and all that the steps on its way have found out about it. */
export class Exchange {
  /** The request id. */
  readonly id: string;
  readonly request: Request;
  readonly connection: Connection;
  path = '';
  query = '';
  /** Undefined if there is none at this path and method. */
  endpoint: Endpoint | undefined;
  /** Undefined until the key is known. */
  caller: Caller | undefined;
  /** The limit headers of the reply; undefined before the limits are known. */
  limitHeaders: HeaderList | undefined;
  #reading: Promise<Uint8Array> | undefined;

  constructor(id: string, request: Request) {
    this.id = id;
    this.request = request;
    this.connection = request.connection;
  }

  /** Reads the body, or throws the refusal of it. The same promise however often it is called. */
  readBody(): Promise<Uint8Array> {
    return (this.#reading ??= readBody(this.request));
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
