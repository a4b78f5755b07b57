/** The endpoints, one a row, and the router that finds them. */
import type { HeaderList } from '../http/errors.ts';
import { METHODS } from '../http/message.ts';
import type { Reply } from '../http/reply.ts';
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

export const OPERATIONS: readonly Operation[] = [
  { name: 'listPets', method: 'GET', path: '/v1/pets', handler: listPets },
  { name: 'createPet', method: 'POST', path: '/v1/pets', handler: createPet },
  { name: 'getPet', method: 'GET', path: '/v1/pets/{petId}', handler: getPet, headers: GET_PET_HEADERS },
  { name: 'updatePet', method: 'PATCH', path: '/v1/pets/{petId}', handler: updatePet },
  { name: 'deletePet', method: 'DELETE', path: '/v1/pets/{petId}', handler: deletePet },
  { name: 'listCategories', method: 'GET', path: '/v1/categories', handler: listCategories },
  { name: 'putCategory', method: 'PUT', path: '/v1/categories/{categoryId}', handler: putCategory },
  { name: 'listOrders', method: 'GET', path: '/v1/store/orders', handler: listOrders },
  { name: 'getOrder', method: 'GET', path: '/v1/store/orders/{orderId}', handler: getOrder },
  { name: 'createOrder', method: 'POST', path: '/v1/store/orders', handler: createOrder },
  { name: 'updateOrder', method: 'PATCH', path: '/v1/store/orders/{orderId}', handler: updateOrder },
];

/** The endpoints at one path, by method. HEAD has the endpoint of GET. */
interface Route {
  readonly allow: string;
  readonly endpoints: ReadonlyMap<string, Endpoint>;
}

/** Finds the endpoints at a path. The path is taken as its text: no trailing slash, case folding or decoding. */
export class Router {
  /** By the path, or by what stands before the parameter, which is any last segment. */
  readonly #routes = new Map<string, Route>();

  constructor(rows: readonly Endpoint[]) {
    for (const { path } of rows) {
      const here = rows.filter((one) => one.path === path);
      this.#routes.set(path.replace(/\{\w+\}$/, '{}'), routeOf(here));
    }
  }

  find(path: string): Route | undefined {
    const exact = this.#routes.get(path);
    if (exact !== undefined || path.endsWith('/')) return exact;
    return this.#routes.get(`${path.slice(0, path.lastIndexOf('/') + 1)}{}`);
  }
}

function routeOf(here: readonly Endpoint[]): Route {
  const endpoints = new Map<string, Endpoint>(here.map((one) => [one.method, one]));
  const get = endpoints.get('GET');
  if (get !== undefined) endpoints.set('HEAD', get);
  return { allow: [...METHODS.filter((method) => endpoints.has(method)), 'OPTIONS'].join(', '), endpoints };
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
