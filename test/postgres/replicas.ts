/** Replicas in this process: several engines on one database, each as a server opens it. */
import type { TestContext } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { type Clock, systemClock as clock } from '../../src/clock.ts';
import { openPostgres } from '../../src/postgres/engine.ts';
import type { PostgresLimiter } from '../../src/postgres/limiter.ts';
import type { MemoryStore } from '../../src/store/memory.ts';
import type { ApiKey, Store } from '../../src/store/model.ts';
import { aKey } from '../store/opened.ts';

export const RICH = { perMinute: 1_000_000, perDay: 10_000_000 };

export type Replica = Awaited<ReturnType<typeof replica>>;

interface Own {
  maxBytes?: number;
  clock?: Clock;
}

export async function replica(t: Pick<TestContext, 'after'>, url: string, own: Own = {}) {
  const heard = { fatal: [] as unknown[], warned: [] as string[], informed: [] as string[], took: [] as number[] };
  const info = (text: string) => void heard.informed.push(text);
  const log = { info, error: () => {}, warn: (text: string) => void heard.warned.push(text) };
  const onFatal = (error: unknown) => void heard.fatal.push(error);
  const options = { clock, log, onFatal, onBatch: (ms: number) => void heard.took.push(ms), ...own };
  const engine = await openPostgres(url, options, async () => {});
  t.after(() => engine.close());
  /** One of its metrics. */
  const count = (name: string) => [...engine.metrics()].find((one) => one.name === `petstore_postgres_${name}`)!.value;
  const parts = { store: engine.store as MemoryStore, limiter: engine.limiter as PostgresLimiter };
  return { ...engine, ...parts, ...heard, count };
}

/** Gives the id; the same again for the same `once`. */
export async function addPet(store: Store, name: string, once?: string): Promise<number> {
  const wanted = once === undefined ? undefined : { caller: 'k1', key: once, at: store.unix() };
  const decided = await store.write((ahead) => {
    const made = wanted && ahead.firstResult('addPet', wanted);
    if (made) return { op: 'again', made };
    const pet = { id: ahead.counters.nextPetId, name, categoryId: 9007199254740993n, status: 'available' as const };
    return { op: 'addPet', pet, once: wanted };
  });
  return decided.op === 'again' ? decided.made.id : decided.pet.id;
}

/** A new key; or one that there is, changed. */
export async function setKey(store: Store, changed: Partial<ApiKey>): Promise<ApiKey> {
  return (await store.write((ahead) => ({ op: 'setKey', key: aKey(ahead.counters.nextSlot, changed) }))).key;
}

/** For what tells nobody that it has happened. */
export async function until(isSo: () => unknown): Promise<void> {
  while (!(await isSo())) await wait(20);
}
