/** The one reader of a data file, line by line. At the first bad line it judges: a torn end, or damage. */

import { inMegabytes } from '../bounds.ts';
import { decode, loaderOf, VersionError } from '../change-json.ts';
import type { Change } from '../model.ts';
import type { State } from '../state.ts';
import type { Disk } from './disk.ts';
import {
  BEYOND_A_CUT,
  DamagedError,
  type Header,
  isSealed,
  LINE_FEED,
  MAX_LINE_BYTES,
  parsed,
  readHeader,
} from './format.ts';
import { judge, type Known, shortOf, type WholePart } from './judge.ts';

const READ_BYTES = 1024 * 1024;
/** The most bytes after a bad place that are judged. */
const LOOK_BYTES = 256 * 1024 * 1024;

const TOO_LONG = `a line has more than ${inMegabytes(MAX_LINE_BYTES)}`;

/** Called with the progress of a long piece of work. */
export type Progress = (bytesDone: number, bytesTotal: number) => void;

/** The findings in a file, up to its last whole batch. */
export interface Found extends WholePart {
  header: Header;
  /** The end of the first batch: the first length of the file. 0: it has no whole batch. */
  baseLength: number;
  /** A notice of the torn end that a crash has left, and that is dropped. */
  torn?: string;
}

/** Takes in the lines of a file, one after the other. */
class Reader {
  readonly found: Found = {
    header: { store: '', file: 0, first: 0 },
    baseLength: 0,
    batch: 0,
    length: 0,
    isClosed: false,
  };
  readonly #path: string;
  readonly #state: State | undefined;
  readonly #load: ReturnType<typeof loaderOf>;
  readonly #onHeader: ReadFileOptions['onHeader'];
  /** The lines so far of an incomplete batch. */
  #lines = 0;
  #changes: Change[] = [];

  constructor(path: string, state: State | undefined, onHeader: ReadFileOptions['onHeader']) {
    [this.#path, this.#state, this.#load, this.#onHeader] = [path, state, loaderOf(state), onHeader];
  }

  /** Takes a line in. Returns its fault if the line does not belong there. */
  take(bytes: Buffer, offset: number): string | undefined {
    if (!isSealed(bytes)) return 'the checksum is wrong';
    const { found } = this;
    if (offset === 0) {
      found.header = readHeader(this.#path, bytes);
      this.#onHeader?.(found.header);
      found.batch = found.header.first - 1;
      return undefined;
    }
    if (found.isClosed) return 'more follows after the store was closed';
    const line = parsed(bytes) ?? {};
    const { batch, n, last } = line;
    if (!Number.isSafeInteger(n) || !Number.isSafeInteger(batch)) return 'this is no line of a batch';
    if (n !== this.#lines || batch !== found.batch + 1) {
      return `line ${n} of batch ${batch} stands here, where line ${this.#lines} of batch ${found.batch + 1} belongs`;
    }
    if (last !== undefined && last !== true) return '"last" is neither true nor left out';
    if (line.op === 'close' && last && n === 0 && found.length > 0) found.isClosed = true;
    else this.#accept(line, last === true, bytes, offset);
    return undefined;
  }

  /** The fault of a file that ends here; undefined: it may end here. */
  get missing(): string | undefined {
    if (this.found.length === 0) return 'the file ends within its first batch';
    return this.#lines === 0 ? undefined : `the file ends within batch ${this.found.batch + 1}`;
  }

  #accept(line: object, isLast: boolean, bytes: Buffer, offset: number): void {
    const { found } = this;
    try {
      const entry = decode(line);
      const isProof = entry.op === 'proof';
      if (isProof !== (isLast && found.length === 0))
        throw new Error('the proof is not the last line of the first batch');
      if (found.length > 0) this.#changes.push(entry as Change);
      else this.#load(entry, bytes.subarray(bytes.indexOf('"op"')));
      if (isLast) this.#state?.apply(this.#changes);
    } catch (error) {
      if (error instanceof VersionError) throw error;
      throw new DamagedError(this.#path, offset, (error as Error).message, BEYOND_A_CUT);
    }
    this.#lines++;
    if (!isLast) return;
    [this.#lines, this.#changes] = [0, []];
    [found.batch, found.length] = [found.batch + 1, offset + bytes.length + 1];
    found.baseLength ||= found.length;
  }
}

export interface ReadFileOptions {
  /** Reads no more bytes than this. */
  length?: number;
  known?: Known;
  /** Called with the header of the file; throws if it is not the expected file. */
  onHeader?: (header: Header) => void;
  onProgress?: Progress;
}

/**
 * Reads a file once, front to back, into an empty state, or only to check it. At the first bad place it judges whether
 * the file is torn or damaged:
 *
 * - A good line of a later batch after it proves that the missing part was durable, and may have been acknowledged:
 *   damage. So is any bad place in the first batch, which was durable before the file had its name.
 * - Otherwise the bad place is in the last batch. A crash leaves a batch cut off, or with sectors that were never
 *   written and read as zeros: none of it was acknowledged, and it is dropped. Anything else there (a changed byte, a
 *   repeated line) was not made by a crash: damage. So is every file that ends before its `known` durable part does.
 */
export async function readFile(
  disk: Disk,
  path: string,
  state?: State,
  { length = Number.POSITIVE_INFINITY, known, onHeader, onProgress }: ReadFileOptions = {},
): Promise<Found> {
  const fd = disk.openToRead(path);
  const reader = new Reader(path, state, onHeader);
  const { found } = reader;
  try {
    const size = Math.min(length, disk.size(fd));
    const { offset, why: wrong } = await readLines(piecesOf(disk, fd, size, onProgress), reader);
    const short = known && shortOf(found, known);
    let why = wrong ?? reader.missing ?? short;
    if (why === undefined) return found;
    const rest = Buffer.alloc(Math.min(size - offset, LOOK_BYTES));
    disk.read(fd, rest, offset);
    const judged = judge(rest, offset, found);
    const isTorn = judged.isTorn && short === undefined;
    if (judged.isTorn && short !== undefined && why !== short) why = `${why}; ${short}`;
    if (isTorn) {
      return { ...found, torn: `${path}, offset ${found.length}: ${why}; a crash left this, and it is dropped` };
    }
    const canBeCut = found.header.store !== '';
    throw new DamagedError(path, offset, why, canBeCut ? undefined : BEYOND_A_CUT);
  } catch (error) {
    if (error instanceof VersionError) throw new VersionError(`${path}: ${error.what}`, error.isOlder);
    throw (error as NodeJS.ErrnoException).syscall === 'read' ? Object.assign(error as Error, { path }) : error;
  } finally {
    disk.close(fd);
  }
}

/** Reads a backup from any source into the state: any fault is damage. Returns its findings as `readFile` does. */
export async function readBackupFrom(pieces: AsyncIterable<Buffer>, name: string, state: State): Promise<Found> {
  const reader = new Reader(name, state, undefined);
  const { offset, why = reader.missing } = await readLines(pieces, reader);
  if (why !== undefined) throw new DamagedError(name, offset, why);
  return reader.found;
}

/** Reads the pieces of a file. Each overwrites the one before in memory, so there is no garbage to collect. */
async function* piecesOf(disk: Disk, fd: number, size: number, onProgress?: Progress): AsyncGenerator<Buffer> {
  const place = Buffer.alloc(Math.min(READ_BYTES, size));
  for (let position = 0; position < size; ) {
    const piece = place.subarray(0, size - position);
    piece.fill(0, disk.read(fd, piece, position)); // bytes cut off meanwhile read as zeros
    position += piece.length;
    yield piece;
    onProgress?.(position, size);
    await new Promise((resolve) => setImmediate(resolve)); // a recovering server still answers
  }
}

/** Returns the offset up to which all lines are good, and the fault there. */
async function readLines(pieces: AsyncIterable<Buffer>, reader: Reader): Promise<{ offset: number; why?: string }> {
  let rest: Buffer = Buffer.alloc(0); // the beginning of a line, copied from earlier pieces
  let offset = 0;
  for await (const piece of pieces) {
    let from = 0;
    for (let feed = piece.indexOf(LINE_FEED); feed !== -1; feed = piece.indexOf(LINE_FEED, from)) {
      const end = piece.subarray(from, feed);
      const line = rest.length === 0 ? end : Buffer.concat([rest, end]);
      const why = line.length > MAX_LINE_BYTES ? TOO_LONG : reader.take(line, offset);
      if (why !== undefined) return { offset, why };
      offset += line.length + 1;
      from = feed + 1;
      rest = rest.subarray(0, 0);
    }
    rest = Buffer.concat([rest, piece.subarray(from)]);
    if (rest.length > MAX_LINE_BYTES) return { offset, why: TOO_LONG };
  }
  return { offset, why: rest.length > 0 ? 'the line is cut off' : undefined };
}
