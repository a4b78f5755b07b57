/**
 * The one kind of data file, `store-000007.jsonl` (docs/formats.md): JSON lines, to be read with less and jq. The first
 * line is a header. The first batch is the state as it was when the file was begun, and ends with its counts and
 * digest; the changes of each further batch became durable together. A line is `{"crc":"1a2b3c4d","batch":7,"n":0,` and
 * a change: `n` counts the lines of a batch, `"last":true` ends it. `crc` is the CRC-32 of all bytes after its comma up
 * to the line feed.
 *
 * A batch is written only after the one before is durable, and counts as a whole or not at all.
 */
import { isUtf8 } from 'node:buffer';
import { crc32 } from 'node:zlib';
import { digits } from '../../digits.ts';
import { encode, encodeState, VersionError } from '../change-json.ts';
import { type Change, type Counters, StoreError } from '../model.ts';
import { isCounters } from '../shape.ts';
import type { State } from '../state.ts';

const FORMAT_VERSION = 3;
/** The longest line, and the longest batch but the first, that is written or read. */
export const MAX_LINE_BYTES = 4 * 1024 * 1024;
export const MAX_BATCH_BYTES = 32 * 1024 * 1024;
export const LINE_FEED = 10;
const PIECE_CHARACTERS = 1024 * 1024;
/** The length of `{"crc":"1a2b3c4d",` */
export const SEAL_BYTES = 18;

/** The bound of file and batch numbers, far below 2^53. */
const MAX_NUMBER = 1e15;

export const isStoreId = (value: unknown): value is string => typeof value === 'string' && /^[\w-]{8,32}$/.test(value);

export interface Header {
  /** The store's id: a file of another store is never taken for one of this. */
  store: string;
  /** The number in the file's name. */
  file: number;
  /** The number of the first batch. */
  first: number;
  /** The next ids when the file was begun, as in the proof at the end of the first batch. */
  counters?: Counters;
}

/** Throws on a text that is not valid Unicode. */
function mustBeUnicode(_: string, value: unknown): unknown {
  if (typeof value === 'string' && /\p{Surrogate}/u.test(value)) throw new Error('a lone surrogate');
  return value;
}

/** The members of a line; undefined if it is no JSON object, or no UTF-8. */
export function parsed(line: Buffer): Record<string, unknown> | undefined {
  const text = line.toString();
  if (text.includes('\ufffd') && !isUtf8(line)) return undefined;
  try {
    // Only an escape can stand for a lone surrogate, and few lines have escapes.
    const value = JSON.parse(text, text.includes('\\u') ? mustBeUnicode : undefined);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The files are not as the store wrote them, and acknowledged writes may be missing: the start is refused. */
export class DamagedError extends Error {
  readonly file: string;
  readonly offset: number;
  readonly what: string;

  constructor(file: string, offset: number, what: string, advice = OR_CUT) {
    super(`damaged data: ${file}, offset ${offset}: ${what}. Nothing was changed. ${advice}`);
    this.file = file;
    this.offset = offset;
    this.what = what;
  }
}

/** The advice on damage that a cut does not mend. */
export const BEYOND_A_CUT = 'Restore a backup into an empty directory.';

const OR_CUT = 'Restore a backup into an empty directory, or cut the file at this offset: docs/operating.md says how.';

export const fileName = (file: number): string => `store-${String(file).padStart(6, '0')}.jsonl`;

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

// A line is read by the length of its seal, and a batch must be able to hold the longest line.
if (checksum('').length !== SEAL_BYTES || MAX_LINE_BYTES > MAX_BATCH_BYTES)
  throw new Error('the format contradicts itself');

/** Looks digits up in a table: `toString(16)` goes through floating point for half of all checksums. */
function checksum(body: string | Buffer): string {
  const crc = crc32(body);
  return `{"crc":"${HEX[crc >>> 24]}${HEX[(crc >>> 16) & 255]}${HEX[(crc >>> 8) & 255]}${HEX[crc & 255]}",`;
}

/** `body`: a JSON object without its opening brace. */
export const seal = (body: string): string => `${checksum(body)}${body}\n`;

/** True if the checksum of a line (without its line feed) is right. */
export function isSealed(line: Buffer): boolean {
  return line.length > SEAL_BYTES && line.toString('latin1', 0, SEAL_BYTES) === checksum(line.subarray(SEAL_BYTES));
}

/** The members that stand before those of a change. */
const placeOf = (batch: number, n: number, isLast: boolean): string =>
  `"batch":${digits(batch)},"n":${n},${isLast ? '"last":true,' : ''}`;

/** A batch as lines. `close`: the store was closed, and everything before is durable. */
export function encodeBatch(batch: number, changes: readonly (Change | { op: 'close' })[]): Buffer {
  let text = '';
  for (const [n, change] of changes.entries()) {
    const body = change.op === 'close' ? '"op":"close"}' : encode(change);
    const line = seal(placeOf(batch, n, n === changes.length - 1) + body);
    // A UTF-16 unit takes three bytes of UTF-8 at most: few lines need be measured.
    if (3 * line.length > MAX_LINE_BYTES && Buffer.byteLength(line) > MAX_LINE_BYTES) {
      throw new StoreError('rejected', 'the change is too large for one record');
    }
    text += line;
    if (3 * text.length > MAX_BATCH_BYTES) throw new StoreError('busy', 'too much is written at once');
  }
  return Buffer.from(text);
}

/** The header from a first line whose checksum is right. Throws if this program cannot read the file. */
export function readHeader(path: string, line: Buffer): Header {
  const { petstore, version, store, file, first, counters } = parsed(line) ?? {};
  const isNumber = (value: unknown): value is number =>
    Number.isSafeInteger(value) && (value as number) > 0 && (value as number) < MAX_NUMBER;
  const noHeader = new DamagedError(path, 0, 'the first line is no header', BEYOND_A_CUT);
  if (petstore !== 'store' || !isNumber(version)) throw noHeader;
  if (version !== FORMAT_VERSION) throw new VersionError(`it has format ${version}`, version < FORMAT_VERSION);
  if (!isStoreId(store) || !isNumber(file) || !isNumber(first) || !isCounters(counters)) throw noHeader;
  return { store, file, first, counters };
}

/** Joins lines into pieces, each large enough for a write. */
export function* inPieces(lines: Iterable<string>): Generator<string> {
  let piece = '';
  for (const line of lines) {
    piece += line;
    if (piece.length < PIECE_CHARACTERS) continue;
    yield piece;
    piece = '';
  }
  if (piece !== '') yield piece;
}

/** A whole file, line by line: its header, and a state as the first batch. */
export function* encodeFile({ store, file, first }: Header, state: State): Generator<string> {
  const { counters } = state;
  yield seal(JSON.stringify({ petstore: 'store', version: FORMAT_VERSION, store, file, first, counters }).slice(1));
  let n = 0;
  for (const body of encodeState(state)) yield seal(placeOf(first, n++, body.startsWith('"op":"proof"')) + body);
}
