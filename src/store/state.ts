import { Categories } from './categories.ts';
import { Int64s, Numbers, Texts } from './columns.ts';
import { Keys } from './keys.ts';
import type {
  ApiKey,
  Category,
  Int64,
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
import { Onces } from './onces.ts';
import { Table } from './table.ts';

/** Everything that is kept, in memory. Changed by `apply` alone, and by loading a snapshot. */
export class State implements Reading {
  readonly petTable = new Table<PetStatus>(PET_STATUSES);
  readonly names = new Texts();
  readonly categoryIds = new Int64s();
  readonly orderTable = new Table<OrderStatus>(ORDER_STATUSES);
  readonly petIds = new Numbers();
  readonly placedAts = new Numbers();
  readonly categoryTable = new Categories();
  readonly keyTable = new Keys();
  readonly onces = new Onces();
  /** Imports under way: the first of the ids set aside, and how many. */
  readonly imports = new Map<number, number>();
  nextPetId = 1;
  nextOrderId = 1;
  petsVersion = 0;
  keysVersion = 0;

  pet(id: number): Pet | undefined {
    return this.petTable.has(id) ? this.#petAt(id) : undefined;
  }

  pets(after: number, limit: number, status?: PetStatus): Page<Pet> {
    return this.petTable.page(after, limit, status, (id) => this.#petAt(id));
  }

  order(id: number): Order | undefined {
    return this.orderTable.has(id) ? this.#orderAt(id) : undefined;
  }

  orders(after: number, limit: number, status?: OrderStatus): Page<Order> {
    return this.orderTable.page(after, limit, status, (id) => this.#orderAt(id));
  }

  category(id: Int64): Category | undefined {
    return this.categoryTable.get(id);
  }

  categories(after: Int64 | undefined, limit: number): Page<Category> {
    return this.categoryTable.page(after, limit);
  }

  key(id: string): ApiKey | undefined {
    return this.keyTable.get(id);
  }

  keyByDigest(digest: string): ApiKey | undefined {
    return this.keyTable.byDigest(digest);
  }

  keys(): Iterable<ApiKey> {
    return this.keyTable.all();
  }

  usage(keyId: string): Usage | undefined {
    return this.keyTable.usage(keyId);
  }

  made(kind: OnceKind, caller: string, key: string, wall: number): Made | undefined {
    return this.onces.get(kind, caller, key, wall);
  }

  counts(): { pets: number; orders: number; categories: number; keys: number } {
    return {
      pets: this.petTable.size,
      orders: this.orderTable.size,
      categories: this.categoryTable.size,
      keys: this.keyTable.size,
    };
  }

  /** The operation must be possible (rules.ts): here it is done without another look. */
  apply(operation: Operation): void {
    switch (operation.op) {
      case 'addPet':
        this.#addPet(operation.pet);
        this.#remember('addPet', operation.once, operation.pet);
        break;
      case 'placeOrder':
        this.addOrder(operation.order);
        this.#setPetStatus(operation.order.petId, 'pending');
        this.#remember('placeOrder', operation.once, operation.order);
        break;
      case 'closeOrder':
        this.orderTable.setStatus(operation.id, operation.status);
        this.#setPetStatus(this.petIds.get(operation.id), operation.status === 'delivered' ? 'sold' : 'available');
        break;
      case 'setCategory':
        this.categoryTable.set(operation.category);
        break;
      case 'setKey':
        this.keyTable.set(operation.key);
        this.keysVersion++;
        break;
      case 'usage':
        for (const usage of operation.entries) this.keyTable.setUsage(usage);
        this.onces.dropExpired(operation.at);
        break;
      case 'seed':
        for (const category of operation.categories) this.categoryTable.set(category);
        for (const pet of operation.pets) this.#addPet(pet);
        break;
      default:
        this.#import(operation);
    }
  }

  addOrder(order: Order): void {
    this.petIds.set(order.id, order.petId);
    this.placedAts.set(order.id, order.placedAt);
    this.orderTable.add(order.id, order.status);
    this.nextOrderId = Math.max(this.nextOrderId, order.id + 1);
  }

  /** Writes a row that no reader finds before it is shown. */
  writePet(id: number, name: string, categoryId: Int64, status: PetStatus): void {
    this.names.set(id, name);
    this.categoryIds.set(id, categoryId);
    this.petTable.addUnseen(id, status);
  }

  showPets(first: number, end: number): void {
    this.petTable.show(first, end);
    this.nextPetId = Math.max(this.nextPetId, end);
    this.petsVersion++;
  }

  /** Forgets imports that never came to their end. */
  dropImports(): void {
    for (const first of [...this.imports.keys()]) this.apply({ op: 'endImport', first, keep: false });
  }

  /** Throws where the state contradicts itself. */
  check(): void {
    this.petTable.check('pet');
    this.orderTable.check('order');
    this.categoryTable.check();
    this.keyTable.check();
    for (let id = this.petTable.nextAfter(-1); id !== -1; id = this.petTable.nextAfter(id)) {
      if (id < 1 || id >= this.nextPetId) throw new Error(`pet ${id}: not below the next id ${this.nextPetId}`);
    }
    const placed = new Set<number>();
    for (let id = this.orderTable.nextAfter(-1); id !== -1; id = this.orderTable.nextAfter(id)) {
      const order = this.#orderAt(id);
      const pet = this.pet(order.petId);
      if (id < 1 || id >= this.nextOrderId) throw new Error(`order ${id}: not below the next id ${this.nextOrderId}`);
      if (!pet) throw new Error(`order ${id}: there is no pet ${order.petId}`);
      if (order.status !== 'placed') continue;
      if (pet.status !== 'pending') throw new Error(`order ${id} is placed, and pet ${pet.id} ${pet.status}`);
      if (placed.has(pet.id)) throw new Error(`pet ${pet.id}: two orders are placed`);
      placed.add(pet.id);
    }
  }

  #addPet(pet: Pet): void {
    this.names.set(pet.id, pet.name);
    this.categoryIds.set(pet.id, pet.categoryId);
    this.petTable.add(pet.id, pet.status);
    this.nextPetId = Math.max(this.nextPetId, pet.id + 1);
    this.petsVersion++;
  }

  #import(operation: Extract<Operation, { op: 'beginImport' | 'importPart' | 'endImport' }>): void {
    const { first } = operation;
    if (operation.op === 'beginImport') {
      this.imports.set(first, operation.count);
      this.nextPetId = first + operation.count;
    } else if (operation.op === 'importPart') {
      for (const pet of operation.pets) this.writePet(pet.id, pet.name, pet.categoryId, pet.status);
    } else {
      const end = first + this.imports.get(first)!;
      this.imports.delete(first);
      if (operation.keep) this.showPets(first, end);
      else this.#forgetPets(first, end);
    }
  }

  #forgetPets(first: number, end: number): void {
    this.petTable.forget(first, end);
    this.names.clear(first, end);
    this.categoryIds.clear(first, end);
  }

  #setPetStatus(id: number, status: PetStatus): void {
    this.petTable.setStatus(id, status);
    this.petsVersion++;
  }

  #remember(kind: OnceKind, once: Once | undefined, made: Pet | Order): void {
    if (!once) return;
    this.onces.dropExpired(once.at);
    this.onces.set(kind, once.caller, once.key, { id: made.id, status: made.status, at: once.at });
  }

  #petAt(id: number): Pet {
    return { id, name: this.names.get(id), categoryId: this.categoryIds.get(id), status: this.petTable.status(id) };
  }

  #orderAt(id: number): Order {
    return {
      id,
      petId: this.petIds.get(id),
      status: this.orderTable.status(id),
      placedAt: this.placedAts.get(id),
    };
  }
}
