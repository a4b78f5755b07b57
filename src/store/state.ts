import type { Int64 } from '../json/int64.ts';
import type {
  ApiKey,
  Category,
  Counts,
  Made,
  Once,
  OnceKind,
  Operation,
  Order,
  OrderStatus,
  Page,
  Pet,
  PetStatus,
  Reading,
  Usage,
} from './model.ts';
import { ORDER_STATUSES, PET_STATUSES } from './model.ts';
import { type Counters, isExpired, onceKey, perform, type Tables } from './operations.ts';
import { Table } from './table.ts';

/** Expired idempotency records are dropped a few at a time, so that no write pays for all of them. */
const DROPS_PER_RECORD = 64;
const ITEMS_PER_LINE = 512;

/** A piece of a whole state. These, and some operations, make it out of nothing. */
export type Part =
  | { op: 'pets'; first: number; statuses: string; names: string[]; categoryIds: Int64[] }
  | { op: 'orders'; first: number; statuses: string; petIds: number[]; placedAts: number[] }
  | { op: 'onces'; onces: [place: string, made: Made][] };

/** Everything that is kept, in memory. */
export class State implements Tables, Reading {
  /** The latest store time that any record tells. */
  time = 0;
  readonly counters: Counters = { nextPetId: 1, nextOrderId: 1, nextSlot: 0 };
  readonly petTable = new Table<PetStatus, Pet, string, Int64>(PET_STATUSES, {
    row: (id, name, categoryId, status) => ({ id, name, categoryId, status }),
    a: ({ name }) => name,
    b: ({ categoryId }) => categoryId,
  });
  readonly orderTable = new Table<OrderStatus, Order, number, number>(ORDER_STATUSES, {
    row: (id, petId, placedAt, status) => ({ id, petId, status, placedAt }),
    a: ({ petId }) => petId,
    b: ({ placedAt }) => placedAt,
  });
  readonly categoryTable = new Map<Int64, Category>();
  readonly keyTable = new Map<string, ApiKey>();
  readonly usageTable = new Map<string, Usage>();
  /** Oldest first. Time comes from the records, never from a clock: a replay drops exactly what was dropped before. */
  readonly onces = new Map<string, Made>();
  readonly #keysByDigest = new Map<string, ApiKey>();
  readonly #categoryIds: Int64[] = [];

  get petsVersion(): number {
    return this.petTable.version;
  }

  readonly pet = (id: number): Pet | undefined => this.petTable.get(id);
  readonly order = (id: number): Order | undefined => this.orderTable.get(id);
  readonly category = (id: Int64): Category | undefined => this.categoryTable.get(id);
  readonly key = (id: string): ApiKey | undefined => this.keyTable.get(id);
  readonly keyByDigest = (digest: string): ApiKey | undefined => this.#keysByDigest.get(digest);
  readonly keys = (): Iterable<ApiKey> => this.keyTable.values();
  readonly usage = (keyId: string): Usage | undefined => this.usageTable.get(keyId);

  pets(after: number, limit: number, status?: PetStatus): Page<Pet> {
    return this.petTable.page(after, limit, status);
  }

  orders(after: number, limit: number, status?: OrderStatus): Page<Order> {
    return this.orderTable.page(after, limit, status);
  }

  categories(after: Int64 | undefined, limit: number): Page<Category> {
    let from = after === undefined ? 0 : this.#categoryPlace(after);
    if (after !== undefined && this.#categoryIds[from] === after) from++;
    const items = this.#categoryIds.slice(from, from + limit).map((id) => this.categoryTable.get(id)!);
    return { items, more: from + limit < this.#categoryIds.length };
  }

  made(kind: OnceKind, once: Once): Made | undefined {
    const made = this.onces.get(onceKey(kind, once));
    return made === undefined || isExpired(made, once.at) ? undefined : made;
  }

  counts(): Counts {
    const { petTable, orderTable, categoryTable, keyTable } = this;
    return { pets: petTable.size, orders: orderTable.size, categories: categoryTable.size, keys: keyTable.size };
  }

  take(entries: readonly (Operation | Part)[]): void {
    for (const entry of entries) {
      switch (entry.op) {
        case 'pets':
          this.petTable.load(entry.first, entry.statuses, entry.names, entry.categoryIds);
          this.counters.nextPetId = entry.first + entry.names.length;
          break;
        case 'orders':
          this.orderTable.load(entry.first, entry.statuses, entry.petIds, entry.placedAts);
          this.counters.nextOrderId = entry.first + entry.petIds.length;
          break;
        case 'onces':
          for (const [place, made] of entry.onces) this.onces.set(place, made);
          break;
        default:
          perform(entry, this);
      }
    }
  }

  setCategory(category: Category): void {
    const { id } = category;
    if (!this.categoryTable.has(id)) this.#categoryIds.splice(this.#categoryPlace(id), 0, id);
    this.categoryTable.set(id, category);
  }

  setKey(key: ApiKey): void {
    for (const { digest } of this.keyTable.get(key.id)?.secrets ?? []) this.#keysByDigest.delete(digest);
    for (const { digest } of key.secrets) this.#keysByDigest.set(digest, key);
    this.keyTable.set(key.id, key);
  }

  setOnce(place: string, made: Made): void {
    this.onces.delete(place); // so that the newest stands last
    this.onces.set(place, made);
  }

  passed(at: number): void {
    this.time = Math.max(this.time, at);
    let drops = 0;
    for (const [place, made] of this.onces) {
      if (!isExpired(made, this.time) || ++drops > DROPS_PER_RECORD) return;
      this.onces.delete(place);
    }
  }

  empty(): void {
    this.petTable.clear();
    this.orderTable.clear();
    this.categoryTable.clear();
    this.#categoryIds.length = 0;
    this.onces.clear();
    Object.assign(this.counters, { nextPetId: 1, nextOrderId: 1 });
  }

  age(caller: string, ms: number): void {
    for (const [place, made] of this.onces) {
      if (place.split('\n')[1] === caller) this.onces.set(place, { ...made, at: made.at - ms });
    }
  }

  /** What makes this state out of nothing, but for counters and time. None of it speaks of what comes later. */
  *operations(): Generator<Operation | Part> {
    for (const { first, statuses, a, b } of this.petTable.columns()) {
      yield { op: 'pets', first, statuses, names: a, categoryIds: b };
    }
    for (const { first, statuses, a, b } of this.orderTable.columns()) {
      yield { op: 'orders', first, statuses, petIds: a, placedAts: b };
    }
    for (const id of this.#categoryIds) yield { op: 'setCategory', category: this.category(id)! };
    for (const key of this.keys()) yield { op: 'setKey', key };
    const all = [...this.keyTable.keys()].flatMap((id) => this.usage(id) ?? []);
    const used = all.filter(({ dayUsed, banStep }) => dayUsed > 0 || banStep > 0);
    for (const entries of pieces(used)) yield { op: 'usage', at: 0, entries };
    for (const onces of pieces([...this.onces])) yield { op: 'onces', onces };
  }

  /** Throws where the state contradicts itself. */
  check(): void {
    const { nextPetId, nextOrderId, nextSlot } = this.counters;
    const tooHigh = this.pets(nextPetId - 1, 1).items[0] ?? this.orders(nextOrderId - 1, 1).items[0];
    if (tooHigh) throw new Error(`${tooHigh.id} is an id that was not given yet`);
    const placed = new Set<number>();
    for (const { id, petId, status } of this.orders(0, Number.POSITIVE_INFINITY).items) {
      const pet = this.pet(petId);
      if (!pet) throw new Error(`order ${id}: there is no pet ${petId}`);
      if (status !== 'placed') continue;
      if (pet.status !== 'pending') throw new Error(`order ${id} is placed, and pet ${petId} ${pet.status}`);
      if (placed.has(petId)) throw new Error(`pet ${petId}: two orders are placed`);
      placed.add(petId);
    }
    const slots = [...this.keys()].map(({ slot }) => slot);
    if (slots.some((slot, i) => slot <= (slots[i - 1] ?? -1) || slot >= nextSlot)) throw new Error(`slots: ${slots}`);
    const secrets = [...this.keys()].flatMap((key) =>
      key.secrets.map(({ digest }) => this.keyByDigest(digest) === key),
    );
    if (secrets.includes(false) || secrets.length !== this.#keysByDigest.size)
      throw new Error('keys and secrets disagree');
    for (const id of this.usageTable.keys()) if (!this.key(id)) throw new Error(`usage of ${id}: there is no such key`);
  }

  /** Where the id stands, or would stand, among those of all categories. Numbers and bigints compare by value. */
  #categoryPlace(id: Int64): number {
    const ids = this.#categoryIds;
    let low = 0;
    let high = ids.length;
    if (high > 0 && ids[high - 1] < id) return high;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (ids[middle] < id) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function* pieces<T>(items: T[]): Generator<T[]> {
  for (let from = 0; from < items.length; from += ITEMS_PER_LINE) yield items.slice(from, from + ITEMS_PER_LINE);
}
