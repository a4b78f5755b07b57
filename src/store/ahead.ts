/**
 * The state as it will be when a batch is durable: what its decisions are shown, one after the other. It copies
 * nothing: over each table of the state lies a layer of the rows that operations of the batch have changed.
 */
import { type Ahead, type Operation, StoreError, type Usage } from './model.ts';
import { isExpired, onceId, perform } from './operations.ts';
import type { State } from './state.ts';

/** Beyond these, a new key or category is refused as there being no room. */
export const MAX_KEYS = 1_000_000;
const MAX_CATEGORIES = 1_000_000;
/** Beyond this, writes under a new Idempotency-Key are refused as busy until old ones expire. */
const MAX_ONCE_RECORDS = 1_000_000;

/** Rows that are decided but not durable, over those that are: `get` finds both, all else tells of these alone. */
class Layer<K, V> extends Map<K, V> {
  #below: Pick<Map<K, V>, 'size' | 'get'>;

  constructor(below: Pick<Map<K, V>, 'size' | 'get'>) {
    super();
    this.#below = below;
  }

  /** At most: a row over another is counted twice. */
  get sizeOfBoth(): number {
    return this.#below.size + this.size;
  }

  override get(key: K): V | undefined {
    return super.get(key) ?? this.#below.get(key);
  }

  load(first: number, rows: unknown[], rowAt: (i: number) => V): void {
    for (let i = 0; i < rows.length; i++) this.set((first + i) as K, rowAt(i));
  }

  override clear(): void {
    super.clear();
    this.#below = new Map();
  }
}

/** What decisions are shown, and how the next one is shown what one has come to. */
export type StateAhead = Ahead & { apply(operation: Operation): void };

export function aheadOf(state: State): StateAhead {
  const tables = {
    counters: { ...state.counters },
    pets: new Layer(state.pets),
    orders: new Layer(state.orders),
    categories: new Layer(state.categories),
    keys: new Layer(state.keys),
    onces: new Layer(state.onces),
    /** No decision looks at it. */
    usage: new Map<string, Usage>(),
  };
  const { counters, categories, keys, onces } = tables;
  return {
    ...tables,
    allKeys: () => new Map([...state.keys, ...keys]).values(),
    isEmpty: () => counters.nextPetId === 1 && counters.nextOrderId === 1 && categories.sizeOfBoth === 0,
    made(kind, once) {
      const id = onceId(kind, once);
      if (onces.has(id)) return 'accepted';
      const made = onces.get(id);
      return made && !isExpired(id, made, once.at, tables) ? made : undefined;
    },
    /** Refuses what there is no room for. */
    apply(operation) {
      const { op } = operation;
      if ('once' in operation && operation.once && onces.sizeOfBoth >= MAX_ONCE_RECORDS) {
        throw new StoreError('busy', 'there are too many idempotency records; old ones expire after 24 hours');
      }
      if (op === 'setCategory' && !categories.get(operation.category.id) && categories.sizeOfBoth >= MAX_CATEGORIES) {
        throw new StoreError('full', 'there are too many categories');
      }
      if (op === 'setKey' && !keys.get(operation.key.id) && keys.sizeOfBoth >= MAX_KEYS) {
        throw new StoreError('full', 'there are too many keys');
      }
      perform(operation, tables);
    },
  };
}
