/** Animals that the operator brings: the seed and the lines of an import, checked with valibot. */
import * as v from 'valibot';
import type { JsonValue } from '../json/reader.ts';
import { countCharacters } from '../json/text.ts';
import { NAME_LENGTH } from '../shop/pets.ts';
import { type Int64, PET_STATUSES, type PetStatus } from '../store/model.ts';

export interface NewAnimal {
  name: string;
  categoryId: Int64;
  status: PetStatus;
}

/** What the reader makes of an integral JSON number within 64 bits; of any other number it makes something else. */
export const int64 = v.custom<Int64>(
  (value) => typeof value === 'number' || typeof value === 'bigint',
  'must be an integer of 64 bits',
);

const { min, max } = NAME_LENGTH;
const NAME_RULE = `must be a text of ${min} to ${max} characters, not only white space`;
export const name = v.pipe(
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

/** The animal, or all that is wrong with it. Its `id` is let pass, so that an export can be imported, and not kept. */
export function readAnimal(value: JsonValue): NewAnimal | string {
  if (!(value instanceof Map)) return 'must be a JSON object';
  const result = v.safeParse(animal, plain(value));
  if (!result.success) return faultsOf(result.issues);
  const { name, categoryId, status } = result.output;
  return { name, categoryId, status };
}

export function faultsOf(issues: readonly v.BaseIssue<unknown>[]): string {
  return issues.map((issue) => `${v.getDotPath(issue) ?? 'it'} ${issue.message}`).join('; ');
}

/** Maps as objects without a prototype, which is how valibot takes them. */
export function plain(value: JsonValue): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (!(value instanceof Map)) return value;
  const object = Object.create(null);
  for (const [key, member] of value) object[key] = plain(member);
  return object;
}
