/** What each operation changes: said once, for the state as it is and as it will be. */
import type { ApiKey, Category, Made, Once, OnceKind, Operation, Order, Pet, PetStatus, Usage } from './model.ts';

/** For how long the first reply under an Idempotency-Key is given again. */
const ONCE_MS = 24 * 60 * 60 * 1000;

export interface Counters {
  nextPetId: number;
  nextOrderId: number;
  /** Of keys: `k1` has slot 0. */
  nextSlot: number;
}

/** What operations change. */
export interface Tables {
  readonly counters: Counters;
  readonly petTable: { get(id: number): Pet | undefined; set(id: number, pet: Pet): void };
  readonly orderTable: { get(id: number): Order | undefined; set(id: number, order: Order): void };
  readonly usageTable: { set(key: string, usage: Usage): unknown };
  key(id: string): ApiKey | undefined;
  setCategory(category: Category): void;
  setKey(key: ApiKey): void;
  setOnce(place: string, made: Made): void;
  /** A record tells store time: what has expired by then may go. */
  passed(at: number): void;
  /** No animals, orders, categories and idempotency records. */
  empty(): void;
  /** A caller's idempotency records become older. */
  age(caller: string, ms: number): void;
}

/** Throws where the operation cannot follow on what went before: then it is a mistake in this program, or damage. */
export function perform(operation: Operation, to: Tables): void {
  switch (operation.op) {
    case 'addPet':
      addPet(operation.pet, to);
      remember(operation.op, operation.once, operation.pet, to);
      break;
    case 'addPets': {
      const { first, pets, once } = operation;
      for (const [i, pet] of pets.entries()) addPet({ ...pet, id: first + i }, to);
      remember('import', once, { id: first, status: pets[0].status }, to);
      break;
    }
    case 'placeOrder':
      placeOrder(operation.order, to);
      remember(operation.op, operation.once, operation.order, to);
      break;
    case 'closeOrder':
      closeOrder(operation.id, operation.status, to);
      break;
    case 'setCategory':
      to.setCategory(operation.category);
      break;
    case 'setKey':
      setKey(operation.key, to);
      to.passed(operation.at ?? 0);
      break;
    case 'usage':
      for (const usage of operation.entries) setUsage(usage, to);
      to.passed(operation.at);
      break;
    case 'fill':
      to.empty();
      for (const category of operation.categories) to.setCategory(category);
      for (const [i, pet] of operation.pets.entries()) addPet({ ...pet, id: i + 1 }, to);
      to.passed(operation.at);
      break;
    case 'advance': {
      const { key: id, ms, usage, at } = operation;
      const key = to.key(id) ?? impossible(`time passes for ${id}: there is no such key`);
      to.setKey({ ...key, ahead: (key.ahead ?? 0) + ms });
      to.age(id, ms);
      setUsage(usage, to);
      to.passed(at);
      break;
    }
    default:
      operation satisfies never;
      throw new Error(`unknown operation ${JSON.stringify(operation)}`);
  }
}

export const isExpired = (made: Made, at: number): boolean => at - made.at >= ONCE_MS;

/** Neither a caller's id nor a key (visible ASCII) holds a line feed. */
export const onceKey = (kind: OnceKind, { caller, key }: Once): string => `${kind}\n${caller}\n${key}`;

function impossible(what: string): never {
  throw new Error(what);
}

function addPet(pet: Pet, { counters, petTable }: Tables): void {
  if (pet.id !== counters.nextPetId) impossible(`pet ${pet.id}: the next id is ${counters.nextPetId}`);
  petTable.set(pet.id, pet);
  counters.nextPetId++;
}

function placeOrder(order: Order, to: Tables): void {
  const { counters, orderTable, petTable } = to;
  if (order.id !== counters.nextOrderId) impossible(`order ${order.id}: the next id is ${counters.nextOrderId}`);
  const pet = petTable.get(order.petId);
  if (pet?.status !== 'available') impossible(`order ${order.id}: pet ${order.petId} is ${pet?.status ?? 'missing'}`);
  orderTable.set(order.id, order);
  counters.nextOrderId++;
  setStatus(order.petId, 'pending', to);
}

function closeOrder(id: number, status: 'delivered' | 'cancelled', to: Tables): void {
  const order = to.orderTable.get(id);
  if (order?.status !== 'placed') impossible(`order ${id} is ${order?.status ?? 'missing'}`);
  to.orderTable.set(id, { ...order, status });
  setStatus(order.petId, status === 'delivered' ? 'sold' : 'available', to);
}

function setStatus(id: number, status: PetStatus, { petTable }: Tables): void {
  petTable.set(id, { ...petTable.get(id)!, status });
}

/** Slots ascend; a repair may have left some out. */
function setKey(key: ApiKey, to: Tables): void {
  const before = to.key(key.id);
  const fits = before ? key.slot === before.slot : key.slot >= to.counters.nextSlot;
  if (!fits) impossible(`key ${key.id}: slot ${key.slot} is not its own`);
  to.counters.nextSlot = Math.max(to.counters.nextSlot, key.slot + 1);
  to.setKey(key);
}

function setUsage(usage: Usage, to: Tables): void {
  if (!to.key(usage.key)) impossible(`usage of ${usage.key}: there is no such key`);
  to.usageTable.set(usage.key, usage);
}

function remember(kind: OnceKind, once: Once | undefined, { id, status }: Omit<Made, 'at'>, to: Tables): void {
  if (!once) return;
  to.passed(once.at);
  to.setOnce(onceKey(kind, once), { id, status, at: once.at });
}
