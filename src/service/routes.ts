/** The endpoints, one a row, and the router that finds them. */
import type { Limiter } from '../access/limiter.ts';
import { METHODS } from '../http/edges.ts';
import { listCategories, putCategory } from '../shop/categories.ts';
import { createOrder, getOrder, listOrders, updateOrder } from '../shop/orders.ts';
import { createPet, deletePet, GET_PET_HEADERS, getPet, listPets, updatePet } from '../shop/pets.ts';
import type { Handler } from '../shop/shop.ts';

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
  readonly limiter?: Limiter;
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
  readonly allow: string;
  readonly needsKey: boolean;
  readonly endpoints: ReadonlyMap<string, Endpoint>;
}

/** Finds endpoints by comparing the path as text: no trailing slash, case folding or decoding. */
export class Router {
  readonly #exact = new Map<string, Route>();
  /** By the path up to its parameter, which matches any last segment. */
  readonly #withParameter = new Map<string, Route>();

  constructor(rows: readonly Endpoint[]) {
    for (const path of new Set(rows.map((one) => one.path))) {
      const route = routeOf(rows.filter((one) => one.path === path));
      const root = path.replace(/\{\w+\}$/, '');
      if (root === path) this.#exact.set(path, route);
      else this.#withParameter.set(root, route);
    }
  }

  find(path: string): Route | undefined {
    const route = this.#exact.get(path);
    const last = path.lastIndexOf('/') + 1;
    return route ?? (last === path.length ? undefined : this.#withParameter.get(path.slice(0, last)));
  }
}

function routeOf(here: readonly Endpoint[]): Route {
  const endpoints = new Map<string, Endpoint>(here.map((one) => [one.method, one]));
  const get = endpoints.get('GET');
  if (get !== undefined) endpoints.set('HEAD', get);
  const allow = [...METHODS.filter((method) => endpoints.has(method)), 'OPTIONS'].join(', ');
  return { allow, needsKey: !here.some(({ isOpen }) => isOpen), endpoints };
}
