import type { Ahead, ApiKey, Category, Int64, OnceKind, Operation, Order, Pet } from './model.ts';
import { onceKey } from './onces.ts';
import type { State } from './state.ts';

/** What the operations of one batch change. */
class Changes {
  readonly pets = new Map<number, Pet>();
  readonly orders = new Map<number, Order>();
  readonly categories = new Map<Int64, Category>();
  readonly keys = new Map<string, ApiKey>();
  readonly imports = new Map<number, number | undefined>();
  readonly onces = new Set<string>();
}

/**
 * The state as it will be: what is durable, then the batch on its way to the disk, then the batch that collects.
 * A batch that became durable is in the state, one that failed is refused with all that was decided after it: in
 * either case its changes here are dropped as a whole.
 */
export class AheadView implements Ahead {
  readonly #state: State;
  #sent = new Changes();
  #collecting = new Changes();
  /** As of the newest change accepted; behind the state's when there is none. */
  #nextPetId = 0;
  #nextOrderId = 0;

  constructor(state: State) {
    this.#state = state;
  }

  nextPetId(): number {
    return Math.max(this.#nextPetId, this.#state.nextPetId);
  }

  nextOrderId(): number {
    return Math.max(this.#nextOrderId, this.#state.nextOrderId);
  }

  keyCount(): number {
    let count = this.#state.keyTable.size;
    for (const changes of [this.#sent, this.#collecting]) {
      for (const key of changes.keys.values()) count = Math.max(count, key.slot + 1);
    }
    return count;
  }

  /** Never too low, and exact when nothing is under way. */
  categoryCount(): number {
    return this.#state.categoryTable.size + this.#sent.categories.size + this.#collecting.categories.size;
  }

  /** Never too low, and exact when nothing is under way. */
  onceCount(): number {
    return this.#state.onces.size + this.#sent.onces.size + this.#collecting.onces.size;
  }

  pet(id: number): Pet | undefined {
    return this.#collecting.pets.get(id) ?? this.#sent.pets.get(id) ?? this.#state.pet(id);
  }

  order(id: number): Order | undefined {
    return this.#collecting.orders.get(id) ?? this.#sent.orders.get(id) ?? this.#state.order(id);
  }

  category(id: Int64): Category | undefined {
    return this.#collecting.categories.get(id) ?? this.#sent.categories.get(id) ?? this.#state.category(id);
  }

  key(id: string): ApiKey | undefined {
    return this.#collecting.keys.get(id) ?? this.#sent.keys.get(id) ?? this.#state.key(id);
  }

  /** How many ids the import under way that begins at `first` has set aside. */
  importOf(first: number): number | undefined {
    if (this.#collecting.imports.has(first)) return this.#collecting.imports.get(first);
    if (this.#sent.imports.has(first)) return this.#sent.imports.get(first);
    return this.#state.imports.get(first);
  }

  isEmpty(): boolean {
    return this.nextPetId() === 1 && this.nextOrderId() === 1 && this.categoryCount() === 0;
  }

  inFlight(kind: OnceKind, caller: string, key: string): boolean {
    const place = onceKey(kind, caller, key);
    return this.#collecting.onces.has(place) || this.#sent.onces.has(place);
  }

  /** The batch that collected goes to the disk; the next one collects. */
  send(): void {
    this.#sent = this.#collecting;
    this.#collecting = new Changes();
  }

  /** What was sent is in the state. */
  settle(): void {
    this.#sent = new Changes();
  }

  /** Nothing that was accepted will come to be. */
  clear(): void {
    this.#sent = new Changes();
    this.#collecting = new Changes();
    this.#nextPetId = 0;
    this.#nextOrderId = 0;
  }

  add(operation: Operation): void {
    const changes = this.#collecting;
    switch (operation.op) {
      case 'addPet':
        this.#addPet(operation.pet);
        break;
      case 'placeOrder':
        changes.orders.set(operation.order.id, operation.order);
        changes.pets.set(operation.order.petId, { ...this.pet(operation.order.petId)!, status: 'pending' });
        this.#nextOrderId = operation.order.id + 1;
        break;
      case 'closeOrder': {
        const order = this.order(operation.id)!;
        const status = operation.status === 'delivered' ? 'sold' : 'available';
        changes.pets.set(order.petId, { ...this.pet(order.petId)!, status });
        changes.orders.set(order.id, { ...order, status: operation.status });
        break;
      }
      case 'setCategory':
        changes.categories.set(operation.category.id, operation.category);
        break;
      case 'setKey':
        changes.keys.set(operation.key.id, operation.key);
        break;
      case 'seed':
        for (const category of operation.categories) changes.categories.set(category.id, category);
        for (const pet of operation.pets) this.#addPet(pet);
        break;
      case 'beginImport':
        changes.imports.set(operation.first, operation.count);
        this.#nextPetId = operation.first + operation.count;
        break;
      case 'endImport':
        changes.imports.set(operation.first, undefined);
        break;
    }
    if ('once' in operation && operation.once) {
      changes.onces.add(onceKey(operation.op, operation.once.caller, operation.once.key));
    }
  }

  #addPet(pet: Pet): void {
    this.#collecting.pets.set(pet.id, pet);
    this.#nextPetId = pet.id + 1;
  }
}
