/** The client of the pet store service: for Node 20.19 and newer, Deno and Bun. It needs nothing but fetch. */
import type { Int64 } from '../json/int64.ts';
import type * as model from '../store/model.ts';
import type { OrderStatus, PetStatus } from '../store/model.ts';
import { type Answer, answerTo, type Call, callOf, Listing } from './answers.ts';
import { Calls } from './calls.ts';
import { invalid, PetstoreError, saidBy } from './errors.ts';
import type { Asked, Limits } from './exchange.ts';
import { type AnyId, type Id, writeId } from './ids.ts';
import type { CallOptions, ChangeOptions, ClientOptions, CreateOptions, Exchange, ListOptions } from './options.ts';
import { check, checkClient, checkOptions } from './options.ts';

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

/** A thing of the service, in the types of its JSON. */
type Told<T> = { [Name in keyof T]: T[Name] extends Int64 ? Id : T[Name] };
export type Pet = Told<model.Pet>;
export type Category = Told<model.Category>;
/** `placedAt`: RFC 3339, UTC. */
export type Order = Told<Omit<model.Order, 'placedAt'>> & { placedAt: string };

/** Set by the build of the package. */
declare const PETSTORE_VERSION: string | undefined;
const VERSION = typeof PETSTORE_VERSION === 'undefined' ? 'source' : PETSTORE_VERSION;
/** Undefined in a browser, which has a User-Agent of its own, and would need a CORS preflight for another. */
const isBrowser = 'document' in globalThis || 'WorkerGlobalScope' in globalThis;
const AGENT = isBrowser ? undefined : `petstore-client/${VERSION}`;

/** By operationId of the OpenAPI document: method, path, and the options beside those of all calls. */
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

/** Called within the call, so that a wrong argument rejects the promise, as all other errors do. */
type Wanted = () => {
  id?: string;
  query?: Record<string, string | undefined>;
  body?: string;
  etag?: string | undefined;
};

/**
 * Every method rejects with a PetstoreError, and with nothing else; `withResponse()` of its result gives the reply's
 * facts too. Lists are asked for while they are read.
 */
export class PetstoreClient {
  readonly #base: URL;
  readonly #key: string;
  readonly #headers: Headers;
  readonly #calls: Calls;

  constructor(options: ClientOptions) {
    const { base, key, headers, calls } = checkClient(options);
    this.#base = base;
    this.#key = key;
    this.#headers = headers;
    this.#calls = new Calls(calls);
  }

  /** Both windows of the key's limits, from the newest reply. */
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
      const { categoryId, ...others } = pet; // the service refuses unknown members by name
      const written = JSON.stringify({ ...others, name: pet.name ?? null }).slice(1);
      return { body: `{"categoryId":${writeId(categoryId, 'categoryId')},${written}` };
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

  /** Not sent again once it may have been done: after `outcomeUnknown`, `getOrder` shows the status of the order. */
  updateOrder(id: AnyId, status: 'delivered' | 'cancelled', options: ChangeOptions = {}): Call<Order> {
    return this.#call('updateOrder', options, () => ({ id: writeId(id, 'id'), body: JSON.stringify({ status }) }));
  }

  /** Ends calls under way, with code `closed`. Idle connections are fetch's own: they end soon, and hold no process. */
  async close(): Promise<void> {
    this.#calls.close();
  }

  #call<T>(operation: Operation, options: CallOptions, wanted: Wanted): Call<T> {
    return callOf(this.#run<T>(operation, options, wanted));
  }

  #list<T>(operation: Operation, options: ListOptions & { status?: string }): Listing<T> {
    const own = Object(options) === options ? { ...options } : options; // for all pages alike
    const first = () => {
      const { limit = 100, after, status } = own;
      return { limit: String(limit), status, after: after === undefined ? undefined : writeId(after, 'after') };
    };
    return new Listing((query, etag) => this.#run<T[]>(operation, own, () => ({ query: query ?? first(), etag })));
  }

  async #run<T>(operation: Operation, options: CallOptions, wanted: Wanted): Promise<Answer<T>> {
    const { asked, told } = this.#prepared(operation, options, wanted);
    return answerTo(await this.#calls.run(asked, told));
  }

  #prepared(operation: Operation, options: CallOptions, wanted: Wanted): { asked: Asked; told: CallOptions } {
    const [method, path, ...takes] = OPERATIONS[operation];
    try {
      const told = checkOptions<CreateOptions & ChangeOptions>(options, takes);
      const { id, query = {}, body, etag } = wanted();
      check('etag', etag);
      const url = new URL(id === undefined ? path : `${path}/${id}`, this.#base);
      for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, value);
      const own = {
        authorization: `Bearer ${this.#key}`,
        accept: 'application/json',
        'content-type': body && 'application/json',
        'idempotency-key': method === 'POST' ? (told.idempotencyKey ?? newKey()) : undefined,
        'if-match': told.ifMatch,
        'if-none-match': etag,
        'user-agent': AGENT,
      };
      const headers = new Headers();
      for (const [name, value] of [...Object.entries(own), ...this.#headers, ...told.headers])
        if (value !== undefined) headers.set(name, value);
      return { asked: { operation, method, url, headers, body }, told };
    } catch (error) {
      throw error instanceof PetstoreError ? error : invalid(saidBy(error), error);
    }
  }
}

/** 128 random bits. A page that came without TLS has no crypto.randomUUID. */
function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(16).padStart(8, '0')).join('');
}
