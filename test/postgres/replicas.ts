/** Replicas in this process: a store and a limiter each on one database, as the engine puts them together. */
import type { TestContext } from 'node:test';
import { systemClock } from '../../src/clock.ts';
import { PostgresJournal } from '../../src/postgres/journal.ts';
import { PostgresLimiter } from '../../src/postgres/limiter.ts';
import { Link } from '../../src/postgres/link.ts';
import { serverOf } from '../../src/postgres/server.ts';
import { openSchema } from '../../src/postgres/tables.ts';
import { MemoryStore } from '../../src/store/memory.ts';
import type { ApiKey, Store } from '../../src/store/model.ts';

export interface Replica {
  store: MemoryStore;
  journal: PostgresJournal;
  limiter: PostgresLimiter;
  links: Link[];
  fatal: unknown[];
  close(): Promise<void>;
}

export async function replica(t: TestContext, url: string): Promise<Replica> {
  const server = serverOf(url);
  const [takes, appends, upkeep] = ['takes', 'appends', 'upkeep'].map((name) => new Link(server, name));
  const fatal: unknown[] = [];
  await openSchema(upkeep, server.schema);
  const journal = new PostgresJournal(appends, { onFatal: (error) => fatal.push(error) });
  const store = await MemoryStore.open(journal, { clock: systemClock });
  const limiter = new PostgresLimiter({ clock: systemClock, takes, upkeep, journal, warn: () => {} });
  const links = [takes, appends, upkeep];
  const close = async () => {
    limiter.close();
    await Promise.race([store.close(), new Promise((resolve) => setTimeout(resolve, 500))]);
    for (const link of links) link.close();
  };
  t.after(close);
  return { store, journal, limiter, links, fatal, close };
}

export function addPet(store: Store, name: string, once?: string): Promise<number> {
  const at = store.unix();
  return store
    .write((ahead) => {
      const wanted = once === undefined ? undefined : { caller: 'k1', key: once, at };
      const made = wanted && ahead.made('addPet', wanted);
      if (made === 'accepted') throw new Error('in flight');
      if (made) return { op: 'again', made };
      const pet = { id: ahead.counters.nextPetId, name, categoryId: 9007199254740993n, status: 'available' as const };
      return { op: 'addPet', pet, ...(wanted && { once: wanted }) };
    })
    .then((decided) => (decided.op === 'again' ? decided.made.id : decided.pet.id));
}

export function orderPet(store: Store, petId: number): Promise<number> {
  return store
    .write((ahead) => {
      if (ahead.pets.get(petId)?.status !== 'available') throw new Error('pet_unavailable');
      return {
        op: 'placeOrder',
        order: { id: ahead.counters.nextOrderId, petId, status: 'placed' as const, placedAt: 1 },
      };
    })
    .then(({ order }) => order.id);
}

export async function setKey(
  store: Store,
  limits: { perMinute: number; perDay: number },
  id?: string,
): Promise<ApiKey> {
  const { key } = await store.write((ahead) => {
    const slot = id === undefined ? ahead.counters.nextSlot : ahead.keys.get(id)!.slot;
    const common = { name: 'test', plan: 'enterprise' as const, environment: 'production' as const, createdAt: 1 };
    return { op: 'setKey', key: { id: id ?? `k${slot + 1}`, slot, ...common, secrets: [], ...limits } };
  });
  return key;
}

/** What rests on promises alone has happened. */
export const settled = () => new Promise((resolve) => setImmediate(resolve));
