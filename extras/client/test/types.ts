/** The types as a user meets them: that this compiles is the test, and that each @ts-expect-error is needed. */
import { Agent, type Dispatcher, fetch as undiciFetch } from 'undici';
import { type Category, type Id, type Order, type Page, type Pet, PetstoreClient } from '../client.ts';

export async function asAUserWrites(store: PetstoreClient, key: string, signal: AbortSignal): Promise<void> {
  const pet: Pet = await store.createPet({ name: 'Rex', categoryId: 1n }, { idempotencyKey: 'k', signal });
  const pets: AsyncIterable<Pet> = store.listPets({ status: 'available', limit: 10, after: pet.id, signal });
  for await (const { status } of pets) status satisfies 'available' | 'pending' | 'sold';
  const order: Order = await store.createOrder(pet.id, { headers: new Headers({ 'X-Shop': 'a' }) });
  const category: Category = await store.putCategory(pet.categoryId, 'Dogs');
  [order.id, category.id] satisfies Id[];
  const renamed: Pet = await store.updatePet(pet.id, { name: 'Max' }, { ifMatch: '"a"' });
  const done: Promise<void> = store.deletePet(renamed.id, { signal });
  await done;

  // The etag of a reply as it is typed, with no look at whether there is one: for a page as for `ifMatch`.
  const listing = store.listPets();
  const first: Page<Pet> = await listing.page();
  const { etag } = first.response;
  const newer: Page<Pet> | undefined = await listing.page(etag);
  await store.updateOrder(order.id, 'delivered', { ifMatch: (newer ?? first).response.etag });
  // @ts-expect-error it may be unchanged, and then there is no page
  (await listing.page(etag)).items;

  // As extras/client/README.md has it.
  const dispatcher: Dispatcher = new Agent();
  new PetstoreClient({ baseUrl: 'http://x', key, fetch: (url, init) => undiciFetch(url, { ...init, dispatcher }) });
  new PetstoreClient({ baseUrl: 'http://x', key, fetch });

  // @ts-expect-error how time passes is for tests to say
  new PetstoreClient({ baseUrl: new URL('http://x'), key, timing: {} });
  // @ts-expect-error a category is required
  await store.createPet({ name: 'Rex' });
  // @ts-expect-error the service gives the id
  await store.createPet({ name: 'Rex', categoryId: 1, id: 3 });
  // @ts-expect-error no such status
  store.listPets({ status: 'lost' });
  // @ts-expect-error the status changes with orders
  await store.updatePet(pet.id, { status: 'sold' });
  // @ts-expect-error an order cannot be placed again
  await store.updateOrder(order.id, 'placed');
  // @ts-expect-error reading takes no key
  store.listOrders({ idempotencyKey: 'k' });
  // @ts-expect-error an id may be a string
  pet.id satisfies number;
}
