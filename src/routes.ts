/** One row per operation: all that the service can be asked under `/v1`. */
import { Router } from './http/router.ts';
import type { Handler } from './shop/call.ts';
import { listCategories, putCategory } from './shop/categories.ts';
import { createOrder, getOrder, listOrders, updateOrder } from './shop/orders.ts';
import { createPet, GET_PET_HEADERS, getPet, listPets } from './shop/pets.ts';

export interface Operation {
  name: string;
  method: 'GET' | 'POST' | 'PUT' | 'PATCH';
  path: string;
  stability: 'stable' | 'deprecated' | 'experimental';
  handler: Handler;
  /** What its handler says in the headers of every reply: refusals by others say it too. */
  headers?: string[];
}

export const OPERATIONS: readonly Operation[] = [
  { name: 'listPets', method: 'GET', path: '/v1/pets', stability: 'stable', handler: listPets },
  { name: 'createPet', method: 'POST', path: '/v1/pets', stability: 'stable', handler: createPet },
  {
    name: 'getPet',
    method: 'GET',
    path: '/v1/pets/{petId}',
    stability: 'deprecated',
    handler: getPet,
    headers: GET_PET_HEADERS,
  },
  { name: 'listCategories', method: 'GET', path: '/v1/categories', stability: 'experimental', handler: listCategories },
  {
    name: 'putCategory',
    method: 'PUT',
    path: '/v1/categories/{categoryId}',
    stability: 'experimental',
    handler: putCategory,
  },
  { name: 'listOrders', method: 'GET', path: '/v1/store/orders', stability: 'experimental', handler: listOrders },
  { name: 'getOrder', method: 'GET', path: '/v1/store/orders/{orderId}', stability: 'experimental', handler: getOrder },
  { name: 'createOrder', method: 'POST', path: '/v1/store/orders', stability: 'experimental', handler: createOrder },
  {
    name: 'updateOrder',
    method: 'PATCH',
    path: '/v1/store/orders/{orderId}',
    stability: 'experimental',
    handler: updateOrder,
  },
];

/** What stands at one path: its operations by method, HEAD beside GET. */
export interface Place {
  allow: string;
  operations: Map<string, Operation>;
}

export function createRouter(): Router<Place> {
  const router = new Router<Place>();
  for (const path of new Set(OPERATIONS.map((operation) => operation.path))) {
    const here = OPERATIONS.filter((operation) => operation.path === path);
    const operations = new Map<string, Operation>(here.map((operation) => [operation.method, operation]));
    const get = operations.get('GET');
    if (get !== undefined) operations.set('HEAD', get);
    router.add(path, { allow: allowHeader(operations.keys()), operations });
  }
  return router;
}

/** The value of `Allow`, in an order that does not depend on that of the rows. */
function allowHeader(methods: Iterable<string>): string {
  const given = new Set(methods);
  return [...['GET', 'HEAD', 'POST', 'PUT', 'PATCH'].filter((method) => given.has(method)), 'OPTIONS'].join(', ');
}
