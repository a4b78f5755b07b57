/** The one reader of a data file, line by line; where one is not as it was written, it tells torn from damaged. */
import type { Operation } from '../model.ts';
import { decode, loaderOf, VersionError } from '../record.ts';
import type { State } from '../state.ts';
import type { Disk } from './disk.ts';
import {
  BEYOND_REPAIR,
  DamagedError,
  type Header,
  isSealed,
  MAX_BATCH_BYTES,
  MAX_LINE_BYTES,
  parsed,
  readHeader,
} from './format.ts';

const READ_BYTES = 1024 * 1024;
/** So far behind a bad place it is looked what stands there. */
const LOOK_BYTES = 256 * 1024 * 1024;
const SECTOR_BYTES = 512;
const LINE_FEED = 10;

/** How far a long piece of work has come. */
export type Progress = (bytesDone: number, bytesTotal: number) => void;

/** What a file holds, up to its last whole batch. */
export interface Found {
  header: Header;
  /** The number of the last whole batch; `header.first - 1` until the first is whole. */
  batch: number;
  /** Where it ends. */
  length: number;
  /** Behind it, the file says that the store was closed: everything before is durable. */
  isClosed: boolean;
  /** What a crash has left behind it, and is dropped. */
  torn?: string;
  /** Where the file can be cut, and what is lost then. Only for who salvages: for others it is thrown. */
  damage?: { error: DamagedError; batches: number; bytes: number };
}

/** How far the file was durable, as `LOCK` knows it. */
interface Known {
  batch: number;
  /** Of the file. */
  length: number;
  /** Whether it must end with the record of a close. Asked at the end: a server beside us may have opened it. */
  isClosed(): boolean;
}

/** Takes the lines of a file in, one after the other. */
class Reader {
  readonly found: Found = { header: { store: '', file: 0, first: 0 }, batch: 0, length: 0, isClosed: false };
  readonly #path: string;
  readonly #state: State | undefined;
  readonly #load: ReturnType<typeof loaderOf>;
  readonly #onHeader: ReadFileOptions['onHeader'];
  /** Of the batch that is not whole yet. */
  #lines = 0;
  #operations: Operation[] = [];

  constructor(path: string, state: State | undefined, onHeader: ReadFileOptions['onHeader']) {
    [this.#path, this.#state, this.#load, this.#onHeader] = [path, state, loaderOf(state), onHeader];
  }

  /** Says why, where the line is not what should stand there. */
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
    if (n !== this.#lines || batch !== found.batch + 1) return `here stands line ${n} of batch ${batch}`;
    if (last !== undefined && last !== true) return '"last" is neither true nor left out';
    if (line.op === 'close' && last && n === 0 && found.length > 0) found.isClosed = true;
    else this.#accept(line, last === true, bytes, offset);
    return undefined;
  }

  /** Why the file may not end here. */
  get missing(): string | undefined {
    if (this.found.length === 0) return 'the file ends within its first batch';
    return this.#lines === 0 ? undefined : `the file ends within batch ${this.found.batch + 1}`;
  }

  #accept(line: object, isLast: boolean, bytes: Buffer, offset: number): void {
    const { found } = this;
    try {
      const entry = decode(line);
      const isProof = entry.op === 'proof';
      if (isProof !== (isLast && found.length === 0)) throw new Error('the proof is not the last of the first batch');
      if (found.length > 0) this.#operations.push(entry as Operation);
      else this.#load(entry, bytes.subarray(bytes.indexOf('"op"')));
      if (isLast) this.#state?.apply(this.#operations);
    } catch (error) {
      if (error instanceof VersionError) throw error;
      throw new DamagedError(this.#path, offset, (error as Error).message, BEYOND_REPAIR);
    }
    this.#lines++;
    if (!isLast) return;
    [this.#lines, this.#operations] = [0, []];
    [found.batch, found.length] = [found.batch + 1, offset + bytes.length + 1];
  }
}

export interface ReadFileOptions {
  /** Only so much of it. */
  length?: number;
  salvage?: boolean;
  known?: Known;
  /** Throws where it is not the file that is wanted. */
  onHeader?: (header: Header) => void;
  onProgress?: Progress;
}

/**
 * Reads a file once, front to back, into an empty state, or only to check it. At the first place that is not as it was
 * written, it tells torn from damaged:
 *
 * - A good line of a later batch after it proves that what is missing here was durable, and may have been acknowledged:
 *   damage. So is anything in the first batch, which was durable before the file had its name.
 * - Otherwise it is the last batch. A crash leaves it cut off, or with sectors that were never written and read as
 *   zeros: nobody was promised anything, and it is dropped. Whatever else stands there (a changed byte, a line doubled)
 *   no crash has made: damage. So is all that ends before what is `known` to have been durable.
 *
 * With `salvage` damage behind the header is told and not thrown: the state then holds what stands before.
 */
export async function readFile(
  disk: Disk,
  path: string,
  state?: State,
  { length = Number.POSITIVE_INFINITY, salvage = false, known, onHeader, onProgress }: ReadFileOptions = {},
): Promise<Found> {
  const fd = disk.openToRead(path);
  const reader = new Reader(path, state, onHeader);
  const { found } = reader;
  try {
    const size = Math.min(length, disk.size(fd));
    const { offset, why: wrong } = await readLines(disk, fd, size, reader, onProgress);
    const short = known && shortOf(found, known);
    let why = wrong ?? reader.missing ?? short;
    if (why === undefined) return found;
    const rest = Buffer.alloc(Math.min(size - offset, LOOK_BYTES));
    disk.read(fd, rest, offset);
    const judged = judge(rest, offset, found);
    const isTorn = judged.isTorn && short === undefined;
    if (judged.isTorn && short !== undefined) why = `${why}; ${short}`;
    const lastBatch = Math.max(judged.lastBatch, known?.batch ?? 0);
    if (isTorn) {
      return { ...found, torn: `${path}, offset ${found.length}: ${why}; a crash left this, and it is dropped` };
    }
    const canBeCut = found.header.store !== '';
    const error = new DamagedError(path, offset, why, canBeCut ? undefined : BEYOND_REPAIR);
    if (!salvage || !canBeCut) throw error;
    const bytes = Math.max(size, known?.length ?? 0) - offset;
    return { ...found, damage: { error, batches: Math.max(1, lastBatch - found.batch), bytes } };
  } catch (error) {
    if (error instanceof VersionError) throw new VersionError(`${path}: ${error.what}`, error.isOlder);
    throw (error as NodeJS.ErrnoException).syscall === 'read' ? Object.assign(error as Error, { path }) : error;
  } finally {
    disk.close(fd);
  }
}

/** Up to where all is well, and what is wrong there. */
async function readLines(disk: Disk, fd: number, size: number, reader: Reader, onProgress?: Progress) {
  let rest = Buffer.alloc(0);
  let offset = 0;
  for (let position = 0; position < size && rest.length <= MAX_LINE_BYTES; ) {
    const bytes = Buffer.alloc(rest.length + Math.min(READ_BYTES, size - position));
    bytes.set(rest);
    disk.read(fd, bytes.subarray(rest.length), position); // what was cut off meanwhile is zeros
    position += bytes.length - rest.length;
    let from = 0;
    for (let feed = bytes.indexOf(LINE_FEED); feed !== -1; feed = bytes.indexOf(LINE_FEED, from)) {
      const why = reader.take(bytes.subarray(from, feed), offset);
      if (why !== undefined) return { offset, why };
      offset += feed + 1 - from;
      from = feed + 1;
    }
    rest = bytes.subarray(from);
    onProgress?.(position, size);
    await new Promise((resolve) => setImmediate(resolve)); // a server that recovers says so to whoever asks
  }
  return { offset, why: rest.length > 0 ? 'the line is cut off' : undefined };
}

/** In which way the file ends before what is known to have been durable; undefined: it does not. */
function shortOf({ batch, isClosed }: Found, known: Known): string | undefined {
  const copied =
    'the rest is lost, or this is a copy that was made while a server ran (`petstore backup` makes a whole one)';
  if (batch < known.batch)
    return `batch ${known.batch} was durable, and batch ${batch} is the last one here: ${copied}`;
  return !isClosed && known.isClosed()
    ? 'the store was closed, and the record that says so is not at its end'
    : undefined;
}

/** Of what stands from the first bad place on: whether a crash may have left it, and the highest batch it tells. */
function judge(rest: Buffer, offset: number, found: Found): { isTorn: boolean; lastBatch: number } {
  const { batch, length, isClosed } = found;
  let isTorn = length > 0 && !isClosed && rest.length <= MAX_BATCH_BYTES;
  let lastBatch = batch;
  for (let from = 0; from < rest.length; ) {
    const feed = rest.indexOf(LINE_FEED, from);
    const line = rest.subarray(from, feed === -1 ? rest.length : feed);
    const record = line.subarray(line.lastIndexOf(0) + 1); // it may begin where zeros end
    if (isSealed(record)) {
      const told = batchOf(record);
      if (told !== batch + 1) isTorn = false; // the one that should stand here was durable; or it is nonsense
      lastBatch = Math.max(lastBatch, told);
    }
    // A crash leaves sectors unwritten, but changes no byte. So a record that is whole but for its line feed is damage,
    // unless that byte is the zero of a sector never written.
    const isUnwritten = line.at(-1) === 0 && (offset + rest.length - 1) % SECTOR_BYTES === 0;
    if (feed === -1 && !isUnwritten && isSealed(line.subarray(0, -1))) isTorn = false;
    from = feed === -1 ? rest.length : feed + 1;
  }
  return { isTorn: isTorn && (rest.at(-1) !== LINE_FEED || hasUnwrittenSector(rest, offset)), lastBatch };
}

/** Of a line whose checksum is right; 0: it is none of a batch. Throws where a newer program wrote it. */
function batchOf(record: Buffer): number {
  const line = parsed(record);
  if (!Number.isSafeInteger(line?.batch)) return 0;
  try {
    if (line?.op !== 'close') decode(line!);
    return line?.batch as number;
  } catch (error) {
    if (error instanceof VersionError) throw error;
    return 0;
  }
}

function hasUnwrittenSector(bytes: Buffer, offset: number): boolean {
  for (let from = 0; from < bytes.length; ) {
    const to = Math.min(bytes.length, from + SECTOR_BYTES - ((offset + from) % SECTOR_BYTES));
    if (bytes.subarray(from, to).every((byte) => byte === 0)) return true;
    from = to;
  }
  return false;
}
