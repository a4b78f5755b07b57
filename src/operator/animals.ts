/** Animals and categories that the operator brings, in a seed or an import, checked with valibot. */
import * as v from 'valibot';
import type { Int64 } from '../json/int64.ts';
import { type JsonValue, readJson } from '../json/reader.ts';
import { countCharacters } from '../json/text.ts';
import { MAX_FAULTS_NAMED } from '../quoting.ts';
import { NAME_LENGTH } from '../shop/pets.ts';
import { columnsOf } from '../store/changes.ts';
import { type NewPet, PET_STATUSES } from '../store/model.ts';
import { counted } from './output.ts';

const { min, max } = NAME_LENGTH;
const NAME_RULE = `must be text of ${min} to ${max} characters, not only white space`;

const name = v.pipe(
  v.string(NAME_RULE),
  v.check((text) => /\P{White_Space}/u.test(text) && countCharacters(text) <= max, NAME_RULE),
);

/** An integral JSON number within 64 bits: the reader gives a number or a bigint only for these. */
const int64 = v.custom<Int64>(
  (value) => typeof value === 'number' || typeof value === 'bigint',
  'must be a 64-bit integer',
);

const map = v.instance(Map<string, JsonValue>, 'must be a JSON object');
const unknown = v.custom<unknown>(() => false, 'is unknown');
const exactly = <E extends v.ObjectEntries>(entries: E) =>
  v.pipe(map, v.transform(asObject), v.objectWithRest(entries, unknown, 'is missing'));
const listOf = <S extends v.GenericSchema>(item: S) => v.optional(v.array(item, 'must be a JSON array'), []);

const status = v.optional(v.picklist(PET_STATUSES, `must be ${PET_STATUSES.join(', ')}`), 'available');
/** Its `id` is let pass, so that an export can be imported, and not kept. */
const animal = v.pipe(
  exactly({ id: v.optional(int64), name, categoryId: int64, status }),
  v.transform(({ name, categoryId, status }): NewPet => ({ name, categoryId, status })),
);
const category = exactly({ id: int64, name });
const animals = v.pipe(listOf(animal), v.transform(columnsOf));
const content = exactly({ categories: listOf(category), pets: animals });

/** These throw all that is wrong. */
export const readAnimal = (line: Buffer) => readAs(animal, line);
export const readAnimals = (bytes: Buffer) => readAs(animals, bytes);
export const readContent = (bytes: Buffer) => readAs(content, bytes);
export type Content = ReturnType<typeof readContent>;

function readAs<T>(schema: v.GenericSchema<unknown, T>, bytes: Buffer): T {
  const { success, output, issues = [] } = v.safeParse(schema, readJson(bytes));
  if (success) return output;
  const faults = issues.slice(0, MAX_FAULTS_NAMED).map((issue) => `${v.getDotPath(issue) ?? ''} ${issue.message}`);
  const more = issues.length - MAX_FAULTS_NAMED;
  throw new Error(faults.join('; ').trim() + (more > 0 ? `; and ${counted(more, 'more fault')}` : ''));
}

/** Some names valibot passes over, as if they were not there; in quotes they are only unknown. */
function asObject(members: Map<string, JsonValue>): object {
  const object: Record<string, JsonValue> = {};
  for (const [name, value] of members) {
    object[/^(__proto__|prototype|constructor)$/.test(name) ? `"${name}"` : name] = value;
  }
  return object;
}
