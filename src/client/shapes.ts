/** What the service keeps, and its JSON to and fro. What a newer service may send beyond this is passed over. */
import { int64Text, parseInt64 } from '../json/int64.ts';
import type { JsonValue } from '../json/reader.ts';
import {
  type Category,
  type Int64,
  ORDER_STATUSES,
  type OrderStatus,
  PET_STATUSES,
  type PetStatus,
} from '../store/model.ts';
import { Failure, PetstoreError } from './errors.ts';

export interface NewPet {
  name: string;
  categoryId: Int64;
  /** `available` when omitted. */
  status?: PetStatus;
}

export interface Pet {
  id: Int64;
  name: string;
  categoryId: Int64;
  status: PetStatus;
}

export interface Order {
  id: Int64;
  petId: Int64;
  status: OrderStatus;
  /** RFC 3339, UTC. */
  placedAt: string;
}

export const readPet = (json: JsonValue): Pet => ({
  id: int(json, 'id'),
  name: text(json, 'name'),
  categoryId: int(json, 'categoryId'),
  status: oneOf(PET_STATUSES, json, 'status'),
});

export const readCategory = (json: JsonValue): Category => ({ id: int(json, 'id'), name: text(json, 'name') });

export const readOrder = (json: JsonValue): Order => ({
  id: int(json, 'id'),
  petId: int(json, 'petId'),
  status: oneOf(ORDER_STATUSES, json, 'status'),
  placedAt: text(json, 'placedAt'),
});

export function member(json: JsonValue, name: string): JsonValue | undefined {
  return json instanceof Map ? json.get(name) : undefined;
}

function text(json: JsonValue, name: string): string {
  const value = member(json, name);
  if (typeof value !== 'string') throw new TypeError(`"${name}" is not a string`);
  return value;
}

function oneOf<T extends string>(values: readonly T[], json: JsonValue, name: string): T {
  const found = values.find((value) => value === member(json, name));
  if (found === undefined) throw new TypeError(`"${name}" is none of ${values.join(', ')}`);
  return found;
}

function int(json: JsonValue, name: string): Int64 {
  const value = member(json, name);
  if (!isInt(value)) throw new TypeError(`"${name}" is not an int64`);
  return value;
}

const isInt = (value: unknown): value is Int64 => typeof value === 'number' || typeof value === 'bigint';

export function writeJson(members: object): string {
  const written = Object.entries(members)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${JSON.stringify(name)}:${isInt(value) ? writeInt(value, name) : JSON.stringify(value)}`);
  return `{${written.join(',')}}`;
}

/** A number beyond 2^53 may be another than the one that was meant already: it is refused, never rounded. */
export function writeInt(value: Int64, name: string): string {
  const written = int64Text(value);
  if (typeof value === 'number' ? Number.isSafeInteger(value) : parseInt64(written) !== undefined) return written;
  const fault = `${name}: ${written} is not an exact int64 (beyond 2^53, give a bigint)`;
  throw new PetstoreError(new Failure('invalid_argument', fault));
}
