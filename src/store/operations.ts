/** What each operation needs and what it changes: said once, for the state as it is and as it will be. */
import { type Once, type OnceKind, type Operation, type Order, type Pet, type PetStatus, StoreError } from './model.ts';
import { onceKey } from './onces.ts';
import { isEmpty, type Pending } from './pending.ts';
import type { State } from './state.ts';
import { MAX_ID } from './table.ts';

/** Beyond these, a new key or category is refused as there being no room. */
const MAX_KEYS = 1_000_000;
const MAX_CATEGORIES = 1_000_000;
/** Beyond this, writes under a new Idempotency-Key are refused as busy until old ones expire. */
const MAX_ONCE_RECORDS = 1_000_000;

type Tables = State | Pending;

/**
 * Why an operation cannot follow on what went before, or undefined when it can. Asked before an operation is
 * accepted, so that nothing is ever written which recovery would refuse; and asked again in recovery.
 */
export function impossible(operation: Operation, on: Tables): string | undefined {
  const { nextPetId, nextOrderId } = on.counters;
  switch (operation.op) {
    case 'addPet':
      return idsFollow(nextPetId, [operation.pet]);
    case 'placeOrder': {
      const { id, petId } = operation.order;
      if (id !== nextOrderId || id > MAX_ID) return `order ${id}: the next id is ${nextOrderId}`;
      const status = on.petTable.get(petId)?.status ?? 'missing';
      return status === 'available' ? undefined : `order ${id}: pet ${petId} is ${status}`;
    }
    case 'closeOrder': {
      const status = on.orderTable.get(operation.id)?.status ?? 'missing';
      return status === 'placed' ? undefined : `order ${operation.id} is ${status}`;
    }
    case 'setKey': {
      const { id, slot } = operation.key;
      const expected = on.keyTable.get(id)?.slot ?? on.keyTable.size;
      return slot === expected ? undefined : `key ${id}: slot ${slot} is not ${expected}`;
    }
    case 'usage': {
      const stranger = operation.entries.find((usage) => !on.keyTable.get(usage.key));
      return stranger && `usage of ${stranger.key}: no such key`;
    }
    case 'seed':
      return isEmpty(on) ? idsFollow(1, operation.pets) : 'a seed fills an empty store only';
    case 'endImport': {
      const { import: name, first, count } = operation;
      const brought = on.imports.get(name)?.count ?? 0;
      if (first !== nextPetId || first + count - 1 > MAX_ID) return `import of ${count}: the next id is ${nextPetId}`;
      return brought === count && count > 0 ? undefined : `import ${name}: it has ${brought} animals, not ${count}`;
    }
    case 'importPart':
    case 'setCategory':
      return undefined;
    default:
      return `unknown operation ${JSON.stringify((operation as { op: unknown }).op)}`;
  }
}

function idsFollow(first: number, pets: Pet[]): string | undefined {
  const wrong = pets.findIndex((pet, i) => pet.id !== first + i || pet.id > MAX_ID);
  return wrong === -1 ? undefined : `pet ${pets[wrong].id}: the next id is ${first + wrong}`;
}

/** Why there is no room for an operation, or undefined when there is. */
export function noRoom(operation: Operation, on: Tables): StoreError | undefined {
  if ('once' in operation && operation.once && on.onces.size >= MAX_ONCE_RECORDS) {
    return new StoreError('busy', 'there are too many idempotency records; old ones expire after 24 hours');
  }
  if (operation.op === 'setCategory' && on.categoryTable.size >= MAX_CATEGORIES) {
    if (!on.categoryTable.get(operation.category.id)) return new StoreError('full', 'there are too many categories');
  }
  if (operation.op === 'setKey' && operation.key.slot >= MAX_KEYS) return new StoreError('full', 'too many keys');
  return undefined;
}

/** The operation must be possible: here it is done without another look. */
export function perform(operation: Operation, to: Tables): void {
  switch (operation.op) {
    case 'addPet':
      addPet(operation.pet, to);
      remember(operation.op, operation.once, operation.pet, to);
      break;
    case 'placeOrder':
      to.orderTable.set(operation.order.id, operation.order);
      to.counters.nextOrderId = operation.order.id + 1;
      setStatus(operation.order.petId, 'pending', to);
      remember(operation.op, operation.once, operation.order, to);
      break;
    case 'closeOrder': {
      const order = to.orderTable.get(operation.id)!;
      to.orderTable.set(order.id, { ...order, status: operation.status });
      setStatus(order.petId, operation.status === 'delivered' ? 'sold' : 'available', to);
      break;
    }
    case 'setCategory':
      to.categoryTable.set(operation.category.id, operation.category);
      break;
    case 'setKey':
      to.keyTable.set(operation.key.id, operation.key);
      break;
    case 'usage':
      for (const usage of operation.entries) to.usageTable.set(usage.key, usage);
      to.dropExpired(operation.at);
      break;
    case 'seed':
      for (const category of operation.categories) to.categoryTable.set(category.id, category);
      for (const pet of operation.pets) addPet(pet, to);
      break;
    case 'importPart':
      to.bring(operation.import, operation.pets);
      break;
    case 'endImport':
      to.endImport(operation.import, operation.first);
      break;
  }
}

function addPet(pet: Pet, to: Tables): void {
  to.petTable.set(pet.id, pet);
  to.counters.nextPetId = pet.id + 1;
}

function setStatus(id: number, status: PetStatus, to: Tables): void {
  to.petTable.set(id, { ...to.petTable.get(id)!, status });
}

function remember(kind: OnceKind, once: Once | undefined, made: Pet | Order, to: Tables): void {
  if (!once) return;
  to.dropExpired(once.at);
  to.onces.set(onceKey(kind, once.caller, once.key), { id: made.id, status: made.status, at: once.at });
}
