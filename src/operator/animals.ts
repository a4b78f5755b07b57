/** Animals and categories that the operator brings, in a seed or an import, checked with valibot. */
import * as v from 'valibot';
import type { Int64 } from '../json/int64.ts';
import { type JsonValue, readJson } from '../json/reader.ts';
import { countCharacters } from '../json/text.ts';
import { NAME_LENGTH } from '../shop/pets.ts';
import { type Category, type NewPet, PET_STATUSES } from '../store/model.ts';
import { counted } from './output.ts';

const FAULTS_MAX_NAMED = 20;

/** What the reader makes of an integral JSON number within 64 bits; of any other number it makes something else. */
const int64 = v.custom<Int64>(
  (value) => typeof value === 'number' || typeof value === 'bigint',
  'must be a 64-bit integer',
);

const { min, max } = NAME_LENGTH;
const NAME_RULE = `must be text of ${min} to ${max} characters, not only white space`;
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
    return (error as Error).message.replace(/\(line 1, (column \d+)\)$/, '($1)'); // it is the only line
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
  if (!(value instanceof Map)) return 'must be a JSON object';
  const plain = Object.create(null); // which is how valibot takes what may have any names
  for (const [name, member] of value) plain[name] = member;
  const { issues = [], output } = v.safeParse(schema, plain);
  const faults = issues.map((issue) => `${v.getDotPath(issue)} ${issue.message}`);
  faults.push(...unknownIn(value, Object.keys(schema.entries)));
  return faults.length > 0 ? faults.join('; ') : (output as v.InferOutput<v.ObjectSchema<E, string>>);
}

const unknownIn = (value: Map<string, JsonValue>, known: string[]): string[] =>
  [...value.keys()].filter((name) => !known.includes(name)).map((name) => `${name} is unknown`);

export interface Seed {
  categories: Category[];
  pets: NewPet[];
}

/** Throws with the first of all that is wrong with it. */
export function readSeed(bytes: Buffer): Seed {
  const value = readJson(bytes);
  if (!(value instanceof Map)) throw new Error('must be a JSON object');
  const faults = unknownIn(value, ['categories', 'pets']);
  const itemsOf = <T>(member: string, read: (item: JsonValue) => T | string): T[] => {
    const items = value.get(member) ?? (value.has(member) ? null : []);
    if (!Array.isArray(items)) faults.push(`${member} must be a JSON array`);
    const found = Array.isArray(items) ? items.map(read) : [];
    for (const [at, item] of found.entries()) if (typeof item === 'string') faults.push(`${member}.${at}: ${item}`);
    return found as T[];
  };
  const categories = itemsOf('categories', (item) => readAs(category, item));
  const seed = { categories, pets: itemsOf('pets', readAnimal) };
  if (faults.length === 0) return seed;
  const more = faults.length - FAULTS_MAX_NAMED;
  const rest = more > 0 ? `; and ${counted(more, 'more fault')}` : '';
  throw new Error(faults.slice(0, FAULTS_MAX_NAMED).join('; ') + rest);
}
