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
 */
import type { EngineOptions } from '../engine.ts';
import { StoreError } from '../model.ts';
import type { Changes, Tables } from '../tables.ts';
import { type Directory, NextFile } from './directory.ts';
import { isNoRoom } from './disk.ts';
import { batchLine, type Header, type LogFile } from './log-format.ts';

/** A file is compacted when it is longer than this, and than twice its rows. */
const MIN_COMPACTION_BYTES = 64 * 1024 * 1024;
/** After a failed compaction, the time until the next. */
const RETRY_MS = 60_000;
/** A tail shorter than this is copied while a batch waits. */
const SHORT_TAIL_BYTES = 256 * 1024;

/** `onFatal` is called once, when it has become unknown what is on the disk. */
export type JournalOptions = Pick<EngineOptions, 'log' | 'onFatal' | 'onBatch'> & {
  readonly minCompactionBytes?: number;
};

export class Journal {
  /** Of the file, with the last batch in it. */
  header: Header;
  /** The end of the last batch. */
  length: number;
  /** Why nothing more is written. */
  failure: StoreError | undefined;
  compactions = 0;
  failedCompactions = 0;
  readonly #directory: Directory;
  readonly #tables: Tables;
  readonly #options: JournalOptions;
  #fd: number;
  /** The last of the tasks that exclude each other: appends, and the last step of a compaction. */
  #lastTask: Promise<unknown> = Promise.resolve();
  #compaction: Promise<string> | undefined;
  #compactionFailedAt = Number.NEGATIVE_INFINITY;
  readonly #closing = new AbortController();

  /** Goes on with the file that was read into the tables. */
  static async open(directory: Directory, tables: Tables, read: LogFile, options: JournalOptions): Promise<Journal> {
    const { disk } = directory;
    const { header, length, lastLine, tornBytes } = read;
    const path = directory.pathOf(header.file);
    const fd = disk.openToWrite(path);
    try {
      if (tornBytes > 0) {
        const what = `a crash left ${tornBytes} bytes that were not acknowledged; they are dropped`;
        options.log.warn(`${path}, offset ${length}: ${what}`);
      }
      await disk.truncate(fd, length); // in any case: a cut that was never synced may come undone
      const bytes = Buffer.alloc(length - lastLine);
      const count = await disk.read(fd, bytes, lastLine);
      if (count < bytes.length) throw new Error(`${path}: only ${count} bytes of the last line could be read`);
      await disk.write(fd, bytes, lastLine);
      await disk.sync(fd);
      await directory.setCurrent(header);
      return new Journal(directory, tables, read, options, fd);
    } catch (error) {
      disk.close(fd);
      throw error;
    }
  }

  private constructor(directory: Directory, tables: Tables, read: LogFile, options: JournalOptions, fd: number) {
    [this.#directory, this.#tables, this.#options] = [directory, tables, options];
    [this.header, this.#fd, this.length] = [read.header, fd, read.length];
  }

  /** Makes a batch durable, and then applies it to the tables. */
  append(changes: Changes): Promise<void> {
    return this.#exclusively(async () => {
      if (this.failure) throw new StoreError('closed', `nothing more is written: ${this.failure.message}`);
      const began = performance.now();
      const batch = this.header.batch + 1;
      const line = batchLine(batch, this.#tables.now(), changes);
      await this.#write(line);
      // With no await between: a compaction that begins at this length has the rows of this batch in its snapshot.
      this.length += line.length;
      this.header = { ...this.header, batch };
      this.#tables.apply(changes, batch);
      this.#options.onBatch?.(performance.now() - began);
      this.compactIfLong();
    });
  }

  /** In the background. */
  compactIfLong(): void {
    const { minCompactionBytes = MIN_COMPACTION_BYTES, log } = this.#options;
    if (this.length <= Math.max(minCompactionBytes, 2 * this.#tables.bytes)) return;
    if (this.#compaction || this.#closing.signal.aborted || performance.now() - this.#compactionFailedAt < RETRY_MS)
      return;
    this.compact().then(
      (done) => log.info(done),
      (error) => {
        this.#compactionFailedAt = performance.now();
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
    const { signal } = this.#closing;
    // Together, with no await between: the snapshot is as of the batch that ends at this length.
    const header = { ...this.header, file: this.header.file + 1, at: this.#tables.now() };
    const snapshot = this.#tables.snapshot(header.at);
    let copied = this.length;
    const next = await NextFile.create(this.#directory, header, this.#fail);
    try {
      await next.write(snapshot, signal);
      while (this.length - copied > SHORT_TAIL_BYTES) copied = await next.copy(this.#fd, copied, this.length);
      await next.sync(); // most of it now, so that the next batch waits for little
      return await this.#exclusively(async () => {
        signal.throwIfAborted();
        if (this.failure) throw this.failure;
        const before = this.length;
        await next.copy(this.#fd, copied, before);
        await next.finish();
        const old = this.#fd;
        [this.#fd, this.length] = [next.fd, next.length];
        this.header = { ...this.header, file: header.file };
        this.compactions++;
        this.#directory.disk.close(old);
        return `the file was compacted from ${before} to ${next.length} bytes`;
      });
    } catch (error) {
      if (next.fd !== this.#fd) await next.close();
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
    const full = await disk.write(this.#fd, line, this.length).catch((error) => {
      if (isNoRoom(error)) return new StoreError('full', `there is no room on the disk: ${error.message}`);
      throw this.#fail(error);
    });
    try {
      if (full) await disk.truncate(this.#fd, this.length);
      await disk.sync(this.#fd);
    } catch (error) {
      throw this.#fail(error);
    }
    if (full) throw full;
  }

  #fail = (error: unknown): StoreError => {
    if (this.failure) return this.failure;
    const message = `the store's file could not be written: ${(error as Error).message}`;
    this.failure = new StoreError('unknown', message);
    this.#options.onFatal?.(this.failure);
    return this.failure;
  };

  /** One task after the other. */
  #exclusively<T>(task: () => Promise<T>): Promise<T> {
    const done = this.#lastTask.then(task);
    this.#lastTask = done.catch(() => {});
    return done;
  }
}
