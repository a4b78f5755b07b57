/** What a start does for a store that is new: it fills it, makes a key, and says what to do first. */
import { readFile } from 'node:fs/promises';
import { asset } from '../assets.ts';
import { type Store, StoreError } from '../store/model.ts';
import { type Content, readContent } from './animals.ts';
import type { Context } from './command.ts';
import { reasonOf } from './failures.ts';
import { createFirstKey } from './keys.ts';
import type { ServeSettings } from './options.ts';
import { print } from './output.ts';
import { PROGRAM } from './version.ts';

const MAX_SEED_BYTES = 1_048_576;

/** What the seed holds, read once, and only if somebody asks: it may be a pipe. */
export function seedOf({ seed }: Pick<ServeSettings, 'seed'>): () => Promise<Content> {
  let content: Promise<Content> | undefined;
  return () => (content ??= seed === undefined ? Promise.resolve({ categories: [], pets: [] }) : readSeed(seed));
}

/** Fills a store in which no animal, order or category ever was. */
export async function seedStore(store: Store, seed: () => Promise<Content>): Promise<void> {
  const { pets, orders, categories } = store.read;
  if (pets.lastId + orders.lastId + categories.size === 0) await fill(store, await seed());
}

async function fill(store: Store, { categories, pets }: Content): Promise<void> {
  const filled = new Error('another replica filled the store');
  await store
    .write((tx) => {
      for (const category of categories) tx.categories.put(category);
      for (const [before, pet] of pets.entries()) if (tx.pets.add(pet).id !== before + 1) throw filled;
    })
    .catch((error) => {
      if (error !== filled) throw error;
    });
}

/** `demo` is the built-in example; a file of that name is `./demo`. */
async function readSeed(file: string): Promise<Content> {
  try {
    const bytes = file === 'demo' ? Buffer.from(asset('data/seed.json')) : await readFile(file);
    if (bytes.length <= MAX_SEED_BYTES) return readContent(bytes);
    throw new Error(`longer than ${MAX_SEED_BYTES} bytes; petstore import takes more`);
  } catch (error) {
    throw new Error(`seed ${file}: ${reasonOf(error as Error)}`);
  }
}

export type FirstKey = Awaited<ReturnType<typeof createFirstKey>>;

/** Makes a key if there is no active one. A store that has no room for it is served all the same. */
export async function makeFirstKey(context: Context, plan: ServeSettings['firstKey'], warn: (text: string) => void) {
  if (plan === undefined) return undefined;
  return createFirstKey(context, plan).catch((error) => {
    if (!(error instanceof StoreError && error.failure === 'full')) throw error;
    warn(`no first key was made: ${error.message}`);
    return undefined;
  });
}

/** The lines below the first one. A new key stands alone on its line, and then in a line to paste. */
export function firstSteps(origin: string, first: FirstKey): string[] {
  if (first === undefined) return [];
  const curl = `curl -s -H 'Authorization: Bearer ${first.key}' ${origin}/v1/pets`;
  return [`The key ${first.id}, which is shown only once:`, first.key, curl];
}

/** The first line is for programs. */
export async function printFirstSteps(steps: string[], origin: string, first: FirstKey, warn: (text: string) => void) {
  const isRead = await print([`petstore listening on ${origin}/v1`, ...steps].join('\n')).catch(() => false);
  if (!isRead && first) warn(`nobody read the first key: ${PROGRAM} keys rotate ${first.id} gives it a new secret`);
}
