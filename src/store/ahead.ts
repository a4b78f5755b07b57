/**
 * The state as it will be when a batch is durable: what its decisions are shown, one after the other. It copies
 * nothing: over each table of the state lies a layer of the rows that operations of the batch have changed.
 */
import type { Int64 } from '../json/int64.ts';
import type { Ahead, ApiKey, Category, Counters, Made, Once, OnceKind, Operation, Order, Pet, Usage } from './model.ts';
import { StoreError } from './model.ts';
import { madeIn, perform, type Rows, type Tables } from './operations.ts';
import type { State } from './state.ts';

/** Beyond these, a new key or category is refused as there being no room. */
export const MAX_KEYS = 1_000_000;
const MAX_CATEGORIES = 1_000_000;
/** Beyond this, writes under a new Idempotency-Key are refused as busy until old ones expire. */
const MAX_ONCE_RECORDS = 1_000_000;

/** Rows that are decided but not durable, over those that are. */
class Layer<K, V> {
  readonly own = new Map<K, V>();
  #below: Pick<Rows<K, V>, 'size' | 'get'>;

  constructor(below: Pick<Rows<K, V>, 'size' | 'get'>) {
    this.#below = below;
  }

  /** At most: a row over another is counted twice. */
  get size(): number {
    return this.#below.size + this.own.size;
  }

  get(key: K): V | undefined {
    return this.own.get(key) ?? this.#below.get(key);
  }

  set(key: K, row: V): void {
    this.own.set(key, row);
  }

  load(first: number, rows: unknown[], rowAt: (i: number) => V): void {
    for (let i = 0; i < rows.length; i++) this.own.set((first + i) as K, rowAt(i));
  }

  clear(): void {
    this.own.clear();
    this.#below = new Map();
  }
}

export class StateAhead implements Ahead, Tables {
  readonly counters: Counters;
  readonly pets: Layer<number, Pet>;
  readonly orders: Layer<number, Order>;
  readonly categories: Layer<Int64, Category>;
  readonly keys: Layer<string, ApiKey>;
  readonly onces: Layer<string, Made>;
  /** No decision looks at it. */
  readonly usage = new Map<string, Usage>();
  readonly #state: State;

  constructor(state: State) {
    this.#state = state;
    this.counters = { ...state.counters };
    this.pets = new Layer(state.pets);
    this.orders = new Layer(state.orders);
    this.categories = new Layer(state.categories);
    this.keys = new Layer(state.keys);
    this.onces = new Layer(state.onces);
  }

  allKeys(): Iterable<ApiKey> {
    return new Map([...this.#state.keys, ...this.keys.own]).values();
  }

  isEmpty(): boolean {
    const { nextPetId, nextOrderId } = this.counters;
    return nextPetId === 1 && nextOrderId === 1 && this.categories.size === 0;
  }

  made(kind: OnceKind, once: Once): Made | undefined {
    return madeIn(this, kind, once);
  }

  /** Refuses what there is no room for. */
  apply(operation: Operation): void {
    const { op } = operation;
    if ('once' in operation && operation.once && this.onces.size >= MAX_ONCE_RECORDS) {
      throw new StoreError('busy', 'there are too many idempotency records; old ones expire after 24 hours');
    }
    if (op === 'setCategory' && !this.categories.get(operation.category.id) && this.categories.size >= MAX_CATEGORIES) {
      throw new StoreError('full', 'there are too many categories');
    }
    if (op === 'setKey' && !this.keys.get(operation.key.id) && this.keys.size >= MAX_KEYS) {
      throw new StoreError('full', 'there are too many keys');
    }
    perform(operation, this);
  }
}
