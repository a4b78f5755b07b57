/** The first filling of a store, from one JSON file: one operation, all of it or nothing. */
import { readFile } from 'node:fs/promises';
import type { Ahead, Store } from '../store/model.ts';
import { readSeed, type Seed } from './animals.ts';
import { CommandError, EXIT, reasonOf } from './exit.ts';

const SEED_MAX_BYTES = 1_048_576;

/** Only into a store in which no animal, order or category ever was; else the seed is not even read. */
export async function seedStore(store: Store, file: string): Promise<void> {
  const { pets, orders, categories } = store.read.counts();
  if (pets + orders + categories > 0) return;
  const seed = await seedOf(file);
  const at = store.unix();
  const used = new Error('the store is not empty');
  const decide = (ahead: Ahead) => {
    if (!ahead.isEmpty()) throw used; // nothing is left of what was here, but ids were given
    return { op: 'fill' as const, at, ...seed };
  };
  await store.write(decide).catch((error) => {
    if (error !== used) throw error;
  });
}

export async function seedOf(file: string): Promise<Seed> {
  try {
    const bytes = await readFile(file);
    if (bytes.length <= SEED_MAX_BYTES) return readSeed(bytes);
    throw new Error(`longer than ${SEED_MAX_BYTES} bytes; use petstore import for many animals`);
  } catch (error) {
    throw new CommandError(EXIT.failed, `seed ${file}: ${reasonOf(error as Error)}`);
  }
}
