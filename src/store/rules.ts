import type { AheadView } from './ahead.ts';
import type { Operation, Pet } from './model.ts';
import { MAX_ID } from './table.ts';

/**
 * Why an operation cannot follow on what went before, or undefined when it can. Asked before an operation is
 * accepted, so that nothing is ever written which recovery would refuse; and asked again in recovery.
 */
export function impossible(ahead: AheadView, operation: Operation): string | undefined {
  switch (operation.op) {
    case 'addPet':
      return idsFollow(ahead.nextPetId(), [operation.pet]);
    case 'placeOrder': {
      const { id, petId } = operation.order;
      if (id !== ahead.nextOrderId() || id > MAX_ID) return `order ${id}: the next id is ${ahead.nextOrderId()}`;
      const status = ahead.pet(petId)?.status ?? 'missing';
      return status === 'available' ? undefined : `order ${id}: pet ${petId} is ${status}`;
    }
    case 'closeOrder': {
      const status = ahead.order(operation.id)?.status ?? 'missing';
      return status === 'placed' ? undefined : `order ${operation.id} is ${status}`;
    }
    case 'setKey': {
      const { id, slot } = operation.key;
      const expected = ahead.key(id)?.slot ?? ahead.keyCount();
      return slot === expected ? undefined : `key ${id}: slot ${slot} is not ${expected}`;
    }
    case 'usage': {
      const stranger = operation.entries.find((usage) => !ahead.key(usage.key));
      return stranger && `usage of ${stranger.key}: no such key`;
    }
    case 'seed':
      return ahead.isEmpty() ? idsFollow(1, operation.pets) : 'a seed fills an empty store only';
    case 'beginImport': {
      const { first, count } = operation;
      const fits = Number.isSafeInteger(count) && count > 0 && first + count <= MAX_ID;
      if (first !== ahead.nextPetId()) return `import at ${first}: the next id is ${ahead.nextPetId()}`;
      return fits ? undefined : `import of ${count}: not between 1 and the largest id`;
    }
    case 'importPart': {
      const count = ahead.importOf(operation.first);
      if (count === undefined) return `import at ${operation.first}: not under way`;
      const end = operation.first + count;
      const outside = operation.pets.find((pet) => !(pet.id >= operation.first && pet.id < end));
      return outside && `import at ${operation.first}: pet ${outside.id} is outside`;
    }
    case 'endImport':
      return ahead.importOf(operation.first) === undefined ? `import at ${operation.first}: not under way` : undefined;
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
