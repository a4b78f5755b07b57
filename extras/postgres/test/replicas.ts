/** Replicas in this process: several engines on one database, each as a server opens it. */
import type { TestContext } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { systemClock as clock } from '../../../src/clock.ts';
import type { EngineOptions } from '../../../src/store/engine.ts';
import type { ApiKey, Pet, Store } from '../../../src/store/model.ts';
import { openPostgres } from '../open.ts';

export const RICH = { perMinute: 1_000_000, perDay: 10_000_000 };
export const EMPTY_USAGE = {
  minuteUsed: 0,
  minuteEndsAt: 0,
  dayUsed: 0,
  dayEndsAt: 0,
  strikes: 0,
  bans: 0,
  banEndsAt: 0,
};

export type Replica = Awaited<ReturnType<typeof replica>>;

export async function replica(t: Pick<TestContext, 'after'>, url: string, own: Partial<EngineOptions> = {}) {
  const heard = { fatal: [] as Error[], warned: [] as string[], took: [] as number[] };
  const log = { info: () => {}, error: () => {}, warn: (text: string) => void heard.warned.push(text) };
  const onFatal = (error: Error) => void heard.fatal.push(error);
  const engine = await openPostgres(url, {
    clock,
    log,
    isServing: true,
    onFatal,
    onBatch: (ms) => void heard.took.push(ms),
    ...own,
  });
  t.after(() => engine.close());
  /** One of its metrics. */
  const count = (name: string) => engine.metrics().find((one) => one.name === `petstore_postgres_${name}`)!.value;
  return { ...engine, ...heard, count };
}

export const addPet = async (store: Store, name: string): Promise<number> =>
  (await store.write((tx) => tx.pets.add({ name, categoryId: 9007199254740993n, status: 'available' }))).id;

export function addKey(store: Store, own: Partial<ApiKey> = {}): Promise<ApiKey> {
  const key = {
    name: 'shop',
    plan: 'enterprise',
    environment: 'production',
    createdAt: 0,
    secrets: [],
    ...RICH,
  } as const;
  return store.write((tx) => {
    const added = tx.keys.add({ ...key, ...own });
    tx.usage.put({ id: added.id, ...EMPTY_USAGE });
    return added;
  });
}

/** Makes an animal under an Idempotency-Key, which is its name, and gives its id: the same again for the same name. */
export function once(store: Store, key: ApiKey, name: string): Promise<number> {
  return store.write((tx) => {
    const id = `addPet k${key.id} ${name}`;
    const first = tx.replays.get(id);
    if (first) return JSON.parse(first.body).id;
    const pet = tx.pets.add({ name, categoryId: 1, status: 'available' });
    const reply = { status: 201, body: JSON.stringify(pet), location: `/pets/${pet.id}` };
    tx.replays.put({ id, keyId: key.id, digest: name, ...reply, at: store.now() });
    return pet.id;
  });
}

export const petsOf = (store: Store): readonly Pet[] => [...store.read.pets.all()];

/** For what tells nobody that it has happened. */
export async function until(isSo: () => unknown): Promise<void> {
  while (!(await isSo())) await wait(20);
}

export const works = (work: unknown): Promise<boolean> =>
  Promise.resolve(work).then(
    () => true,
    () => false,
  );
