/** The client of the pet store service: for Node 20.19 and newer, Deno and Bun. It needs nothing but fetch. */
import type { Int64 } from '../json/int64.ts';
import type * as model from '../store/model.ts';
import type { OrderStatus, PetStatus } from '../store/model.ts';
import { type Answer, answerTo, type Call, callOf, Listing } from './answers.ts';
import { Calls } from './calls.ts';
import { invalid, PetstoreError } from './errors.ts';
import type { Asked, Limits } from './exchange.ts';
import { type AnyId, type Id, writeId } from './ids.ts';
import type { CallOptions, ChangeOptions, ClientOptions, CreateOptions, Exchange, ListOptions } from './options.ts';
import { checkClient, checkOptions } from './options.ts';

export type { Answer, Call, Listing, Page } from './answers.ts';
export { type ClientCode, PetstoreError, type PetstoreErrorCode } from './errors.ts';
export type { Fetch } from './exchange.ts';
export type {
  AnyId,
  CallOptions,
  ChangeOptions,
  ClientOptions,
  CreateOptions,
  Exchange,
  Id,
  Limits,
  ListOptions,
  OrderStatus,
  PetStatus,
};

export interface NewPet {
  name: string;
  categoryId: AnyId;
  /** `available` when omitted. */
  status?: PetStatus | undefined;
}

/** What the service keeps, as its JSON tells it. */
type Told<T> = { [Name in keyof T]: T[Name] extends Int64 ? Id : T[Name] };
export type Pet = Told<model.Pet>;
export type Category = Told<model.Category>;
/** `placedAt`: RFC 3339, UTC. */
export type Order = Told<Omit<model.Order, 'placedAt'>> & { placedAt: string };

/** Put in place by what builds the package. */
declare const PETSTORE_VERSION: string | undefined;
const VERSION = typeof PETSTORE_VERSION === 'undefined' ? 'source' : PETSTORE_VERSION;

/** By the names that the OpenAPI document has: method, path, and the options beside those of all calls. */
const OPERATIONS = {
  listPets: ['GET', 'pets', 'limit', 'after', 'status'],
  createPet: ['POST', 'pets', 'idempotencyKey'],
  getPet: ['GET', 'pets'],
  listCategories: ['GET', 'categories', 'limit', 'after'],
  putCategory: ['PUT', 'categories', 'ifMatch'],
  listOrders: ['GET', 'store/orders', 'limit', 'after', 'status'],
  getOrder: ['GET', 'store/orders'],
  createOrder: ['POST', 'store/orders', 'idempotencyKey'],
  updateOrder: ['PATCH', 'store/orders', 'ifMatch'],
} as const;
type Operation = keyof typeof OPERATIONS;

/** Made within the call, so that whatever is wrong with its arguments rejects as all else does. */
type Wanted = () => {
  id?: string;
  query?: Record<string, string | undefined>;
  body?: string;
  etag?: string | undefined;
};

/**
 * Every method rejects with a PetstoreError, and with nothing else; `withResponse()` of what it returns tells the reply
 * too. Lists are asked for while they are read.
 */
export class PetstoreClient {
  readonly #base: URL;
  readonly #key: string;
  readonly #calls: Calls;

  constructor(options: ClientOptions) {
    this.#base = checkClient(options);
    const { baseUrl: _, key, fetch = globalThis.fetch, ...others } = options;
    this.#key = key;
    this.#calls = new Calls({ ...others, fetch: (url, init) => fetch(url, init) });
  }

  /** Both windows of the key's limits, as the newest reply told them. */
  get limits(): Limits | undefined {
    return this.#calls.limits;
  }

  /** The animals, by ascending id. */
  listPets(options: ListOptions & { status?: PetStatus | undefined } = {}): Listing<Pet> {
    return this.#list('listPets', options);
  }

  /** Tried under one Idempotency-Key: however often it is sent, one animal is made. */
  createPet(pet: NewPet, options: CreateOptions = {}): Call<Pet> {
    return this.#call('createPet', options, () => {
      const others = JSON.stringify({ name: pet.name ?? null, status: pet.status }).slice(1);
      return { body: `{"categoryId":${writeId(pet.categoryId, 'categoryId')},${others}` };
    });
  }

  /** @deprecated The service removes it on 5 December 2030: use `listPets` with a status. */
  getPet(id: AnyId, options: CallOptions = {}): Call<Pet> {
    return this.#call('getPet', options, () => ({ id: writeId(id, 'id') }));
  }

  /** Experimental, as are all categories and orders. */
  listCategories(options: ListOptions = {}): Listing<Category> {
    return this.#list('listCategories', options);
  }

  /** Makes the category, or renames it. Without `ifMatch`, a rename by somebody else between two tries is undone. */
  putCategory(id: AnyId, name: string, options: ChangeOptions = {}): Call<Category> {
    return this.#call('putCategory', options, () => ({ id: writeId(id, 'id'), body: JSON.stringify({ name }) }));
  }

  listOrders(options: ListOptions & { status?: OrderStatus | undefined } = {}): Listing<Order> {
    return this.#list('listOrders', options);
  }

  getOrder(id: AnyId, options: CallOptions = {}): Call<Order> {
    return this.#call('getOrder', options, () => ({ id: writeId(id, 'id') }));
  }

  /** Orders the animal, which must be available. Tried under one Idempotency-Key, as `createPet`. */
  createOrder(petId: AnyId, options: CreateOptions = {}): Call<Order> {
    return this.#call('createOrder', options, () => ({ body: `{"petId":${writeId(petId, 'petId')}}` }));
  }

  /** Not sent again once it may have been done: after `outcomeUnknown`, `getOrder` shows what became of it. */
  updateOrder(id: AnyId, status: 'delivered' | 'cancelled', options: ChangeOptions = {}): Call<Order> {
    return this.#call('updateOrder', options, () => ({ id: writeId(id, 'id'), body: JSON.stringify({ status }) }));
  }

  /** Ends what is under way, with code `closed`. Idle connections are fetch's own: they end soon, and hold no process. */
  async close(): Promise<void> {
    this.#calls.close();
  }

  #call<T>(operation: Operation, options: CallOptions, wanted: Wanted): Call<T> {
    return callOf(this.#run<T>(operation, options, wanted));
  }

  #list<T>(operation: Operation, options: ListOptions & { status?: string }): Listing<T> {
    const first = () => {
      const { limit = 100, after, status } = options;
      return { limit: String(limit), status, after: after === undefined ? undefined : writeId(after, 'after') };
    };
    return new Listing((query, etag) => this.#run<T[]>(operation, options, () => ({ query: query ?? first(), etag })));
  }

  async #run<T>(operation: Operation, options: CallOptions, wanted: Wanted): Promise<Answer<T>> {
    const [method, path, ...takes] = OPERATIONS[operation];
    checkOptions(options, takes);
    return answerTo(await this.#calls.run(this.#asked({ operation, method }, path, options, wanted), options));
  }

  #asked(which: Pick<Asked, 'operation' | 'method'>, path: string, options: CallOptions, wanted: Wanted): Asked {
    const { headers: given, idempotencyKey = crypto.randomUUID(), ifMatch } = options as CreateOptions & ChangeOptions;
    try {
      const { id, query = {}, body, etag } = wanted();
      const url = new URL(id === undefined ? path : `${path}/${id}`, this.#base);
      for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, value);
      const headers = this.#calls.headersWith(`petstore-client/${VERSION}`, given, {
        authorization: `Bearer ${this.#key}`,
        accept: 'application/json',
        'content-type': body && 'application/json',
        'idempotency-key': which.method === 'POST' ? idempotencyKey : undefined,
        'if-match': ifMatch,
        'if-none-match': etag,
      });
      return { ...which, url, headers, body };
    } catch (error) {
      throw error instanceof PetstoreError ? error : invalid((error as Error).message, error);
    }
  }
}
