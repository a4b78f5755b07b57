/** What a client does in the drill: it lists, pages, adds and orders, and once asks for what cannot be. */
export interface Shopper {
  /** One round of all animals, ten a page. */
  listAll(): Promise<unknown>;
  add(name: string): Promise<number>;
  order(petId: number): Promise<unknown>;
}

const NO_ANIMAL = 9007199254740991;

/** What the service refuses for good, a good client takes as said; so the last order here may fail. */
export async function shop(client: Shopper): Promise<void> {
  for (let round = 1; round <= 6; round++) {
    await client.listAll();
    const id = await client.add(`Rex ${round}`);
    await client.order(id);
  }
  await client.order(NO_ANIMAL).catch(() => {});
  await client.listAll();
}
