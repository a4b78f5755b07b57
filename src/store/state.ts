import { Categories } from './categories.ts';
import { Keys } from './keys.ts';
import type { Int64, Made, NewPet, OnceKind, Order, OrderStatus, Pet, PetStatus, Reading, Usage } from './model.ts';
import { ORDER_STATUSES, PET_STATUSES } from './model.ts';
import { isExpired, Onces, onceKey } from './onces.ts';
import { Column, Table } from './table.ts';

/** Some 0.2 ms. */
const ROWS_PER_STEP = 500;

/** Everything that is kept, in memory. Changed by operations (operations.ts), and by loading a snapshot. */
export class State {
  readonly counters = { nextPetId: 1, nextOrderId: 1 };
  readonly names = new Column('');
  readonly categoryIds = new Column<Int64>(0);
  readonly petTable = new Table<PetStatus, Pet>(PET_STATUSES, {
    read: (id, status) => ({ id, name: this.names.get(id), categoryId: this.categoryIds.get(id), status }),
    write: ({ id, name, categoryId }) => {
      this.names.set(id, name);
      this.categoryIds.set(id, categoryId);
    },
  });
  readonly petIds = new Column(0);
  readonly placedAts = new Column(0);
  readonly orderTable = new Table<OrderStatus, Order>(ORDER_STATUSES, {
    read: (id, status) => ({ id, petId: this.petIds.get(id), status, placedAt: this.placedAts.get(id) }),
    write: ({ id, petId, placedAt }) => {
      this.petIds.set(id, petId);
      this.placedAts.set(id, placedAt);
    },
  });
  readonly categoryTable = new Categories();
  readonly keyTable = new Keys();
  readonly usageTable = new Map<string, Usage>();
  readonly onces = new Onces();
  /** What imports that are under way have brought, by their names. */
  readonly imports = new Map<string, { count: number; taken: number; parts: (readonly NewPet[])[] }>();

  made(kind: OnceKind, caller: string, key: string, at: number): Made | undefined {
    const made = this.onces.get(onceKey(kind, caller, key));
    return made && !isExpired(made, at) ? made : undefined;
  }

  counts(): { pets: number; orders: number; categories: number; keys: number } {
    return {
      pets: this.petTable.size,
      orders: this.orderTable.size,
      categories: this.categoryTable.size,
      keys: this.keyTable.size,
    };
  }

  bring(name: string, pets: readonly NewPet[]): void {
    const brought = this.imports.get(name) ?? { count: 0, taken: 0, parts: [] };
    brought.count += pets.length;
    brought.parts.push(pets);
    this.imports.set(name, brought);
  }

  /** Gives the animals of an import their ids, in steps. None is found before the import is ended. */
  *takeIn(name: string, first: number): Generator<void> {
    const brought = this.imports.get(name);
    if (!brought) return;
    this.petTable.hideFrom(first);
    for (const pets of brought.parts.splice(0)) {
      for (const pet of pets) {
        const id = first + brought.taken++;
        this.petTable.set(id, { id, ...pet });
        if (id % ROWS_PER_STEP === 0) yield;
      }
    }
  }

  endImport(name: string, first: number): void {
    for (const _ of this.takeIn(name, first)); // what of it was not taken in before
    const { count } = this.imports.get(name)!;
    this.imports.delete(name);
    this.counters.nextPetId = first + count;
    this.petTable.show(count);
  }

  dropExpired(at: number): void {
    this.onces.dropExpired(at);
  }

  /** Throws where the state contradicts itself. */
  check(): void {
    this.petTable.check('pet', this.counters.nextPetId);
    this.orderTable.check('order', this.counters.nextOrderId);
    this.categoryTable.check();
    this.keyTable.check();
    for (const id of this.usageTable.keys()) if (!this.keyTable.has(id)) throw new Error(`usage of ${id}: no such key`);
    const placed = new Set<number>();
    for (const { id, petId, status } of this.orderTable.page(0, Number.POSITIVE_INFINITY).items) {
      const pet = this.petTable.get(petId);
      if (!pet) throw new Error(`order ${id}: there is no pet ${petId}`);
      if (status !== 'placed') continue;
      if (pet.status !== 'pending') throw new Error(`order ${id} is placed, and pet ${petId} ${pet.status}`);
      if (placed.has(petId)) throw new Error(`pet ${petId}: two orders are placed`);
      placed.add(petId);
    }
  }
}

/** What readers see of it. */
export function readingOf(state: State): Reading {
  const { petTable, orderTable, categoryTable, keyTable, usageTable } = state;
  return {
    pet: (id) => petTable.get(id),
    pets: (after, limit, status) => petTable.page(after, limit, status),
    order: (id) => orderTable.get(id),
    orders: (after, limit, status) => orderTable.page(after, limit, status),
    category: (id) => categoryTable.get(id),
    categories: (after, limit) => categoryTable.page(after, limit),
    key: (id) => keyTable.get(id),
    keyByDigest: (digest) => keyTable.byDigest.get(digest),
    keys: () => keyTable.values(),
    usage: (keyId) => usageTable.get(keyId),
    made: (kind, caller, key, at) => state.made(kind, caller, key, at),
    counts: () => state.counts(),
    get petsVersion() {
      return petTable.version;
    },
    get keysVersion() {
      return keyTable.version;
    },
  };
}
