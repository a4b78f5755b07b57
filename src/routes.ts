/** The endpoints under `/v1`, one a row, and the router, which finds the endpoints at a path. */
import { METHODS } from './http/request.ts';
import { type Handler, type ReadHandler, reading } from './shop/call.ts';
import { listCategories, putCategory } from './shop/categories.ts';
import { createOrder, getOrder, listOrders, updateOrder } from './shop/orders.ts';
import { createPet, GET_PET_HEADERS, getPet, listPets } from './shop/pets.ts';

type Method = Exclude<(typeof METHODS)[number], 'HEAD'>;
type Stability = 'stable' | 'deprecated' | 'experimental';

export interface Endpoint {
  name: string;
  method: Method;
  path: string;
  stability: Stability;
  handler: Handler;
  /** Headers of every reply of the endpoint: its handler adds them to a success, `App` to each refusal. */
  headers: readonly string[];
}

export const ENDPOINTS: readonly Endpoint[] = [
  read('listPets', '/v1/pets', 'stable', listPets),
  write('createPet', 'POST', '/v1/pets', 'stable', createPet),
  read('getPet', '/v1/pets/{petId}', 'deprecated', getPet, GET_PET_HEADERS),
  read('listCategories', '/v1/categories', 'experimental', listCategories),
  write('putCategory', 'PUT', '/v1/categories/{categoryId}', 'experimental', putCategory),
  read('listOrders', '/v1/store/orders', 'experimental', listOrders),
  read('getOrder', '/v1/store/orders/{orderId}', 'experimental', getOrder),
  write('createOrder', 'POST', '/v1/store/orders', 'experimental', createOrder),
  write('updateOrder', 'PATCH', '/v1/store/orders/{orderId}', 'experimental', updateOrder),
];

/** A GET. Its reply has an ETag; if the request has conditions, a 304 or a 412 may take its place. */
function read(
  name: string,
  path: string,
  stability: Stability,
  handler: ReadHandler,
  headers: readonly string[] = [],
): Endpoint {
  return { name, method: 'GET', path, stability, handler: reading(handler), headers };
}

/** Any other method. A PUT or PATCH checks the conditions of the request when its write is decided. */
function write(
  name: string,
  method: Exclude<Method, 'GET'>,
  path: string,
  stability: Stability,
  handler: Handler,
): Endpoint {
  return { name, method, path, stability, handler, headers: [] };
}

/** The endpoints at one path, by method. HEAD has the endpoint of GET. */
interface Place {
  allow: string;
  endpoints: ReadonlyMap<string, Endpoint>;
}

const PLACES = placesOf(ENDPOINTS);

/** Places by the path up to its parameter. A parameter matches any last segment; its name does not matter. */
export function placesOf(rows: readonly Endpoint[]): ReadonlyMap<string, Place> {
  const at = (root: string) => rows.filter(({ path }) => rootOf(path) === root);
  return new Map(rows.map(({ path }) => [rootOf(path), placeOf(at(rootOf(path)))]));
}

function rootOf(path: string): string {
  const root = path.replace(/\{\w+\}$/, '');
  if (/[{}]/.test(root)) throw new Error(`${path}: only the last segment can be a parameter`);
  return root;
}

function placeOf(here: readonly Endpoint[]): Place {
  const endpoints = new Map<string, Endpoint>(here.map((endpoint) => [endpoint.method, endpoint]));
  const get = endpoints.get('GET');
  if (get !== undefined) endpoints.set('HEAD', get);
  const allow = METHODS.filter((method) => endpoints.has(method));
  return { allow: [...allow, 'OPTIONS'].join(', '), endpoints };
}

/** The router. Compares the path, or all but its last segment, as text: no trailing slash, case folding or decoding. */
export function placeAt(path: string): Place | undefined {
  const last = path.lastIndexOf('/') + 1;
  return last === path.length ? undefined : (PLACES.get(path) ?? PLACES.get(path.slice(0, last)));
}

export function isUnder(root: string, path: string): boolean {
  return path.startsWith(root) && (path.length === root.length || path[root.length] === '/');
}
