/**
 * The client of the pet store service.
 *
 *     const store = new PetstoreClient({ baseUrl: 'http://127.0.0.1:8080/v1', key });
 *     const rex = await store.createPet({ name: 'Rex', categoryId: 1 });
 *     for await (const pet of store.listPets({ status: 'available' })) console.log(pet.name);
 */
import { randomUUID } from 'node:crypto';
import { parseInt64 } from '../json/int64.ts';
import type { JsonValue } from '../json/reader.ts';
import type { Category, Int64, OrderStatus, PetStatus } from '../store/model.ts';
import { type Call, Calls, type ClientOptions } from './calls.ts';
import { header, type Reply } from './exchange.ts';
import { type NewPet, type Order, type Pet, readCategory, readOrder, readPet, writeInt, writeJson } from './shapes.ts';

export { type ClientCode, PetstoreError, type PetstoreErrorCode } from './errors.ts';
export type { Category, ClientOptions, Int64, NewPet, Order, OrderStatus, Pet, PetStatus };

export interface CallOptions {
  signal?: AbortSignal;
}

export interface CreateOptions extends CallOptions {
  /** The same for all tries of one intention. Without one, the client makes one for each call. */
  idempotencyKey?: string;
}

export interface ListOptions extends CallOptions {
  /** 1 to 100 things a page. When iterating without it: 100, as every page costs one request. */
  limit?: number;
  /** Begin behind this id. */
  after?: Int64;
}

export interface Page<T> {
  items: T[];
  /** The `after` of the next page; absent on the last one. */
  nextAfter?: Int64;
}

/** Nothing is asked before it is iterated over, or its one page is taken. */
export interface Listing<T> extends AsyncIterable<T> {
  /** One page, as the service gives it. */
  page(): Promise<Page<T>>;
}

const MAX_PAGE_ITEMS = 100;

/** Every method rejects with a PetstoreError, and with nothing else. */
export class PetstoreClient {
  readonly #base: URL;
  readonly #calls: Calls;

  constructor(options: ClientOptions) {
    this.#base = new URL(options.baseUrl);
    const { protocol, username, search, hash } = this.#base;
    if (!/^https?:$/.test(protocol) || username + search + hash !== '') {
      throw new TypeError('baseUrl is to be an http or https address without user, query or fragment');
    }
    this.#base.pathname = `${this.#base.pathname.replace(/\/+$/, '')}/`;
    this.#calls = new Calls(options);
  }

  /** The animals, by ascending id. */
  listPets(options: ListOptions & { status?: PetStatus } = {}): Listing<Pet> {
    return this.#list('listPets', 'pets', options, readPet);
  }

  /** Tried under one Idempotency-Key: however often it is sent, one animal is made. */
  async createPet(pet: NewPet, options: CreateOptions = {}): Promise<Pet> {
    return this.#run('createPet', 'POST', 'pets', readPet, options, pet);
  }

  /** @deprecated The service removes it on 5 December 2030: use `listPets` with a status. */
  async getPet(id: Int64, options: CallOptions = {}): Promise<Pet> {
    return this.#run('getPet', 'GET', `pets/${writeInt(id, 'id')}`, readPet, options);
  }

  /** Experimental, as are all categories and orders. */
  listCategories(options: ListOptions = {}): Listing<Category> {
    return this.#list('listCategories', 'categories', options, readCategory);
  }

  /** Makes the category, or renames it. A rename by somebody else between two tries of this is undone. */
  async putCategory(id: Int64, name: string, options: CallOptions = {}): Promise<Category> {
    return this.#run('putCategory', 'PUT', `categories/${writeInt(id, 'id')}`, readCategory, options, { name });
  }

  listOrders(options: ListOptions & { status?: OrderStatus } = {}): Listing<Order> {
    return this.#list('listOrders', 'store/orders', options, readOrder);
  }

  /** The animal must be available. Tried under one Idempotency-Key, as `createPet`. */
  async placeOrder(petId: Int64, options: CreateOptions = {}): Promise<Order> {
    return this.#run('placeOrder', 'POST', 'store/orders', readOrder, options, { petId });
  }

  /**
   * `order_closed` with `outcomeUnknown` means: a try of this call got no reply, so it is either what closed the
   * order or came too late. `listOrders({ after: id - 1, limit: 1 })` shows what became of it.
   */
  async closeOrder(id: Int64, status: 'delivered' | 'cancelled', options: CallOptions = {}): Promise<Order> {
    return this.#run('closeOrder', 'PATCH', `store/orders/${writeInt(id, 'id')}`, readOrder, options, { status });
  }

  /** Ends what is under way with code `closed`, and every connection that the client opened itself. */
  async close(): Promise<void> {
    await this.#calls.close();
  }

  #run<T>(
    name: string,
    method: Call<T>['method'],
    path: string,
    read: (json: JsonValue) => T,
    { signal, idempotencyKey }: CreateOptions,
    members?: object,
  ): Promise<T> {
    return this.#calls.run({
      name,
      method,
      url: new URL(path, this.#base),
      body: members && writeJson(members),
      idempotencyKey: method === 'POST' ? (idempotencyKey ?? randomUUID()) : undefined,
      signal,
      read: ({ json }) => read(json),
    });
  }

  #list<T>(
    name: string,
    path: string,
    { signal, ...query }: ListOptions & { status?: string },
    read: (item: JsonValue) => T,
  ): Listing<T> {
    const first = (limit: number | undefined) => {
      const url = new URL(path, this.#base);
      for (const [key, value] of Object.entries({ ...query, limit })) {
        if (value !== undefined) url.searchParams.set(key, typeof value === 'string' ? value : writeInt(value, key));
      }
      return url;
    };
    const pageAt = (url: URL) => {
      const readPage = (reply: Reply) => {
        if (!Array.isArray(reply.json)) throw new TypeError('not an array');
        return { items: reply.json.map(read), next: nextPage(header(reply, 'link'), url, this.#base) };
      };
      return this.#calls.run({ name, method: 'GET', url, signal, read: readPage });
    };
    return {
      page: async () => {
        const { items, next } = await pageAt(first(query.limit));
        return { items, nextAfter: parseInt64(next?.searchParams.get('after') ?? '') };
      },
      async *[Symbol.asyncIterator]() {
        for (let url: URL | undefined = first(query.limit ?? MAX_PAGE_ITEMS); url !== undefined; ) {
          const page: { items: T[]; next: URL | undefined } = await pageAt(url);
          yield* page.items;
          url = page.next;
        }
      },
    };
  }
}

/** A link of a `Link` header (RFC 8288): its target, then its parameters; and one of these. */
const LINK = /<([^>]*)>((?:\s*;\s*[^;,="\s]+(?:\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^",;\s]+))?)*)/g;
const PARAMETER = /;\s*([^;,="\s]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^",;\s]+)))?/g;

/** The next page, if there is one. The key goes along with every request, so only to where the client was pointed. */
function nextPage(links = '', here: URL, base: URL): URL | undefined {
  for (const [, target, parameters] of links.matchAll(LINK)) {
    const rel = [...parameters.matchAll(PARAMETER)].find(([, name]) => name.toLowerCase() === 'rel');
    if (!(rel?.[2] ?? rel?.[3] ?? '').toLowerCase().split(/\s+/).includes('next')) continue;
    const next = URL.canParse(target, here.href) ? new URL(target, here) : undefined;
    if (next?.origin === base.origin && next.pathname.startsWith(base.pathname) && next.href !== here.href) return next;
    throw new TypeError('the link to the next page leads out of the service, or to this same page');
  }
  return undefined;
}
