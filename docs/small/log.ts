/**
 * Exercise six: a log of its own, on the calls of `src/store/file/disk.ts`. It has pairs of a key and a value, keeps what
 * it acknowledged, and shortens its file. One sync is missing, and no test by hand or by `kill -9` will ever miss it.
 *
 *   node docs/small/crash.ts [--of my-log.ts]     (before Node 22.18: npx tsx docs/small/crash.ts)
 *
 * The format, a line for each change, which is synced before the next line is written:
 *
 *   <CRC-32 of the rest, 8 hex digits> <JSON: [key, value]>\n
 *
 * Therefore a crash can leave one bad line, the last: half of it, or with sectors of zeros inside. It was never
 * acknowledged, and a start drops it. A bad line with others after it is damage: the start refuses it.
 */
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import type { Disk } from '../../src/store/file/disk.ts';

const NAME = 'log';
/** The file that is to take the place of the log. A crash may leave half of it: nobody reads it. */
const NEW_NAME = 'log.tmp';
const LINE_FEED = 10;

function encode(key: string, value: string): Buffer {
  const json = JSON.stringify([key, value]);
  return Buffer.from(`${crc32(json).toString(16).padStart(8, '0')} ${json}\n`);
}

/** The pair in a line without its line feed; undefined if it is not as it was written. */
function decode(line: Buffer): [key: string, value: string] | undefined {
  const text = line.toString();
  const json = text.slice(9);
  return text === `${crc32(json).toString(16).padStart(8, '0')} ${json}` ? JSON.parse(json) : undefined;
}

/** The pairs in a file, and the length up to which its lines are good. Throws at damage. */
function readLines(bytes: Buffer): { pairs: Map<string, string>; length: number } {
  const pairs = new Map<string, string>();
  let length = 0;
  while (length < bytes.length) {
    const end = bytes.indexOf(LINE_FEED, length);
    const pair = end === -1 ? undefined : decode(bytes.subarray(length, end));
    if (pair === undefined) {
      if (isLastLine(bytes, length)) break;
      throw new Error(`damaged: the line at byte ${length} is bad, and others follow it`);
    }
    pairs.set(...pair);
    length = end + 1;
  }
  return { pairs, length };
}

/** True if nothing but zeros follows the first line feed from here on. */
function isLastLine(bytes: Buffer, from: number): boolean {
  const end = bytes.indexOf(LINE_FEED, from);
  return end === -1 || bytes.subarray(end + 1).every((byte) => byte === 0);
}

export class Log {
  readonly #disk: Disk;
  readonly #dir: string;
  readonly #pairs: Map<string, string>;
  #fd: number;
  /** Of the file, up to the end of its last good line. */
  #length: number;
  /** Settles when the change under way has ended: the next begins then. */
  #last: Promise<unknown> = Promise.resolve();

  private constructor(disk: Disk, dir: string, fd: number, { pairs, length }: ReturnType<typeof readLines>) {
    this.#disk = disk;
    this.#dir = dir;
    this.#fd = fd;
    this.#pairs = pairs;
    this.#length = length;
  }

  /** Opens the log of a directory, or begins one. */
  static async open(disk: Disk, dir: string): Promise<Log> {
    const path = join(dir, NAME);
    const isNew = !disk.list(dir)?.includes(NAME);
    const fd = isNew ? await disk.create(path) : disk.openToWrite(path);
    const bytes = Buffer.alloc(disk.size(fd));
    await disk.read(fd, bytes, 0);
    const found = readLines(bytes);
    await disk.truncate(fd, found.length);
    // What was read may be in the kernel's memory alone, its name too, and whoever sees it takes it for durable.
    await disk.sync(fd);
    await disk.syncDirectory(dir);
    return new Log(disk, dir, fd, found);
  }

  /** What others may see: the pairs that are durable. */
  get pairs(): ReadonlyMap<string, string> {
    return this.#pairs;
  }

  /** Resolves when the pair outlives every crash. */
  set(key: string, value: string): Promise<void> {
    return this.#exclusively(async () => {
      const line = encode(key, value);
      await this.#disk.write(this.#fd, line, this.#length);
      await this.#disk.sync(this.#fd);
      this.#length += line.length;
      this.#pairs.set(key, value);
    });
  }

  /** Puts a file in the place of the log that has each pair once. */
  compact(): Promise<void> {
    return this.#exclusively(async () => {
      const lines = Buffer.concat([...this.#pairs].map((pair) => encode(...pair)));
      const path = join(this.#dir, NEW_NAME);
      const fd = await this.#disk.create(path);
      await this.#disk.write(fd, lines, 0);
      await this.#disk.sync(fd);
      await this.#disk.rename(path, join(this.#dir, NAME));
      this.#disk.close(this.#fd);
      this.#fd = fd;
      this.#length = lines.length;
    });
  }

  close(): Promise<void> {
    return this.#exclusively(async () => this.#disk.close(this.#fd));
  }

  #exclusively<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => {});
    return done;
  }
}
