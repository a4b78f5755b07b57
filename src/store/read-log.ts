import { DamagedError } from './damage.ts';
import type { Disk } from './disk.ts';
import { type Line, type Reach, readLines } from './lines.ts';
import type { Operation } from './model.ts';
import { decodeEntry, type End, fileName, isSealed, MAX_RECORD_BYTES, readHeader } from './record.ts';
import type { Held } from './snapshot.ts';

const SECTOR_BYTES = 512;

/** Takes a record in; where it cannot be, says why. */
type Apply = (operation: Operation | End) => string | undefined;

interface Bad {
  offset: number;
  what: string;
}

/**
 * Reads a log while checksum, line feed and order agree. At the first bad place, tells torn from damaged:
 *
 * - A batch is written only after the one before is durable. So if any record of a later batch stands after the bad
 *   place, what is missing was acknowledged: damage.
 * - Otherwise it is the last batch, which nobody was promised if it was cut off by a crash; and a crash leaves a file
 *   that ends without a line feed, or sectors that were never written and read as zeros. Whatever else is found there
 *   (a whole line with a wrong checksum, a record doubled, a single changed byte) no crash has made: damage.
 */
export class LogReader {
  /** Where the good part ends; of a log that was closed for good, where its closing record begins. */
  length = 0;
  closed: End | undefined;
  /** Where a write was cut off by a crash, and why it is taken for that. */
  torn: Bad | undefined;
  /** Not even the header is whole. */
  isBlank = true;
  readonly path: string;
  readonly #generation: number;
  readonly #at: Omit<Held, 'state'>;
  #left = 0;

  /**
   * `at` says where the log before (or the snapshot) ended, and is moved on record by record, also when reading throws.
   * Like `length`, it stays before a record that closes the log for good: that one is cut away to go on.
   * Without `store`, any will do.
   */
  constructor(dir: string, generation: number, at: Omit<Held, 'state'>) {
    this.path = `${dir}/${fileName('log', generation)}`;
    this.#generation = generation;
    this.#at = at;
  }

  async read(disk: Disk, apply: Apply, reach?: Reach): Promise<void> {
    const take = (line: Line) => {
      if (this.torn) return this.#takeAfter(line, this.torn);
      const what = this.#takeGood(line, apply);
      if (what === undefined) return;
      const left = crashLeft(line, line.offset);
      if (left === undefined) throw this.#damage(line.offset, what);
      this.torn = { offset: line.offset, what: left };
      this.#refuseLater(line, this.torn);
    };
    await readLines(disk, this.path, take, reach);
  }

  /** Takes a line while all is well; where it is bad, says why. */
  #takeGood(line: Line, apply: Apply): string | undefined {
    if (this.closed) throw this.#damage(line.offset, 'more follows after the end of the log');
    if (!line.isGood) return line.isWhole ? 'the checksum is wrong' : 'the line is cut off';
    const at = this.#at;
    if (this.isBlank) {
      const { store } = readHeader(this.path, line.bytes, 'log', this.#generation);
      if (store !== (at.store ?? store)) throw this.#damage(0, `the log belongs to another store, ${store}`);
      this.isBlank = false;
    } else {
      const { seq, batch, left, operation } = decodeEntry(line.bytes);
      const isNext = this.#left > 0 ? batch === at.batch && left === this.#left - 1 : batch === at.batch + 1;
      if (seq !== at.seq + 1 || !isNext) return `here stands record ${seq} of batch ${batch}`;
      const why = apply(operation);
      if (why !== undefined) throw this.#damage(line.offset, why);
      if (operation.op === 'end') this.closed = operation;
      if (this.closed?.how === 'close') return undefined;
      at.seq = seq;
      at.batch = batch;
      this.#left = left;
    }
    this.length = line.offset + line.bytes.length + 1;
    return undefined;
  }

  /** Nothing after the bad place may be more than the rest of a torn batch. */
  #takeAfter(line: Line, bad: Bad): void {
    if (!line.isGood && crashLeft(line, bad.offset) === undefined) {
      throw this.#damage(bad.offset, 'the checksum is wrong');
    }
    this.#refuseLater(line, bad);
  }

  /** A good record proves that every batch before its own was durable. It may begin where zeros end. */
  #refuseLater({ bytes }: Line, bad: Bad): void {
    const record = bytes.subarray(bytes.lastIndexOf(0) + 1);
    if (!isSealed(record)) return;
    const { seq, batch } = decodeEntry(record);
    const tornBatch = this.#left > 0 ? this.#at.batch : this.#at.batch + 1;
    // The header was durable before any record: behind one that cannot be read only a header is nothing.
    if (this.isBlank ? seq === undefined : batch === tornBatch) return;
    throw this.#damage(bad.offset, `${bad.what}, and batch ${batch} follows after it`);
  }

  #damage(offset: number, what: string): DamagedError {
    return new DamagedError(this.path, offset, what, this.isBlank ? undefined : this.#at.seq + 1);
  }
}

/** What a crash has left there, in words; undefined where no crash leaves this. */
function crashLeft(line: Line, from: number): string | undefined {
  // No line that was written holds a NUL: JSON escapes it.
  const zeros = [...line.bytes.toString('latin1').matchAll(/\0+/g)];
  if (zeros.length > 0) {
    const areSectors = zeros.every((run) => isSectors(line, run.index, run.index + run[0].length, from));
    return areSectors ? 'sectors were never written' : undefined;
  }
  if (line.bytes.length >= MAX_RECORD_BYTES) return undefined;
  // A rest follows on a piece that was longer than any record, and so was taken for its zeros.
  const isCutOff = line.isRest || (!line.isWhole && !isSealed(line.bytes.subarray(0, -1)));
  return isCutOff ? 'the line is cut off' : undefined;
}

/** Whether `start` … `end - 1` of the line are whole sectors of what was written since `from`. */
function isSectors(line: Line, start: number, end: number, from: number): boolean {
  const first = line.offset + start;
  const startsWhole = first === from || first % SECTOR_BYTES === 0 || start === 0;
  const endsWhole = (line.offset + end) % SECTOR_BYTES === 0 || (end === line.bytes.length && !line.isWhole);
  return startsWhole && endsWhole;
}
