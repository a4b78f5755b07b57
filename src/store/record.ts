/**
 * The names of data files, and a line in them (docs/formats.md): `{"crc":"1a2b3c4d",` and the rest of a JSON object.
 * The checksum is CRC-32 over all bytes after that member up to the end of the line. Readable with less and jq.
 */
import { crc32 } from 'node:zlib';
import { digits } from '../digits.ts';
import { DamagedError } from './damage.ts';
import type { Int64, Operation } from './model.ts';

const FORMAT_VERSION = 1;
/** The longest line that is written or read. */
export const MAX_RECORD_BYTES = 4 * 1024 * 1024;
/** `{"crc":"1a2b3c4d",` */
export const SEAL_BYTES = 18;

type Kind = 'log' | 'snapshot';

/**
 * What stands in a log besides operations: its end. `close`: the store was closed, and may go on here after this line
 * is cut away. `next`: it goes on in the log of that generation.
 */
export interface End {
  op: 'end';
  how: 'close' | 'next';
  generation?: number;
  /** ms since 1970: what of the idempotency records has expired by then is dropped. */
  at: number;
}

/** A line of a log. `left`: how many lines of the same batch follow. */
interface Entry {
  seq: number;
  batch: number;
  left: number;
  operation: Operation | End;
}

/** `snapshot-000007.jsonl`, `log-000007.jsonl`: the digits only make `ls` sort. */
export function fileName(kind: Kind, generation: number): string {
  return `${kind}-${String(generation).padStart(6, '0')}.jsonl`;
}

/** A data file by its name. `unfinished`: a snapshot that is being written, and counts for nothing. */
interface DataFile {
  name: string;
  kind: Kind | 'unfinished';
  generation: number;
}

/** Those of these names that are names of data files, in order. */
export function filesIn(names: string[]): DataFile[] {
  return names.sort().flatMap((name) => {
    const match = /^(snapshot|log)-(\d{6,15})\.jsonl(\.tmp)?$/.exec(name);
    if (!match) return [];
    return [{ name, kind: match[3] ? 'unfinished' : (match[1] as Kind), generation: Number(match[2]) }];
  });
}

/** `body`: a JSON object without its opening brace. */
export function seal(body: string): string {
  return `${checksum(body)}${body}\n`;
}

/** Whether a line (without its line feed) is as it was written. */
export function isSealed(line: Buffer): boolean {
  if (line.length <= SEAL_BYTES) return false;
  return line.toString('latin1', 0, SEAL_BYTES) === checksum(line.subarray(SEAL_BYTES));
}

function checksum(body: string | Buffer): string {
  return `{"crc":"${crc32(body).toString(16).padStart(8, '0')}",`;
}

export function header(kind: Kind, store: string, generation: number, more = ''): string {
  return seal(`"petstore":"${kind}","version":${FORMAT_VERSION},"store":"${store}","generation":${generation}${more}}`);
}

/** A first line whose checksum is right: what it says, when it belongs to this file. */
export function readHeader(
  path: string,
  line: Buffer,
  kind: Kind,
  generation?: number,
): { store: string; seq?: number; batch?: number } {
  const header = JSON.parse(line.toString());
  if (header.petstore !== kind) throw new DamagedError(path, 0, `this is no ${kind} of a petstore`);
  if (header.version !== FORMAT_VERSION) {
    const told = `format version ${header.version}; this program reads version ${FORMAT_VERSION}`;
    throw new Error(`${path} has ${told}. Nothing was changed.`);
  }
  if (generation !== undefined && header.generation !== generation) {
    throw new DamagedError(path, 0, `the file says it is generation ${header.generation}`);
  }
  return header;
}

/** The part of an entry that is known before its place in the log is: from `"op"` to the closing brace. */
export function encodeOperation(operation: Operation | End): string {
  // With a replacer JSON.stringify takes twice the time: most operations go without.
  return JSON.stringify(operation, mayHoldBigint(operation) ? (_, value) => plainInt64(value) : undefined).slice(1);
}

function mayHoldBigint(operation: Operation | End): boolean {
  if (operation.op === 'addPet') return typeof operation.pet.categoryId === 'bigint';
  if (operation.op === 'importPart') return operation.pets.some(({ categoryId }) => typeof categoryId === 'bigint');
  return operation.op === 'setCategory' || operation.op === 'seed';
}

export function encodeEntry(seq: number, batch: number, left: number, operation: string): string {
  return seal(`"seq":${digits(seq)},"batch":${batch},"left":${left},${operation}`);
}

export function decodeEntry(line: Buffer): Entry {
  const { crc: _, seq, batch, left, ...operation } = JSON.parse(line.toString());
  const { op, pet, pets = [pet], category, categories = [category] } = operation;
  if (op === 'addPet' || op === 'importPart' || op === 'seed') {
    for (const one of pets) one.categoryId = reviveInt64(one.categoryId);
  }
  if (op === 'setCategory' || op === 'seed') for (const one of categories) one.id = reviveInt64(one.id);
  return { seq, batch, left, operation };
}

/** An int64 beyond 2^53 is written as a decimal string, so that any JSON reader reads the file without loss. */
export function plainInt64<T>(value: T): T | string {
  return typeof value === 'bigint' ? value.toString() : value;
}

export function reviveInt64(value: Int64 | string): Int64 {
  return typeof value === 'string' ? BigInt(value) : value;
}
