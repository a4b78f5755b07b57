/**
 * The write-ahead log: one file, written at its end, and compaction, which begins the next one.
 *
 * Failure policy:
 * - A write fails because there is no room: nothing of the batch is acknowledged. The file is cut back to the line
 *   before, the cut is made durable, and the batch is refused as `full`. The next one tries again.
 * - The cut fails, a write fails otherwise, or a sync fails: what is on the disk is unknown. After a failed fdatasync
 *   the kernel may call the pages clean and never write them, so it is never tried again. The batch is refused as
 *   `unknown`, nothing more is taken, and the process must end.
 * - For the same reason a start does not trust what it reads, which may be in the page cache alone. Each line but the
 *   last was durable before the next was written; so the last one is written once more, and synced.
 *
 * Compaction writes a snapshot into a file under a temporary name while batches go on into the old one; copies these
 * behind it, the last of them while a batch waits; syncs; gives the file its name; writes `LOCK`; removes the old file.
 * Until `LOCK` is written, the old file counts, and nothing is written to the new one.
 */
import { randomBytes } from 'node:crypto';
import type { Log } from '../engine.ts';
import { DamagedError } from '../errors.ts';
import { StoreError } from '../model.ts';
import type { Changes, Tables } from '../tables.ts';
import { NextFile } from './compaction.ts';
import { type Directory, fileName } from './directory.ts';
import { isNoRoom, piecesOf } from './disk.ts';
import { batchLine, type Header, type LogFile, readLog } from './log-format.ts';

/** A file is compacted when it is longer than this, and than twice its rows. */
const MIN_COMPACTION_BYTES = 64 * 1024 * 1024;
/** After a failed compaction, the time until the next. */
const RETRY_MS = 60_000;
/** A tail shorter than this is copied while a batch waits. */
const SHORT_TAIL_BYTES = 256 * 1024;

export interface JournalOptions {
  readonly log: Log;
  readonly minCompactionBytes?: number;
  /** Called once if what is on the disk is unknown: the process must end. */
  readonly onFatal?: (error: Error) => void;
  readonly onBatch?: (ms: number) => void;
}

export const newStoreId = (): string => randomBytes(12).toString('hex');

/** Reads the file that counts into empty tables; undefined: there is no store yet. */
export async function readStore(
  directory: Directory,
  tables: Tables,
  onProgress: (done: number, total: number) => void = () => {},
): Promise<LogFile | undefined> {
  const found = await directory.find();
  if (found === undefined) return undefined;
  const [{ disk }, path] = [directory, directory.pathOf(found.file)];
  const fd = disk.openToRead(path);
  try {
    const total = disk.size(fd);
    const pieces = async function* () {
      let done = 0;
      for await (const piece of piecesOf(disk, fd, 0, total)) {
        yield piece;
        onProgress((done += piece.length), total);
      }
    };
    const read = await readLog(path, pieces(), tables);
    const { store, file } = read.header;
    if (file !== found.file) throw new DamagedError(path, `the file says that it is ${fileName(file)}`);
    if (found.store !== undefined && found.store !== store) throw new DamagedError(path, 'it is of another store');
    return read;
  } finally {
    disk.close(fd);
  }
}

export class Journal {
  readonly store: string;
  /** The end of the last batch. */
  length: number;
  /** Why nothing more is written. */
  failure: StoreError | undefined;
  compactions = 0;
  failedCompactions = 0;
  #file: number;
  #fd: number;
  #batch: number;
  readonly #directory: Directory;
  readonly #tables: Tables;
  readonly #options: JournalOptions;
  /** The last of the tasks that exclude each other: appends, and the last step of a compaction. */
  #lastTask: Promise<unknown> = Promise.resolve();
  #compaction: Promise<string> | undefined;
  #compactedAt = Number.NEGATIVE_INFINITY;
  readonly #closing = new AbortController();

  /** Goes on with the file that was read into the tables; without one, it begins the first file of a new store. */
  static async open(directory: Directory, tables: Tables, read: LogFile | undefined, options: JournalOptions) {
    const { disk } = directory;
    if (read === undefined) {
      const header = { store: newStoreId(), file: 1, batch: 0, at: tables.now() };
      const next = await NextFile.write(directory, header, tables.snapshot(header.at));
      await next.sync();
      await next.finish();
      return new Journal(directory, tables, header, next.fd, next.length, options);
    }
    const path = directory.pathOf(read.header.file);
    const fd = disk.openToWrite(path);
    try {
      if (read.tornBytes > 0) {
        const what = `a crash left ${read.tornBytes} bytes that were not acknowledged; they are dropped`;
        options.log.warn(`${path}, offset ${read.length}: ${what}`);
        await disk.truncate(fd, read.length);
      }
      const lastLine = Buffer.alloc(read.length - read.lastLine);
      await disk.read(fd, lastLine, read.lastLine);
      await disk.write(fd, lastLine, read.lastLine);
      await disk.sync(fd);
      await directory.setCurrent({ store: read.header.store, file: read.header.file });
      return new Journal(directory, tables, { ...read.header, batch: read.batch }, fd, read.length, options);
    } catch (error) {
      disk.close(fd);
      throw error;
    }
  }

  private constructor(
    directory: Directory,
    tables: Tables,
    { store, file, batch }: Header,
    fd: number,
    length: number,
    options: JournalOptions,
  ) {
    [this.#directory, this.#tables, this.#options] = [directory, tables, options];
    [this.store, this.#file, this.#batch] = [store, file, batch];
    [this.#fd, this.length] = [fd, length];
  }

  /** The header of a snapshot that is taken now. */
  get header(): Header {
    return { store: this.store, file: this.#file, batch: this.#batch, at: this.#tables.now() };
  }

  /** Makes a batch durable, and then applies it to the tables. */
  append(changes: Changes): Promise<void> {
    return this.#exclusively(async () => {
      if (this.failure) throw new StoreError('closed', `nothing more is written: ${this.failure.message}`);
      const began = performance.now();
      const line = batchLine(this.#batch + 1, this.#tables.now(), changes);
      await this.#write(line);
      // In one step: a compaction that begins at this length takes the rows of this batch from the tables.
      this.length += line.length;
      this.#batch++;
      this.#tables.apply(changes, this.#batch);
      this.#options.onBatch?.(performance.now() - began);
      this.compactIfLong();
    });
  }

  /** In the background. */
  compactIfLong(): void {
    const { minCompactionBytes = MIN_COMPACTION_BYTES, log } = this.#options;
    if (this.length <= Math.max(minCompactionBytes, 2 * this.#tables.bytes)) return;
    if (this.#compaction || this.#closing.signal.aborted || performance.now() - this.#compactedAt < RETRY_MS) return;
    this.compact().then(
      (done) => log.info(done),
      (error) => {
        this.#compactedAt = performance.now();
        if (this.#closing.signal.aborted) return log.info(`the file was not compacted: ${error.message}`);
        this.failedCompactions++;
        log.warn(`the file could not be compacted, which is tried again in a minute: ${error.message}`);
      },
    );
  }

  /** One at a time: a second caller waits for the one under way. */
  compact(): Promise<string> {
    this.#compaction ??= this.#compact().finally(() => (this.#compaction = undefined));
    return this.#compaction;
  }

  async #compact(): Promise<string> {
    const { disk } = this.#directory;
    const { signal } = this.#closing;
    // Together, with no await between: the snapshot is as of the batch that ends at this length.
    const header = { ...this.header, file: this.#file + 1 };
    const snapshot = this.#tables.snapshot(header.at);
    let copied = this.length;
    const failing = (error: unknown) => Promise.reject(isNoRoom(error) ? error : this.#fail(error));
    const next = await NextFile.write(this.#directory, header, snapshot, signal);
    try {
      while (this.length - copied > SHORT_TAIL_BYTES) copied = await next.copy(this.#fd, copied, this.length);
      await next.sync().catch(failing); // most of it now, so that the next batch waits for little
      return await this.#exclusively(async () => {
        signal.throwIfAborted();
        if (this.failure) throw this.failure;
        const before = this.length;
        await next.copy(this.#fd, copied, before);
        await next.sync().catch(failing);
        await next.finish().catch((error) => Promise.reject(this.#fail(error)));
        disk.close(this.#fd);
        [this.#fd, this.length, this.#file] = [next.fd, next.length, header.file];
        this.compactions++;
        return `the file was compacted from ${before} to ${next.length} bytes`;
      });
    } catch (error) {
      if (next.fd !== this.#fd) await next.discard();
      throw error;
    }
  }

  /** Ends a compaction that is under way, and gives the lock back. */
  async close(): Promise<void> {
    this.#closing.abort(new Error('the store is being closed'));
    await this.#compaction?.catch(() => {});
    await this.#lastTask;
    this.#directory.disk.close(this.#fd);
    this.#directory.release();
  }

  async #write(line: Buffer): Promise<void> {
    const { disk } = this.#directory;
    const failing = (error: unknown) => Promise.reject(this.#fail(error));
    try {
      await disk.write(this.#fd, line, this.length);
    } catch (error) {
      if (!isNoRoom(error)) throw this.#fail(error);
      await disk.truncate(this.#fd, this.length).catch(failing);
      await disk.sync(this.#fd).catch(failing);
      throw new StoreError('full', `there is no room on the disk: ${(error as Error).message}`);
    }
    await disk.sync(this.#fd).catch(failing);
  }

  #fail(error: unknown): StoreError {
    if (this.failure) return this.failure;
    const message = `the store's file could not be written: ${(error as Error).message}`;
    this.failure = new StoreError('unknown', message);
    this.#options.onFatal?.(this.failure);
    return this.failure;
  }

  /** One task after the other. */
  #exclusively<T>(task: () => Promise<T>): Promise<T> {
    const done = this.#lastTask.then(task);
    this.#lastTask = done.catch(() => {});
    return done;
  }
}
