/**
 * `LOCK` (lock file and superblock). The process that has the store open holds a lock on it, and writes it by the
 * locked descriptor. It names the store, the lowest file number that is accepted, and the durable length of that file:
 * a file that ends earlier is damaged, even if its end looks good. While the store is open, this length is out of date
 * by a second at most, unless `LOCK` cannot be written; a clean close writes the final one.
 */
import type { TimesSeen } from '../../clock.ts';
import type { Disk } from './disk.ts';
import { DamagedError, isSealed, isStoreId, parsed, seal } from './format.ts';

export const LOCK = 'LOCK';
/** One sector, which a disk writes as a whole. Even a torn one still shows that there was a store. */
const MARK_BYTES = 512;

export interface Mark {
  /** Empty if `LOCK` cannot be read: there was a store, but nobody knows which. */
  store: string;
  /** The lowest file number that counts. The other members describe the file of this number. */
  lowest: number;
  /** The last batch that is known to be durable, and the offset of its end. */
  batch: number;
  length: number;
  /** True if the file ends with the closing record. */
  closed: boolean;
  /** When `LOCK` was written, while the store was open. */
  times?: TimesSeen;
}

/** The mark in `LOCK`; undefined: there was no store. */
export function readMark(disk: Disk, dir: string): Mark | undefined {
  const path = `${dir}/${LOCK}`;
  if (!disk.list(dir).includes(LOCK)) return undefined;
  const text = firstBytes(disk, path);
  if (text === '') return undefined;
  const line = Buffer.from(text.trimEnd(), 'latin1');
  const unknown = { store: '', lowest: 0, batch: 0, length: 0, closed: false };
  if (!isSealed(line)) return unknown;
  // A `LOCK` of an older version has only `store` and `lowest`.
  const { store, lowest, batch = 0, length = 0, closed = false, times } = parsed(line) ?? {};
  const isCount = (value: unknown) => Number.isSafeInteger(value) && (value as number) >= 0;
  const { at, wall } = (times ?? { at: 0, wall: 0 }) as TimesSeen;
  const isWhole = [lowest, batch, length, at, wall].every(isCount) && typeof closed === 'boolean' && isStoreId(store);
  if (isWhole) return { store, lowest, batch, length, closed, ...(times ? { times } : {}) } as Mark;
  const advice = 'If the file with the highest number is the newest that there was, move LOCK to another directory.';
  throw new DamagedError(path, 0, 'its members are not those of a LOCK file', advice);
}

/** The first sector of a file, or less of a shorter one; each byte is a character. */
function firstBytes(disk: Disk, path: string): string {
  const bytes = Buffer.alloc(MARK_BYTES);
  const fd = disk.openToRead(path);
  try {
    return bytes.toString('latin1', 0, disk.read(fd, bytes, 0));
  } finally {
    disk.close(fd);
  }
}

/** Writes the mark, without a sync. */
export function writeMark(disk: Disk, fd: number, mark: Mark): Promise<void> {
  const line = seal(JSON.stringify(mark).slice(1)).trimEnd();
  return disk.write(fd, Buffer.from(`${line.padEnd(MARK_BYTES - 1)}\n`), 0);
}

/** The longest time for which `LOCK` may be out of date. */
const MARK_EVERY_MS = 1_000;

/** Decides when `LOCK` is written: after a batch, and at most once in `everyMs`. */
export class Marks {
  readonly #mark: () => Promise<void>;
  readonly #everyMs: number;
  #markedAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  /** `mark` writes `LOCK` after the batch, without a sync: if the write fails or is lost, `LOCK` stays out of date. */
  constructor(mark: () => Promise<void>, everyMs = MARK_EVERY_MS) {
    [this.#mark, this.#everyMs] = [mark, everyMs];
  }

  due(): void {
    const now = () => {
      clearTimeout(this.#timer); // if it is overdue in a busy process: it would fire behind `stop`
      this.#timer = undefined;
      this.#markedAt = performance.now();
      this.#mark().catch(() => {});
    };
    const waitMs = this.#markedAt + this.#everyMs - performance.now();
    if (waitMs <= 0) now();
    else this.#timer ??= setTimeout(now, waitMs).unref();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}
