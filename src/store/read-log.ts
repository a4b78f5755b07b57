import { DamagedError } from './damage.ts';
import type { Disk } from './disk.ts';
import { readHeader } from './header.ts';
import { type Line, type Progress, readLines, Turns } from './lines.ts';
import { decodeEntry, type End, type Entry, isSealed } from './record.ts';

const SECTOR_BYTES = 512;

/** How far a log could be read. */
export interface LogEnd {
  /** The newest record that is good. */
  seq: number;
  batch: number;
  left: number;
  /** Records, the closing one not counted. */
  records: number;
  /** Where the good part ends; of a closed log, where its closing record begins. */
  length: number;
  closed?: End;
  /** Where a write was cut off by a crash, and why it is taken for that. */
  torn?: { offset: number; what: string };
  /** Not even the header is whole. */
  isBlank: boolean;
}

/**
 * Reads a log while checksum, line feed and order agree. At the first bad place, tells torn from damaged:
 *
 * - A batch is written only after the one before is durable. So if any record of a later batch stands after the bad
 *   place, what is missing was acknowledged: damage.
 * - Otherwise it is the last batch, which nobody was promised if it was cut off by a crash; and a crash leaves a file
 *   that ends without a line feed, or sectors that were never written and read as zeros. Whatever else is found there
 *   (a whole line with a wrong checksum, a record doubled, a single changed byte) no crash has made: damage.
 *
 * `at` says where the log before (or the snapshot) ended, and is moved on record by record, also when this throws.
 * `length`: how much of the file counts, where that is less than all of it.
 */
export async function readLog(
  disk: Disk,
  path: string,
  store: string,
  at: LogEnd,
  apply: (entry: Entry, offset: number) => void,
  length?: number,
  progress?: Progress,
): Promise<void> {
  const fd = disk.openToRead(path);
  try {
    const size = length ?? disk.size(fd);
    const lines = readLines(disk, fd, size, progress);
    const turns = new Turns();
    for (const line of lines) {
      if (turns.isDue(line.offset)) await turns.pass(line.offset);
      const what = step(path, at, line, store, apply);
      if (what === undefined) continue;
      at.torn = { offset: line.offset, what: tornOr(path, at, line, size, what) };
      checkTail(path, at, lines, size);
      break;
    }
  } finally {
    disk.close(fd);
  }
}

/** Takes one line; where it is bad, says why. */
function step(
  path: string,
  at: LogEnd,
  line: Line,
  store: string,
  apply: (entry: Entry, offset: number) => void,
): string | undefined {
  if (!line.isWhole) return 'the line is cut off';
  if (!isSealed(line.bytes, line.start, line.end)) return 'the checksum is wrong';
  const text = line.bytes.toString('utf8', line.start, line.end);
  const lineEnd = line.offset + line.end - line.start + 1;
  if (at.isBlank) {
    const header = readHeader(path, text, 'log');
    if (header.store !== store) throw new DamagedError(path, 0, `the log belongs to another store, ${header.store}`);
    at.isBlank = false;
    at.length = lineEnd;
    return undefined;
  }
  const entry = decodeEntry(text);
  const isNext = at.left > 0 ? entry.batch === at.batch && entry.left === at.left - 1 : entry.batch === at.batch + 1;
  if (at.closed) return 'a record follows after the end of the log';
  if (entry.seq !== at.seq + 1 || !isNext) return `here stands record ${entry.seq} of batch ${entry.batch}`;
  if (entry.operation.op === 'end') at.closed = entry.operation;
  else at.length = lineEnd;
  apply(entry, line.offset);
  at.seq = entry.seq;
  at.batch = entry.batch;
  at.left = entry.left;
  if (!at.closed) at.records++;
  return undefined;
}

/** Nothing after the bad place may be more than the rest of a torn batch. */
function checkTail(path: string, at: LogEnd, lines: Iterable<Line>, size: number): void {
  const bad = at.torn!;
  const tornBatch = at.left > 0 ? at.batch : at.batch + 1;
  for (const line of lines) {
    if (line.isWhole && isSealed(line.bytes, line.start, line.end)) {
      const { batch } = decodeEntry(line.bytes.toString('utf8', line.start, line.end));
      if (at.isBlank || batch === tornBatch) continue;
      throw damage(path, at, bad.offset, `${bad.what}, and batch ${batch} follows after it`);
    }
    tornOr(path, at, line, size, 'the checksum is wrong', bad.offset);
  }
}

/** What a crash has left, in words; or throws when no crash leaves this. */
function tornOr(path: string, at: LogEnd, line: Line, size: number, what: string, bad = line.offset): string {
  const end = line.offset + line.end - line.start;
  if (at.closed) throw damage(path, at, bad, 'more follows after the end of the log');
  if (hasZeros(line)) {
    if (zerosAreSectors(line, bad, size)) return 'sectors were never written';
  } else if (!line.isWhole && end === size && !isSealed(line.bytes, line.start, line.end - 1)) {
    return 'the line is cut off';
  }
  throw damage(path, at, bad, what);
}

function damage(path: string, at: LogEnd, offset: number, what: string): DamagedError {
  return new DamagedError(path, offset, what, at.isBlank ? undefined : at.seq + 1);
}

/** No line that was written holds a NUL: JSON escapes it. */
function hasZeros(line: Line): boolean {
  const zero = line.bytes.indexOf(0, line.start);
  return zero !== -1 && zero < line.end;
}

/** Whether every run of NULs is whole sectors: of what was written since `from`, within the file. */
function zerosAreSectors(line: Line, from: number, size: number): boolean {
  const shift = line.offset - line.start;
  for (let i = line.start; i < line.end; i++) {
    if (line.bytes[i] !== 0) continue;
    const start = i + shift;
    while (i < line.end && line.bytes[i] === 0) i++;
    const end = i + shift;
    const startsWhole = start === from || start % SECTOR_BYTES === 0 || i - (end - start) === line.start;
    const endsWhole = end === size || end % SECTOR_BYTES === 0 || (i === line.end && !line.isWhole);
    if (!startsWhole || !endsWhole) return false;
  }
  return true;
}
