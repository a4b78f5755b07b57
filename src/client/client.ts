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
import { type Call, Calls } from './calls.ts';
import { nextPage } from './links.ts';
import { readCategory, readList, readOrder, readPet, writeInt, writeJson } from './shapes.ts';
import type {
  CallOptions,
  Category,
  ClientOptions,
  CreateOptions,
  Int64,
  Listing,
  ListOptions,
  NewPet,
  Order,
  OrderStatus,
  Pet,
  PetStatus,
} from './types.ts';

export { type ClientCode, PetstoreError, type PetstoreErrorCode } from './errors.ts';
export type * from './types.ts';

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
    return this.#run('createPet', 'POST', 'pets', readPet, { ...once(options), body: writeJson(pet) });
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
    const path = `categories/${writeInt(id, 'id')}`;
    return this.#run('putCategory', 'PUT', path, readCategory, { ...options, body: writeJson({ name }) });
  }

  listOrders(options: ListOptions & { status?: OrderStatus } = {}): Listing<Order> {
    return this.#list('listOrders', 'store/orders', options, readOrder);
  }

  /** The animal must be available. Tried under one Idempotency-Key, as `createPet`. */
  async placeOrder(petId: Int64, options: CreateOptions = {}): Promise<Order> {
    const body = writeJson({ petId });
    return this.#run('placeOrder', 'POST', 'store/orders', readOrder, { ...once(options), body });
  }

  /**
   * `order_closed` with `outcomeUnknown` means: a try of this call got no reply, so it is either what closed the
   * order or came too late. `listOrders({ after: id - 1, limit: 1 })` shows what became of it.
   */
  async closeOrder(id: Int64, status: 'delivered' | 'cancelled', options: CallOptions = {}): Promise<Order> {
    const path = `store/orders/${writeInt(id, 'id')}`;
    return this.#run('closeOrder', 'PATCH', path, readOrder, { ...options, body: writeJson({ status }) });
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
    more: Pick<Call<T>, 'body' | 'idempotencyKey' | 'signal'>,
  ): Promise<T> {
    const url = new URL(path, this.#base);
    return this.#calls.run({ ...more, name, method, url, read: ({ json }) => read(json as JsonValue) });
  }

  #list<T>(
    name: string,
    path: string,
    options: ListOptions & { status?: string },
    read: (item: JsonValue) => T,
  ): Listing<T> {
    const { signal, ...query } = options;
    const first = (limit = query.limit) => {
      const url = new URL(path, this.#base);
      for (const [key, value] of Object.entries({ ...query, limit })) {
        if (value !== undefined) url.searchParams.set(key, typeof value === 'string' ? value : writeInt(value, key));
      }
      return url;
    };
    const pageAt = (url: URL) =>
      this.#calls.run<{ items: T[]; next: URL | undefined }>({
        name,
        method: 'GET',
        url,
        signal,
        read: ({ json, headers }) => ({
          items: readList(json as JsonValue, read),
          next: nextPage(headers.get('link'), url, this.#base),
        }),
      });
    return {
      page: async () => {
        const { items, next } = await pageAt(first());
        return { items, nextAfter: parseInt64(next?.searchParams.get('after') ?? '') };
      },
      async *[Symbol.asyncIterator]() {
        let url: URL | undefined = first(query.limit ?? MAX_PAGE_ITEMS);
        while (url !== undefined) {
          const { items, next }: { items: T[]; next: URL | undefined } = await pageAt(url);
          yield* items;
          url = next;
        }
      },
    };
  }
}

function once({ signal, idempotencyKey = randomUUID() }: CreateOptions): CreateOptions {
  return { signal, idempotencyKey };
}
