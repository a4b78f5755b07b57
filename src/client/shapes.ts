/** JSON of the service to the client's types, and back. What a newer service may send beyond them is passed over. */
import { int64Text, parseInt64 } from '../json/int64.ts';
import type { JsonValue } from '../json/reader.ts';
import { Failure, PetstoreError } from './errors.ts';
import type { Category, Int64, Order, OrderStatus, Pet, PetStatus } from './types.ts';

export const readPet = (json: JsonValue): Pet => ({
  id: int(json, 'id'),
  name: text(json, 'name'),
  categoryId: int(json, 'categoryId'),
  status: one<PetStatus>(json, 'status', 'available', 'pending', 'sold'),
});

export const readCategory = (json: JsonValue): Category => ({ id: int(json, 'id'), name: text(json, 'name') });

export const readOrder = (json: JsonValue): Order => ({
  id: int(json, 'id'),
  petId: int(json, 'petId'),
  status: one<OrderStatus>(json, 'status', 'placed', 'delivered', 'cancelled'),
  placedAt: text(json, 'placedAt'),
});

export function readList<T>(json: JsonValue, read: (item: JsonValue) => T): T[] {
  if (!Array.isArray(json)) throw new TypeError('not an array');
  return json.map(read);
}

/** Undefined where there is no such member, or it is not text. */
export function textOf(json: JsonValue | undefined, name: string): string | undefined {
  const value = member(json, name);
  return typeof value === 'string' ? value : undefined;
}

export function member(json: JsonValue | undefined, name: string): JsonValue | undefined {
  return json instanceof Map ? json.get(name) : undefined;
}

function text(json: JsonValue, name: string): string {
  const value = textOf(json, name);
  if (value === undefined) throw new TypeError(`"${name}" is not a string`);
  return value;
}

function one<T extends string>(json: JsonValue, name: string, ...values: T[]): T {
  const found = values.find((value) => value === textOf(json, name));
  if (found === undefined) throw new TypeError(`"${name}" is none of ${values.join(', ')}`);
  return found;
}

function int(json: JsonValue, name: string): Int64 {
  const value = member(json, name);
  if (typeof value !== 'number' && typeof value !== 'bigint') throw new TypeError(`"${name}" is not an int64`);
  return value;
}

export function writeJson(members: object): string {
  const written = Object.entries(members)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${JSON.stringify(name)}:${isInt(value) ? writeInt(value, name) : JSON.stringify(value)}`);
  return `{${written.join(',')}}`;
}

const isInt = (value: unknown): value is Int64 => typeof value === 'number' || typeof value === 'bigint';

/** A number beyond 2^53 may be another than the one that was meant already: it is refused, never rounded. */
export function writeInt(value: Int64, name: string): string {
  const written = int64Text(value);
  if (typeof value === 'number' ? Number.isSafeInteger(value) : parseInt64(written) !== undefined) return written;
  const fault = `${name}: ${written} is not an exact int64 (beyond 2^53, give a bigint)`;
  throw new PetstoreError(new Failure('invalid_argument', fault));
}
