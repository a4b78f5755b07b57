import { Categories } from './categories.ts';
import { Keys } from './keys.ts';
import type { Int64, Made, OnceKind, Order, OrderStatus, Pet, PetStatus, Reading, Usage } from './model.ts';
import { ORDER_STATUSES, PET_STATUSES } from './model.ts';
import { isExpired, Onces, onceKey } from './onces.ts';
import { Column, Table } from './table.ts';

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
  /** Imports under way: where their animals are hidden, by the first of the ids set aside. */
  readonly imports = this.petTable.hidden;

  made(kind: OnceKind, caller: string, key: string, wall: number): Made | undefined {
    const made = this.onces.get(onceKey(kind, caller, key));
    return made && !isExpired(made, wall) ? made : undefined;
  }

  counts(): { pets: number; orders: number; categories: number; keys: number } {
    return {
      pets: this.petTable.size,
      orders: this.orderTable.size,
      categories: this.categoryTable.size,
      keys: this.keyTable.size,
    };
  }

  importPet(pet: Pet): void {
    this.petTable.set(pet.id, pet);
  }

  endImport(first: number, keep: boolean): void {
    if (keep) this.petTable.show(first);
    else {
      const { end } = this.imports.get(first)!;
      this.petTable.clear(first);
      this.names.clear(first, end);
      this.categoryIds.clear(first, end);
    }
  }

  /** Forgets imports that never came to their end. */
  dropImports(): void {
    for (const first of [...this.imports.keys()]) this.endImport(first, false);
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
    made: (kind, caller, key, wall) => state.made(kind, caller, key, wall),
    counts: () => state.counts(),
    get petsVersion() {
      return petTable.version;
    },
    get keysVersion() {
      return keyTable.version;
    },
  };
}
