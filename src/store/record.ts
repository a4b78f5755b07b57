/**
 * One line of a data file (docs/formats.md): `{"crc":"1a2b3c4d",` and the rest of a JSON object. The checksum is
 * CRC-32 over all bytes after that member up to the end of the line. Readable with less and jq.
 */
import { crc32 } from 'node:zlib';
import type { Category, Int64, Operation, Pet } from './model.ts';

export const FORMAT_VERSION = 1;
/** The longest line that is written or read. */
export const MAX_RECORD_BYTES = 4 * 1024 * 1024;
/** `{"crc":"1a2b3c4d",` */
export const SEAL_BYTES = 18;

/** The first line of a file. */
export interface Header {
  petstore: 'log' | 'snapshot';
  version: number;
  store: string;
  generation: number;
}

/**
 * What stands in a log besides operations: its end. `close`: the store was closed, and may go on here after this line
 * is cut away. `next`: it goes on in the log of that generation.
 */
export interface End {
  op: 'end';
  how: 'close' | 'next';
  generation?: number;
  /** Wall clock, ms: what of the idempotency records has expired by then is dropped. */
  at: number;
}

/** A line of a log. `left`: how many lines of the same batch follow. */
export interface Entry {
  seq: number;
  batch: number;
  left: number;
  operation: Operation | End;
}

/** `body`: a JSON object without its opening brace. */
export function seal(body: string): string {
  return `{"crc":"${crc32(body).toString(16).padStart(8, '0')}",${body}\n`;
}

/** Whether the line `bytes[start … end - 1]` (without its line feed) is as it was written. */
export function isSealed(bytes: Buffer, start: number, end: number): boolean {
  if (end - start <= SEAL_BYTES) return false;
  const lead = bytes.toString('latin1', start, start + SEAL_BYTES);
  const crc = crc32(bytes.subarray(start + SEAL_BYTES, end))
    .toString(16)
    .padStart(8, '0');
  return lead === `{"crc":"${crc}",`;
}

export function header(kind: Header['petstore'], store: string, generation: number, more = ''): string {
  return seal(`"petstore":"${kind}","version":${FORMAT_VERSION},"store":"${store}","generation":${generation}${more}}`);
}

/** The part of an entry that is known before its place in the log is: from `"op"` to the closing brace. */
export function encodeOperation(operation: Operation | End): string {
  return JSON.stringify(plain(operation)).slice(1);
}

export function encodeEntry(seq: number, batch: number, left: number, operation: string): string {
  return seal(`"seq":${seq},"batch":${batch},"left":${left},${operation}`);
}

export function decodeEntry(line: string): Entry {
  const { crc: _, seq, batch, left, ...rest } = JSON.parse(line);
  return { seq, batch, left, operation: revive(rest) };
}

/** An int64 beyond 2^53 is written as a decimal string, so that any JSON reader reads the file without loss. */
export function plainInt64(value: Int64): number | string {
  return typeof value === 'bigint' ? value.toString() : value;
}

export function reviveInt64(value: number | string): Int64 {
  return typeof value === 'string' ? BigInt(value) : value;
}

function plain(operation: Operation | End): unknown {
  switch (operation.op) {
    case 'addPet':
      return typeof operation.pet.categoryId === 'bigint' ? { ...operation, pet: plainPet(operation.pet) } : operation;
    case 'setCategory':
      return { ...operation, category: plainCategory(operation.category) };
    case 'seed':
      return { op: 'seed', categories: operation.categories.map(plainCategory), pets: operation.pets.map(plainPet) };
    case 'importPart':
      return { ...operation, pets: operation.pets.map(plainPet) };
    default:
      return operation;
  }
}

function revive(read: Operation | End): Operation | End {
  switch (read.op) {
    case 'addPet':
      revivePet(read.pet);
      break;
    case 'setCategory':
      reviveCategory(read.category);
      break;
    case 'seed':
      read.categories.forEach(reviveCategory);
      read.pets.forEach(revivePet);
      break;
    case 'importPart':
      read.pets.forEach(revivePet);
      break;
  }
  return read;
}

function plainPet(pet: Pet): object {
  return { ...pet, categoryId: plainInt64(pet.categoryId) };
}

function revivePet(pet: Pet): void {
  pet.categoryId = reviveInt64(pet.categoryId as number | string);
}

function plainCategory(category: Category): object {
  return { ...category, id: plainInt64(category.id) };
}

function reviveCategory(category: Category): void {
  category.id = reviveInt64(category.id as number | string);
}
