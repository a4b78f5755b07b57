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

const NO_OBJECT = 'must be a JSON object';
const { min, max } = NAME_LENGTH;
const NAME_RULE = `must be a text of ${min} to ${max} characters, not only white space`;
const name = v.pipe(
  v.string(NAME_RULE),
  v.check((text) => /\P{White_Space}/u.test(text) && countCharacters(text) <= max, NAME_RULE),
);

const animal = v.object(
  {
    id: v.optional(int64),
    name,
    categoryId: int64,
    status: v.optional(v.picklist(PET_STATUSES, `must be ${PET_STATUSES.join(', ')}`), 'available'),
  },
  'is missing',
);
const category = v.object({ id: int64, name }, 'is missing');

/** The animal of a line, or all that is wrong with it. */
export function readLine(line: Buffer): NewPet | string {
  try {
    return readAnimal(readJson(line));
  } catch (error) {
    return (error as Error).message.replace(/\(line 1, (column \d+\))$/, '($1'); // it is the only line
  }
}

/** Its `id` is let pass, so that an export can be imported, and not kept. */
function readAnimal(value: JsonValue): NewPet | string {
  const read = readAs(animal, value);
  if (typeof read === 'string') return read;
  const { name, categoryId, status } = read;
  return { name, categoryId, status };
}

/** What the schema makes of it, or all that is wrong with it: of unknown members valibot would name the first alone. */
function readAs<E extends v.ObjectEntries>(
  schema: v.ObjectSchema<E, string>,
  value: JsonValue,
): v.InferOutput<v.ObjectSchema<E, string>> | string {
  if (!(value instanceof Map)) return NO_OBJECT;
  const { issues = [], output } = v.safeParse(schema, plain(value));
  const faults = [
    ...issues.map((issue) => `${v.getDotPath(issue)} ${issue.message}`),
    ...unknownIn(value, Object.keys(schema.entries)),
  ];
  return faults.length > 0 ? faults.join('; ') : (output as v.InferOutput<v.ObjectSchema<E, string>>);
}

const unknownIn = (value: Map<string, JsonValue>, known: string[]): string[] =>
  [...value.keys()].filter((name) => !known.includes(name)).map((name) => `${name} is unknown`);

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
    throw new CommandError(EXIT.failed, `seed ${file}: ${(error as Error).message}`);
  }
}

function seedOf(value: JsonValue): { categories: Category[]; pets: Pet[] } {
  if (!(value instanceof Map)) throw new Error(NO_OBJECT);
  const faults = unknownIn(value, ['categories', 'pets']);
  const itemsOf = <T>(member: string, read: (item: JsonValue) => T | string): T[] => {
    const items = value.has(member) ? value.get(member) : [];
    if (!Array.isArray(items)) {
      faults.push(`${member} must be a JSON array`);
      return [];
    }
    return items.flatMap((item, at) => {
      const found = read(item);
      if (typeof found !== 'string') return [found];
      faults.push(`${member}.${at}: ${found}`);
      return [];
    });
  };
  const categories = itemsOf('categories', (item) => readAs(category, item));
  const animals = itemsOf('pets', readAnimal);
  if (faults.length > 0) throw new Error(faults.join('; '));
  return { categories, pets: animals.map((animal, at) => ({ id: at + 1, ...animal })) };
}
