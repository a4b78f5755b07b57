import type { Int64 } from '../json/int64.ts';
import type { Operation, Order, Pet } from './model.ts';
import { type Ahead, type ApiKey, type Category, type Made, type Once, type OnceKind, StoreError } from './model.ts';
import { type Counters, onceKey, perform, type Tables } from './operations.ts';
import type { State } from './state.ts';

/** Beyond these, a new key or category is refused as there being no room. */
export const MAX_KEYS = 1_000_000;
const MAX_CATEGORIES = 1_000_000;
/** Beyond this, writes under a new Idempotency-Key are refused as busy until old ones expire. */
const MAX_ONCE_RECORDS = 1_000_000;

/**
 * Rows that are accepted but not durable, over those that are: of the batch that collects, over the one that was sent.
 */
class Layer<K, V> {
  readonly #below: { readonly size: number; get(key: K): V | undefined };
  #collecting = new Map<K, V>();
  #sent = new Map<K, V>();

  constructor(below: { readonly size: number; get(key: K): V | undefined }) {
    this.#below = below;
  }

  /** At most: a row over another is counted twice until it is durable. */
  get maxSize(): number {
    return this.#below.size + this.#sent.size + this.#collecting.size;
  }

  get(key: K): V | undefined {
    return this.#collecting.get(key) ?? this.#sent.get(key) ?? this.#below.get(key);
  }

  set(key: K, row: V): void {
    this.#collecting.set(key, row);
  }

  /** Keys of the rows that are not durable. */
  own(): Set<K> {
    return new Set([...this.#sent.keys(), ...this.#collecting.keys()]);
  }

  has(key: K): boolean {
    return this.#collecting.has(key) || this.#sent.has(key);
  }

  /** What has collected is sent; what was sent before is below. */
  send(): void {
    [this.#sent, this.#collecting] = [this.#collecting, this.#sent];
    this.#collecting.clear();
  }

  settle(): void {
    this.#sent.clear();
  }
}

/** The state as it will be when everything that was accepted is durable. */
export class StateAhead implements Ahead, Tables {
  readonly counters: Counters;
  readonly petTable: Layer<number, Pet>;
  readonly orderTable: Layer<number, Order>;
  /** No decision looks at it. */
  readonly usageTable = { set: () => {} };
  readonly #state: State;
  readonly #categories: Layer<Int64, Category>;
  readonly #keys: Layer<string, ApiKey>;
  readonly #onces: Layer<string, Made>;
  readonly #layers: { send(): void; settle(): void }[];

  constructor(state: State) {
    this.#state = state;
    this.counters = { ...state.counters };
    this.petTable = new Layer(state.petTable);
    this.orderTable = new Layer(state.orderTable);
    this.#categories = new Layer(state.categoryTable);
    this.#keys = new Layer(state.keyTable);
    this.#onces = new Layer(state.onces);
    this.#layers = [this.petTable, this.orderTable, this.#categories, this.#keys, this.#onces];
  }

  readonly nextPetId = (): number => this.counters.nextPetId;
  readonly nextOrderId = (): number => this.counters.nextOrderId;
  readonly keyCount = (): number => this.counters.nextSlot;
  readonly pet = (id: number): Pet | undefined => this.petTable.get(id);
  readonly order = (id: number): Order | undefined => this.orderTable.get(id);
  readonly category = (id: Int64): Category | undefined => this.#categories.get(id);
  readonly key = (id: string): ApiKey | undefined => this.#keys.get(id);

  *keys(): Generator<ApiKey> {
    for (const key of this.#state.keys()) yield this.key(key.id)!;
    for (const id of this.#keys.own()) if (!this.#state.key(id)) yield this.key(id)!;
  }

  isEmpty(): boolean {
    return this.nextPetId() === 1 && this.nextOrderId() === 1 && this.#categories.maxSize === 0;
  }

  made(kind: OnceKind, once: Once): Made | 'accepted' | undefined {
    return this.#onces.has(onceKey(kind, once)) ? 'accepted' : this.#state.made(kind, once);
  }

  /** Refuses what there is no room for. */
  take(operation: Operation): void {
    if ('once' in operation && operation.once && this.#onces.maxSize >= MAX_ONCE_RECORDS) {
      throw new StoreError('busy', 'there are too many idempotency records; old ones expire after 24 hours');
    }
    const { op } = operation;
    if (op === 'setCategory' && !this.category(operation.category.id) && this.#categories.maxSize >= MAX_CATEGORIES) {
      throw new StoreError('full', 'there are too many categories');
    }
    if (op === 'setKey' && !this.key(operation.key.id) && this.#keys.maxSize >= MAX_KEYS) {
      throw new StoreError('full', 'there are too many keys');
    }
    perform(operation, this);
  }

  send(): void {
    for (const layer of this.#layers) layer.send();
  }

  settle(): void {
    for (const layer of this.#layers) layer.settle();
  }

  readonly setCategory = (category: Category): void => this.#categories.set(category.id, category);
  readonly setKey = (key: ApiKey): void => this.#keys.set(key.id, key);
  readonly setOnce = (place: string, made: Made): void => this.#onces.set(place, made);
  /** No decision looks at what has expired. */
  readonly passed = (): void => {};
  /** Nothing is decided on what `fill` and `advance` leave before that is durable: here only the ids must be right. */
  readonly age = this.passed;
  readonly empty = (): void => void Object.assign(this.counters, { nextPetId: 1, nextOrderId: 1 });
}
