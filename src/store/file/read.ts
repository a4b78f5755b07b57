import type { Operation } from '../model.ts';
import { decode, type Entry, NewerError, StateLoader } from '../record.ts';
import type { State } from '../state.ts';
import type { Disk } from './disk.ts';
import {
  BEYOND_REPAIR,
  DamagedError,
  type Header,
  isSealed,
  MAX_BATCH_BYTES,
  MAX_LINE_BYTES,
  placeOf,
  readHeader,
  SEAL_BYTES,
} from './format.ts';

const READ_BYTES = 1024 * 1024;
const SECTOR_BYTES = 512;
const LINE_FEED = 10;

/** How far a long piece of work has come. */
export type Progress = (bytesDone: number, bytesTotal: number) => void;

/** What a file holds, up to its last whole batch. */
export interface Found {
  header: Header;
  batch: number;
  /** Where that batch ends. */
  length: number;
  /** Behind it, it says that the store was closed: everything before is durable. */
  isClosed: boolean;
  /** Good lines that stand behind it, of a batch that is not whole. */
  lines: number;
  /** What a crash has left behind it, and is dropped. */
  torn?: string;
  /** Only where it was asked for; else it is thrown. */
  damage?: DamagedError;
}

/** A line as JSON.parse gives it. */
export type Line = { batch: number; n: number; last?: boolean } & (Entry | { op: 'close' });

/** Takes the lines of a file in, one after the other. */
class Reader {
  readonly found: Found = { header: { store: '', file: 0, first: 0 }, batch: 0, length: 0, isClosed: false, lines: 0 };
  readonly #path: string;
  readonly #state: State | undefined;
  readonly #loader: StateLoader;
  #operations: Operation[] = [];

  constructor(path: string, state: State | undefined) {
    this.#path = path;
    this.#state = state;
    this.#loader = new StateLoader(state);
  }

  /** Says why, where the line is not what should stand there. */
  take(bytes: Buffer, offset: number): string | undefined {
    if (!isSealed(bytes)) return 'the checksum is wrong';
    const { found } = this;
    if (offset === 0) {
      found.header = readHeader(this.#path, bytes);
      return undefined;
    }
    if (found.isClosed) return 'more follows after the store was closed';
    const line: Line = JSON.parse(bytes.toString());
    const isNext = line.n === found.lines && line.batch === (found.batch === 0 ? found.header.first : found.batch + 1);
    if (!isNext) return `here stands line ${line.n} of batch ${line.batch}`;
    if (line.op === 'close') {
      found.isClosed = true;
      return undefined;
    }
    try {
      if (found.batch === 0) this.#load(line, bytes);
      else this.#operations.push(decode(line) as Operation);
      if (line.last) this.#state?.take(this.#operations);
    } catch (error) {
      if (error instanceof NewerError) throw new NewerError(`${this.#path}, offset ${offset}: ${error.what}`);
      throw new DamagedError(this.#path, offset, (error as Error).message, BEYOND_REPAIR);
    }
    found.lines++;
    if (!line.last) return undefined;
    found.lines = 0;
    this.#operations = [];
    found.batch = line.batch;
    found.length = offset + bytes.length + 1;
    return undefined;
  }

  /** Why the file may not end here. */
  get missing(): string | undefined {
    if (this.found.batch === 0) return 'the file ends within its first batch';
    return this.found.lines === 0 ? undefined : `the file ends within batch ${this.found.batch + 1}`;
  }

  #load(line: Line, bytes: Buffer): void {
    const place = placeOf(line.batch, line.n, line.last === true);
    const proof = this.#loader.take(decode(line as Entry), bytes.subarray(SEAL_BYTES + place.length));
    if ((proof !== undefined) !== (line.last === true)) throw new Error('the state does not end with its proof');
  }
}

interface ReadFileOptions {
  length?: number;
  salvage?: boolean;
  progress?: Progress;
}

/**
 * Reads a file once, front to back (to `length`, if that is given), into an empty state, or only to check it. At the
 * first place that is not as it was written, it tells torn from damaged:
 *
 * - A good line of a later batch after it proves that what is missing here was durable, and may have been acknowledged:
 *   damage. So is anything in the first batch, which was durable before the file had its name.
 * - Otherwise it is the last batch. A crash leaves it cut off, or with sectors that were never written and read as
 *   zeros: nobody was promised anything, and it is dropped. Whatever else stands there (a changed byte, a line doubled)
 *   no crash has made: damage.
 *
 * With `salvage` damage is told and not thrown: the state then holds what stands before.
 */
export async function readFile(
  disk: Disk,
  path: string,
  state?: State,
  { length = Number.POSITIVE_INFINITY, salvage = false, progress }: ReadFileOptions = {},
): Promise<Found> {
  const size = Math.min(length, disk.size(path));
  const fd = disk.openToRead(path);
  const reader = new Reader(path, state);
  try {
    const bad = await readLines(disk, fd, size, (bytes, offset) => reader.take(bytes, offset), progress);
    const why = bad?.why ?? reader.missing;
    if (why === undefined) return reader.found;
    const offset = bad?.offset ?? size;
    if (reader.found.batch === 0) {
      const canBeCut = reader.found.lines > 0 && (await isBounded(disk, fd, size, offset));
      throw new DamagedError(path, offset, why, canBeCut ? undefined : BEYOND_REPAIR);
    }
    const torn = tornAt(disk, fd, path, reader.found, offset, size, why);
    return { ...reader.found, torn };
  } catch (error) {
    if (salvage && error instanceof DamagedError && error.canBeCut) return { ...reader.found, damage: error };
    throw error;
  } finally {
    disk.close(fd);
  }
}

/**
 * Gives each line that ends with a line feed to `take`, until it says what is wrong. Others have their turn after every
 * MiB: a server that recovers says so to whoever asks.
 */
export async function readLines(
  disk: Disk,
  fd: number,
  size: number,
  take: (bytes: Buffer, offset: number) => string | undefined,
  progress?: Progress,
): Promise<{ offset: number; why: string } | undefined> {
  let rest = Buffer.alloc(0);
  for (let position = 0; position < size; ) {
    const more = Buffer.allocUnsafe(Math.min(READ_BYTES, size - position));
    const count = disk.read(fd, more, position);
    if (count === 0) break;
    const offset = position - rest.length;
    position += count;
    const bytes = Buffer.concat([rest, more.subarray(0, count)]);
    let from = 0;
    for (let feed = bytes.indexOf(LINE_FEED); feed !== -1; feed = bytes.indexOf(LINE_FEED, from)) {
      const why = take(bytes.subarray(from, feed), offset + from);
      if (why !== undefined) return { offset: offset + from, why };
      from = feed + 1;
    }
    rest = bytes.subarray(from);
    if (rest.length > MAX_LINE_BYTES) return { offset: offset + from, why: 'the line is too long' };
    progress?.(position, size);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return rest.length === 0 ? undefined : { offset: size - rest.length, why: 'the line is cut off' };
}

/**
 * Whether the state with which the file began tells behind `from` what it held: where that is gone, anything may be.
 */
async function isBounded(disk: Disk, fd: number, size: number, from: number): Promise<boolean> {
  let isFound = false;
  await readLines(disk, fd, size, (bytes, offset) => {
    isFound ||= offset >= from && isSealed(bytes) && JSON.parse(bytes.toString()).op === 'proof';
    return undefined;
  });
  return isFound;
}

/** In words what a crash has left from `offset` on; throws when no crash leaves this. */
function tornAt(disk: Disk, fd: number, path: string, found: Found, offset: number, size: number, why: string): string {
  const damaged = (what: string) => new DamagedError(path, offset, what);
  if (found.isClosed || size - offset > MAX_BATCH_BYTES) throw damaged(why);
  const rest = Buffer.alloc(size - offset);
  disk.read(fd, rest, offset);
  for (let from = 0; from < rest.length; ) {
    const feed = rest.indexOf(LINE_FEED, from);
    const line = rest.subarray(from, feed === -1 ? rest.length : feed);
    const record = line.subarray(line.lastIndexOf(0) + 1); // it may begin where zeros end
    if (isSealed(record) && batchOf(record) !== found.batch + 1) throw damaged(`${why}, and more follows`);
    const isUnwritten = line.at(-1) === 0 && (size - 1) % SECTOR_BYTES === 0; // the line feed had a sector of its own
    if (feed === -1 && !isUnwritten && isSealed(line.subarray(0, -1))) throw damaged('a line feed is wrong');
    from = feed === -1 ? rest.length : feed + 1;
  }
  const isCutOff = rest.at(-1) !== LINE_FEED;
  if (!isCutOff && !hasUnwrittenSector(rest, offset)) throw damaged(why);
  const left = isCutOff ? why : 'sectors were never written';
  return `${path}, offset ${found.length}: ${left}; a crash left this, and it is dropped`;
}

const batchOf = (record: Buffer): number => JSON.parse(record.toString()).batch;

function hasUnwrittenSector(bytes: Buffer, offset: number): boolean {
  for (let from = 0; from < bytes.length; ) {
    const to = Math.min(bytes.length, from + SECTOR_BYTES - ((offset + from) % SECTOR_BYTES));
    if (bytes.subarray(from, to).every((byte) => byte === 0)) return true;
    from = to;
  }
  return false;
}
