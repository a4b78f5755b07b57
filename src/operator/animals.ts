/** Animals that the operator brings: the seed and the lines of an import, checked with valibot. */
import { readFile } from 'node:fs/promises';
import * as v from 'valibot';
import { type JsonValue, readJson } from '../json/reader.ts';
import { countCharacters } from '../json/text.ts';
import { NAME_LENGTH } from '../shop/pets.ts';
import {
  type Ahead,
  type Category,
  type Int64,
  type NewPet,
  PET_STATUSES,
  type Pet,
  type Store,
} from '../store/model.ts';
import { CommandError, EXIT } from './exit.ts';

/** What the reader makes of an integral JSON number within 64 bits; of any other number it makes something else. */
const int64 = v.custom<Int64>(
  (value) => typeof value === 'number' || typeof value === 'bigint',
  'must be an integer of 64 bits',
);

const { min, max } = NAME_LENGTH;
const NAME_RULE = `must be a text of ${min} to ${max} characters, not only white space`;
const name = v.pipe(
  v.string(NAME_RULE),
  v.check((text) => /\P{White_Space}/u.test(text) && countCharacters(text) <= max, NAME_RULE),
);

const animal = v.strictObject(
  {
    id: v.optional(int64),
    name,
    categoryId: int64,
    status: v.optional(v.picklist(PET_STATUSES, `must be ${PET_STATUSES.join(', ')}`), 'available'),
  },
  (issue) => (issue.expected === 'never' ? 'is unknown' : 'is missing'),
);

/** The animal of a line, or all that is wrong with it. */
export function readLine(line: Buffer): NewPet | string {
  try {
    return readAnimal(readJson(line));
  } catch (error) {
    return (error as Error).message;
  }
}

/** Its `id` is let pass, so that an export can be imported, and not kept. */
function readAnimal(value: JsonValue): NewPet | string {
  if (!(value instanceof Map)) return 'must be a JSON object';
  const result = v.safeParse(animal, plain(value));
  if (!result.success) return faultsOf(result.issues);
  const { name, categoryId, status } = result.output;
  return { name, categoryId, status };
}

function faultsOf(issues: readonly v.BaseIssue<unknown>[]): string {
  return issues.map((issue) => `${v.getDotPath(issue) ?? 'it'} ${issue.message}`).join('; ');
}

/** Maps as objects without a prototype, which is how valibot takes them. */
function plain(value: JsonValue): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (!(value instanceof Map)) return value;
  const object = Object.create(null);
  for (const [key, member] of value) object[key] = plain(member);
  return object;
}

const SEED_MAX_BYTES = 1_048_576;

const USED = new Error('the store is not empty');

const category = v.strictObject({ id: int64, name });
const seed = v.strictObject({
  categories: v.optional(v.array(category), []),
  pets: v.optional(v.array(v.unknown()), []),
});

/** `--seed FILE`: all of it or nothing. Leaves a store alone that holds anything but keys. */
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
  try {
    const bytes = await readFile(file);
    if (bytes.length > SEED_MAX_BYTES) {
      throw new Error(`longer than ${SEED_MAX_BYTES} bytes: petstore import takes large files`);
    }
    return seedOf(readJson(bytes));
  } catch (error) {
    throw new CommandError(EXIT.failed, `--seed ${file}: ${(error as Error).message}`);
  }
}

function seedOf(value: JsonValue): { categories: Category[]; pets: Pet[] } {
  if (!(value instanceof Map)) throw new Error('must be a JSON object');
  const result = v.safeParse(seed, plain(value));
  if (!result.success) throw new Error(faultsOf(result.issues));
  const pets = ((value.get('pets') ?? []) as JsonValue[]).map((one, at) => {
    const animal = readAnimal(one);
    if (typeof animal === 'string') throw new Error(`pets.${at}: ${animal}`);
    return { id: at + 1, ...animal };
  });
  return { categories: result.output.categories, pets };
}
