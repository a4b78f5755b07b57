/** The types as a user meets them: that this compiles is the test, and that each @ts-expect-error is needed. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { type Category, type Id, type NewPet, type Order, type Pet, PetstoreClient } from '../../src/client/client.ts';

async function asAUserWrites(key: string, signal: AbortSignal): Promise<void> {
  const store = new PetstoreClient({ baseUrl: new URL('http://x/v1'), key, budgetMs: 5_000 });
  const wanted: NewPet = { name: 'Rex', categoryId: 9007199254740993n };
  const pet: Pet = await store.createPet(wanted, { idempotencyKey: 'k', signal });
  const pets: AsyncIterable<Pet> = store.listPets({ status: 'available', limit: 10, after: pet.id, signal });
  for await (const { status } of pets) status satisfies 'available' | 'pending' | 'sold';
  const order: Order = await store.placeOrder(pet.id);
  order.id satisfies Id;
  await store.closeOrder(order.id, 'delivered');
  const category: Category = await store.putCategory(pet.categoryId, 'Dogs');
  category.id satisfies Id;

  // @ts-expect-error how time passes is for tests to say
  new PetstoreClient({ baseUrl: 'http://x', key, timing: {} });
  // @ts-expect-error a category is required
  await store.createPet({ name: 'Rex' });
  // @ts-expect-error the service gives the id
  await store.createPet({ name: 'Rex', categoryId: 1, id: 3 });
  // @ts-expect-error no such status
  store.listPets({ status: 'lost' });
  // @ts-expect-error an order cannot be placed again
  await store.closeOrder(order.id, 'placed');
  // @ts-expect-error reading takes no key
  store.listOrders({ idempotencyKey: 'k' });
  // @ts-expect-error an id may be a string
  pet.id satisfies number;
}

test('the types are usable', () => {
  assert.equal(typeof asAUserWrites, 'function');
});
