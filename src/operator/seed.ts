/** `--seed FILE`: `{"categories":[{"id","name"}],"pets":[{"name","categoryId","status"?}]}`, all of it or nothing. */
import { readFile } from 'node:fs/promises';
import * as v from 'valibot';
import { readJson } from '../json/reader.ts';
import type { Ahead, Category, Pet, Store } from '../store/model.ts';
import { faultsOf, int64, type NewAnimal, name, plain, readAnimal } from './animals.ts';
import { CommandError, EXIT } from './exit.ts';

const SEED_MAX_BYTES = 1_048_576;

const USED = new Error('the store is not empty');

const category = v.strictObject({ id: int64, name });
const seed = v.strictObject({
  categories: v.optional(v.array(category), []),
  pets: v.optional(v.array(v.unknown()), []),
});

/** Leaves a store alone that holds anything but keys. */
export async function seedStore(store: Store, file: string): Promise<void> {
  const { pets, categories } = store.read.counts();
  if (pets + categories > 0) return;
  const found = await readSeed(file);
  const decide = (ahead: Ahead) => {
    if (!ahead.isEmpty()) throw USED; // nothing is left of what was here, but ids were given
    return { op: 'seed' as const, ...found };
  };
  await store.write(decide).catch((error) => {
    if (error !== USED) throw error;
  });
}

async function readSeed(file: string): Promise<{ categories: Category[]; pets: Pet[] }> {
  const wrong = (why: string) => new CommandError(EXIT.failed, `--seed ${file}: ${why}`);
  const bytes = await readFile(file).catch((error) => {
    throw wrong(error.message);
  });
  if (bytes.length > SEED_MAX_BYTES)
    throw wrong(`longer than ${SEED_MAX_BYTES} bytes: petstore import takes large files`);
  let value: ReturnType<typeof readJson>;
  try {
    value = readJson(bytes);
  } catch (error) {
    throw wrong((error as Error).message);
  }
  const result = v.safeParse(seed, plain(value));
  if (!result.success) throw wrong(faultsOf(result.issues));
  const animals = (value as Map<string, never[]>).get('pets') ?? [];
  return { categories: result.output.categories, pets: animals.map((one, at) => petOf(readAnimal(one), at, wrong)) };
}

function petOf(animal: NewAnimal | string, at: number, wrong: (why: string) => CommandError): Pet {
  if (typeof animal === 'string') throw wrong(`pets.${at}: ${animal}`);
  return { id: at + 1, ...animal };
}
