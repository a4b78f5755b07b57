import type { Ahead, ApiKey, Category, Int64, Made, NewPet, Order, Pet, Usage } from './model.ts';
import { onceKey } from './onces.ts';
import type { State } from './state.ts';

interface Rows<K, V> {
  readonly size: number;
  get(key: K): V | undefined;
}

/** A table in which the rows that are set lie over those of a table below. */
class Layer<K, V> implements Rows<K, V> {
  readonly #below: () => Rows<K, V>;
  readonly #own = new Map<K, V>();
  #added = 0;

  constructor(below: () => Rows<K, V>) {
    this.#below = below;
  }

  get size(): number {
    return this.#below().size + this.#added;
  }

  get(key: K): V | undefined {
    return this.#own.get(key) ?? this.#below().get(key);
  }

  set(key: K, row: V): void {
    if (this.get(key) === undefined) this.#added++;
    this.#own.set(key, row);
  }

  /** Whether it was set here. */
  holds(key: K): boolean {
    return this.#own.has(key);
  }
}

/**
 * The state as it will be: what the operations of one batch change, over the batch before it, over the state. When the
 * batch before it is durable it lies on the state alone; when one fails, all that was decided since goes with it.
 */
export class Pending {
  below: State | Pending;
  readonly counters: State['counters'];
  readonly petTable: Layer<number, Pet> = new Layer(() => this.below.petTable);
  readonly orderTable: Layer<number, Order> = new Layer(() => this.below.orderTable);
  readonly categoryTable: Layer<Int64, Category> = new Layer(() => this.below.categoryTable);
  readonly keyTable: Layer<string, ApiKey> = new Layer(() => this.below.keyTable);
  readonly usageTable: Layer<string, Usage> = new Layer(() => this.below.usageTable);
  readonly onces: Layer<string, Made> = new Layer(() => this.below.onces);
  readonly imports: Layer<string, { count: number }> = new Layer(() => this.below.imports);

  constructor(below: State | Pending) {
    this.below = below;
    this.counters = { ...below.counters };
  }

  bring(name: string, pets: readonly NewPet[]): void {
    this.imports.set(name, { count: (this.imports.get(name)?.count ?? 0) + pets.length });
  }

  /** Its animals are not looked at before they are durable. */
  endImport(name: string, first: number): void {
    this.counters.nextPetId = first + this.imports.get(name)!.count;
    this.imports.set(name, { count: 0 });
  }

  /** No decision looks at what has expired. */
  dropExpired(): void {}
}

/** What a decision sees of it: of the batch that collects now. */
export function aheadOf(now: () => Pending): Ahead {
  return {
    nextPetId: () => now().counters.nextPetId,
    nextOrderId: () => now().counters.nextOrderId,
    keyCount: () => now().keyTable.size,
    pet: (id) => now().petTable.get(id),
    order: (id) => now().orderTable.get(id),
    category: (id) => now().categoryTable.get(id),
    key: (id) => now().keyTable.get(id),
    isEmpty: () => isEmpty(now()),
    inFlight(kind, caller, key) {
      const place = onceKey(kind, caller, key);
      const { onces, below } = now();
      return onces.holds(place) || (below instanceof Pending && below.onces.holds(place));
    },
  };
}

/** Whether no id was ever given, and no category set. */
export function isEmpty({ counters, categoryTable }: State | Pending): boolean {
  return counters.nextPetId === 1 && counters.nextOrderId === 1 && categoryTable.size === 0;
}
