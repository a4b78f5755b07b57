/** The first filling of a store, from one JSON file: one change, all of it or nothing. */
import { readFile } from 'node:fs/promises';
import type { Store } from '../store/model.ts';
import { asset, DEMO } from '../web/assets.ts';
import { type Content, readContent } from './animals.ts';
import { reasonOf } from './exit.ts';
import { DONE_BEFORE } from './keys.ts';

const MAX_SEED_BYTES = 1_048_576;

/**
 * Only into a store in which no animal, order or category ever was; else the seed is not even read. `content`: that of
 * the file, if it was read before: a pipe can be read once.
 */
export async function seedStore(store: Store, file: string, content?: Content): Promise<void> {
  const { pets, orders, categories } = store.read.counts();
  if (pets + orders + categories > 0) return;
  const fill = { op: 'fill' as const, at: store.unix(), ...(content ?? (await seedOf(file))) };
  await store.write((ahead) => (ahead.isEmpty() ? fill : DONE_BEFORE));
}

/** `demo` is the built-in example; a file of that name is `./demo`. */
export async function seedOf(file: string): Promise<Content> {
  try {
    const bytes = file === 'demo' ? Buffer.from(asset(DEMO)) : await readFile(file);
    if (bytes.length <= MAX_SEED_BYTES) return readContent(bytes);
    throw new Error(`longer than ${MAX_SEED_BYTES} bytes; use petstore import for many animals`);
  } catch (error) {
    throw new Error(`seed ${file}: ${reasonOf(error as Error)}`);
  }
}
