/** The client of the pet store service, for Node 20.19 and newer. */
import './needs-node.ts';
import { randomUUID } from 'node:crypto';
import { environmentOf } from '../access/keys.ts';
import type { Int64 } from '../json/int64.ts';
import type * as model from '../store/model.ts';
import type { OrderStatus, PetStatus } from '../store/model.ts';
import { Calls } from './calls.ts';
import { PetstoreError } from './errors.ts';
import type { Asked, Limits, Reply } from './exchange.ts';
import { type AnyId, type Id, writeId } from './ids.ts';

export { type ClientCode, PetstoreError, type PetstoreErrorCode } from './errors.ts';
export type { AnyId, Id, Limits, OrderStatus, PetStatus };

export interface NewPet {
  name: string;
  categoryId: AnyId;
  /** `available` when omitted. */
  status?: PetStatus;
}

/** What the service keeps, as its JSON tells it. */
type Told<T> = { [Name in keyof T]: T[Name] extends Int64 ? Id : T[Name] };
export type Pet = Told<model.Pet>;
export type Category = Told<model.Category>;
/** `placedAt`: RFC 3339, UTC. */
export type Order = Told<Omit<model.Order, 'placedAt'>> & { placedAt: string };

export interface ClientOptions {
  /** Where the service is, with `/v1` at its end or without. */
  baseUrl: string | URL;
  /** `ps_live_…` or `ps_test_…`. One that was mistyped is refused here, by its checksum. */
  key: string;
  /** How long one call may take, waits and all tries together. Default 90,000: it outlives a minute window. */
  budgetMs?: number;
}

export type CallOptions = { signal?: AbortSignal };

export interface CreateOptions extends CallOptions {
  /** The same for all tries of one intention. Without one, the client makes one for each call. */
  idempotencyKey?: string;
}

export interface ListOptions extends CallOptions {
  /** 1 to 100 things a page. Without it 100, as every page costs one request. Who stops reading asks for no more. */
  limit?: number;
  /** Begin behind this id. */
  after?: AnyId;
}

/** Every method rejects with a PetstoreError, and with nothing else. Lists are asked for while they are read. */
export class PetstoreClient {
  readonly #base: URL;
  readonly #calls: Calls;

  constructor({ baseUrl, key, ...others }: ClientOptions) {
    this.#base = baseOf(baseUrl);
    const kind = environmentOf(key);
    if (kind === 'malformed') throw new TypeError('key must be ps_live_ or ps_test_ and 36 letters or digits');
    if (kind === 'mistyped') throw new TypeError('key was mistyped: its checksum is wrong');
    this.#calls = new Calls(key, others);
  }

  /** Both windows of the key's limits, as the newest reply told them. */
  get limits(): Limits | undefined {
    return this.#calls.limits;
  }

  /** The animals, by ascending id. */
  listPets(options: ListOptions & { status?: PetStatus } = {}): AsyncGenerator<Pet> {
    return this.#list('pets', options);
  }

  /** Tried under one Idempotency-Key: however often it is sent, one animal is made. */
  async createPet({ name, categoryId, status }: NewPet, options: CreateOptions = {}): Promise<Pet> {
    const others = JSON.stringify({ name: name ?? null, status }).slice(1);
    const body = `{"categoryId":${writeId(categoryId, 'categoryId')},${others}`;
    return this.#run('POST', 'pets', options, body);
  }

  /** @deprecated The service removes it on 5 December 2030: use `listPets` with a status. */
  async getPet(id: AnyId, options: CallOptions = {}): Promise<Pet> {
    return this.#run('GET', `pets/${writeId(id, 'id')}`, options);
  }

  /** Experimental, as are all categories and orders. */
  listCategories(options: ListOptions = {}): AsyncGenerator<Category> {
    return this.#list('categories', options);
  }

  /** Makes the category, or renames it. A rename by somebody else between two tries of this is undone. */
  async putCategory(id: AnyId, name: string, options: CallOptions = {}): Promise<Category> {
    return this.#run('PUT', `categories/${writeId(id, 'id')}`, options, JSON.stringify({ name }));
  }

  listOrders(options: ListOptions & { status?: OrderStatus } = {}): AsyncGenerator<Order> {
    return this.#list('store/orders', options);
  }

  async getOrder(id: AnyId, options: CallOptions = {}): Promise<Order> {
    return this.#run('GET', `store/orders/${writeId(id, 'id')}`, options);
  }

  /** The animal must be available. Tried under one Idempotency-Key, as `createPet`. */
  async placeOrder(petId: AnyId, options: CreateOptions = {}): Promise<Order> {
    return this.#run('POST', 'store/orders', options, `{"petId":${writeId(petId, 'petId')}}`);
  }

  /** Not sent again once it may have been done: after `outcomeUnknown`, `getOrder` shows what became of it. */
  async closeOrder(id: AnyId, status: 'delivered' | 'cancelled', options: CallOptions = {}): Promise<Order> {
    const path = `store/orders/${writeId(id, 'id')}`;
    return this.#run('PATCH', path, options, JSON.stringify({ status }));
  }

  /** Ends what is under way with code `closed`, and every connection that the client opened itself. */
  async close(): Promise<void> {
    await this.#calls.close();
  }

  async #run<T>(method: Asked['method'], path: string, options: CreateOptions, body?: string): Promise<T> {
    const idempotencyKey = method === 'POST' ? (options.idempotencyKey ?? randomUUID()) : undefined;
    const asked = { method, url: new URL(path, this.#base), body, idempotencyKey };
    return (await this.#calls.run(asked, options.signal)).json as T;
  }

  async *#list<T>(path: string, options: ListOptions & { status?: string }): AsyncGenerator<T, void> {
    const { signal, limit = 100, after, status } = options;
    let url: URL | undefined = new URL(path, this.#base);
    url.searchParams.set('limit', String(limit));
    if (status !== undefined) url.searchParams.set('status', status);
    if (after !== undefined) url.searchParams.set('after', writeId(after, 'after'));
    while (url !== undefined) {
      const { json, headers }: Reply = await this.#calls.run({ method: 'GET', url }, signal);
      yield* json as T[];
      url = nextPage(String(headers.link ?? ''), url);
    }
  }
}

const NEXT_LINK = /<[^<>?]*([^<>]*)>[^<]*;\s*rel\s*=\s*"?[^",;<]*\bnext\b/i;

/** Only the query of the link is taken: so a proxy may serve all under a prefix, and the key goes nowhere else. */
function nextPage(links: string, here: URL): URL | undefined {
  const query = NEXT_LINK.exec(links)?.[1];
  if (query === undefined) return undefined;
  const next = new URL(query, here);
  if (next.search !== here.search) return next;
  throw new PetstoreError('bad_reply', 'the link to the next page leads to this same page');
}

/** Its path ends in `/v1/`, below which all operations are. */
function baseOf(baseUrl: string | URL): URL {
  const base = new URL(baseUrl);
  if (!/^https?:$/.test(base.protocol) || base.username + base.search + base.hash !== '') {
    throw new TypeError('baseUrl must be an http or https address without user, query or fragment');
  }
  base.pathname = base.pathname.replace(/(?:\/v1)?\/*$/, '/v1/');
  return base;
}
