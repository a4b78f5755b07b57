/** What the clients of the gallery do. */
import { setTimeout as delay } from 'node:timers/promises';
import { GalleryClient, GivenUp } from './client.ts';

/** Where the service is. */
interface Server {
  origin: string;
  key: string;
}

export type Errand = (client: GalleryClient, server: Server) => Promise<unknown>;

export const NO_ANIMAL = 9007199254740991;
const ROUNDS = [1, 2, 3, 4, 5, 6];
/** It goes on without what it has given up. */
const unless = (done: Promise<unknown>) => done.catch((error) => error instanceof GivenUp || Promise.reject(error));
const atOnce = <T>(count: number, each: (n: number) => Promise<T>) =>
  Promise.all(Array.from({ length: count }, (_, i) => each(i + 1)));

/** It lists, pages, adds and orders, and once orders what there is not. */
export const errand: Errand = (client) => errandWith(client, () => client.list());

async function errandWith(client: GalleryClient, list: () => Promise<unknown>): Promise<void> {
  for (const round of ROUNDS) {
    await unless(list());
    await unless(client.add(`Rex ${round}`).then((id) => client.order(id)));
    await delay(300);
  }
  await unless(client.order(NO_ANIMAL));
  await unless(list());
}

/** It orders an animal that is sold, again and again. */
export const insists: Errand = async (client, server) => {
  for (let n = 0; n < 6; n++) await client.order(1);
  await errand(client, server);
};

/** Such pages as no Link leads to. */
export const countsPages: Errand = (client) =>
  errandWith(client, async () => {
    for (let after = 5; after < 30; after += 10) await client.ask('GET', `/v1/pets?limit=10&after=${after}`);
  });

/** It sends on and on, whatever it gets. */
export const bansItself: Errand = async (_, { origin, key }) => {
  const client = new GalleryClient(origin, key, { heeds: () => 0, givesUp: () => true });
  for (let n = 0; n < 400; n++) await unless(client.ask('GET', '/v1/categories'));
  client.close();
};

/** Beside the errand it lists the categories four times a second. */
export const polls: Errand = async (client, server) => {
  let isDone = false;
  const poll = async () => {
    for (; !isDone; await delay(250)) await unless(client.ask('GET', '/v1/categories'));
  };
  await Promise.all([errand(client, server).finally(() => (isDone = true)), poll()]);
};

/** Four workers take turns from one queue, and add equal animals. */
export const workers: Errand = async (client) => {
  const jobs = ROUNDS.flatMap((round) => [
    () => client.list(`/v1/pets?limit=${10 + round}`),
    () => client.add('Rex').then((id) => client.order(id)),
  ]);
  const work = async () => {
    for (let job = jobs.shift(); job !== undefined; job = jobs.shift()) await job();
  };
  await atOnce(4, work);
  await client.order(NO_ANIMAL);
  await client.list();
};

/** Twelve equal animals at once, each on a connection of its own: opened for it, or before. */
export const twelveAtOnce = (connections: 'new' | 'open'): Errand => {
  return async (client) => {
    if (connections === 'open') await atOnce(12, (n) => client.ask('GET', `/v1/categories?limit=${n}`));
    for (const id of await atOnce(12, () => client.add('Rex'))) await unless(client.order(id));
    await client.order(NO_ANIMAL);
    await client.list();
  };
};

/** Each has a connection of its own, and does not know of refusals of the other. */
export const twoProcesses: Errand = async (client, server) => {
  const other = new GalleryClient(server.origin, server.key);
  const lists = async () => {
    for (let round = 0; round < 5; round++) {
      for (const status of ['placed', 'delivered']) await other.ask('GET', `/v1/store/orders?status=${status}`);
      await delay(300);
    }
  };
  await Promise.all([errand(client, server), lists()]);
  other.close();
};
