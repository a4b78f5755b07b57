/**
 * The write-ahead log: one file, written at its end, and compaction, which puts a shorter one in its place.
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
 * Compaction writes a snapshot into a file under a temporary name, while batches go on into the old file. Then it writes
 * the lines of these batches, the last of them while no batch is written. It syncs the new file and renames it, so that
 * the name is always that of a whole file, and syncs the directory. From the rename on, nothing is written to the old
 * file. If a write fails before the rename, only the compaction ends. The first file of a store is written in the same way.
 */
import type { EngineOptions } from '../engine.ts';
import { batchLine, type Header, type LogFile, snapshotLines } from '../log-format.ts';
import { StoreError } from '../model.ts';
import type { Changes, Tables } from '../tables.ts';
import type { Directory } from './directory.ts';
import { isNoRoom } from './disk.ts';

/** A file is compacted when it is longer than this, and longer than its rows would be twice. */
const MIN_COMPACTION_BYTES = 64 * 1024 * 1024;
/** After a failed compaction, the time until the next. */
const RETRY_MS = 60_000;
/** A new file is synced in pieces: the batches that are written meanwhile wait for the same disk. */
const SYNC_EVERY_BYTES = 2 * 1024 * 1024;

export type JournalOptions = Partial<Pick<EngineOptions, 'log' | 'onFatal'>> & {
  /** For tests. */
  readonly minCompactionBytes?: number;
};

const noRoom = ({ message }: Error) => new StoreError('full', `there is no room on the disk: ${message}`);

export class Journal {
  /** The header of the file, with the last batch that is in it. */
  header: Header;
  /** The end of the last batch. */
  length = 0;
  /** Why nothing more is written: it failed, was opened to read, or is being closed. */
  failure: StoreError | undefined;
  compactions = 0;
  failedCompactions = 0;
  readonly #directory: Directory;
  readonly #tables: Tables;
  readonly #options: JournalOptions;
  #fd: number | undefined;
  /** The last of the tasks that exclude each other: appends, and the last step of a compaction. */
  #lastTask: Promise<unknown> = Promise.resolve();
  #compaction: Promise<string> | undefined;
  /** The lines since the snapshot of the compaction under way, as far as they are not in the new file. */
  #tail: Buffer[] | undefined;
  #compactionFailedAt = Number.NEGATIVE_INFINITY;

  /** The first call must be `resume` with the file of this header, or `compact`, which writes the first file. */
  constructor(directory: Directory, tables: Tables, header: Header, options: JournalOptions = {}) {
    this.#directory = directory;
    this.#tables = tables;
    this.header = header;
    this.#options = options;
  }

  /** Goes on with the file that was read into the tables. */
  async resume({ header, length, lastLine }: LogFile): Promise<void> {
    const { disk, file, nextFile } = this.#directory;
    const fd = disk.openToWrite(file);
    [this.#fd, this.length] = [fd, length];
    await disk.truncate(fd, length); // in any case: a cut that was never synced may come undone
    await disk.write(fd, lastLine, length - lastLine.length);
    await disk.sync(fd);
    await this.#directory.settle(header.store);
    await disk.unlink(nextFile).catch(() => {}); // mostly there is none; if it stays, the next compaction empties it
  }

  /** Makes a batch durable, and then applies it to the tables. */
  append(changes: Changes): Promise<void> {
    return this.#exclusively(async () => {
      this.#mustBeWritable();
      const batch = this.header.batch + 1;
      const line = batchLine(batch, this.#tables.now(), changes);
      await this.#write(line);
      // With no await between: a compaction has this batch in its tail, or the rows of it in its snapshot.
      this.length += line.length;
      this.header = { ...this.header, batch };
      this.#tail?.push(line);
      this.#tables.apply(changes);
      this.#compactIfLong();
    });
  }

  /** In the background. */
  #compactIfLong(): void {
    const { minCompactionBytes = MIN_COMPACTION_BYTES, log } = this.#options;
    if (this.length <= Math.max(minCompactionBytes, 2 * this.#tables.bytes)) return;
    if (this.#compaction || this.failure || performance.now() - this.#compactionFailedAt < RETRY_MS) return;
    this.compact().then(
      (done) => log?.info(done),
      ({ message }) => {
        if (this.failure?.failure === 'closed') return log?.info(`the file was not compacted: ${message}`);
        this.#compactionFailedAt = performance.now();
        this.failedCompactions++;
        log?.warn(`the file could not be compacted, which is tried again in a minute: ${message}`);
      },
    );
  }

  /** One at a time: a second caller waits for the one under way. */
  compact(): Promise<string> {
    this.#compaction ??= this.#compact().finally(() => (this.#compaction = this.#tail = undefined));
    return this.#compaction;
  }

  async #compact(): Promise<string> {
    this.#mustBeWritable();
    const { disk, file, nextFile } = this.#directory;
    // Together, with no await between: the tail begins where the snapshot ends.
    const lines = snapshotLines({ ...this.header, at: this.#tables.now() }, this.#tables.snapshot());
    const tail: Buffer[] = (this.#tail = []);
    let [written, synced] = [0, 0];
    const fd = await disk.create(nextFile);
    const sync = async () => {
      await disk.sync(fd).catch((error) => {
        throw isNoRoom(error) ? error : this.#fail(error);
      });
      synced = written;
    };
    const write = async (bytes: Buffer) => {
      this.#mustBeWritable();
      await disk.write(fd, bytes, written);
      written += bytes.length;
      if (written - synced >= SYNC_EVERY_BYTES) await sync();
    };
    try {
      // Line by line, so that requests are served between two of them.
      for (const line of lines) await write(line);
      while (tail.length > 0) await write(Buffer.concat(tail.splice(0)));
      await sync(); // most of it now, so that the next batch waits for little
      return await this.#exclusively(async () => {
        await write(Buffer.concat(tail));
        await sync();
        try {
          await disk.rename(nextFile, file);
          await this.#directory.settle(this.header.store);
        } catch (error) {
          throw this.#fail(error); // after a crash, either file may be there
        }
        const [old, before] = [this.#fd, this.length];
        [this.#fd, this.length] = [fd, written];
        if (old !== undefined) {
          this.compactions++;
          disk.close(old);
        }
        return `the file was compacted from ${before} to ${written} bytes`;
      });
    } catch (error) {
      if (fd !== this.#fd) {
        disk.close(fd);
        await disk.unlink(nextFile).catch(() => {});
      }
      throw isNoRoom(error) ? noRoom(error as Error) : error;
    }
  }

  /** Writes nothing more: a compaction that is under way ends. */
  async close(): Promise<void> {
    this.failure ??= new StoreError('closed', 'the store is being closed');
    await this.#compaction?.catch(() => {});
    await this.#lastTask;
    if (this.#fd !== undefined) this.#directory.disk.close(this.#fd);
  }

  async #write(line: Buffer): Promise<void> {
    const { disk } = this.#directory;
    const fd = this.#fd!;
    const full = await disk.write(fd, line, this.length).catch((error) => {
      if (isNoRoom(error)) return noRoom(error);
      throw this.#fail(error);
    });
    try {
      if (full) await disk.truncate(fd, this.length);
      await disk.sync(fd);
    } catch (error) {
      throw this.#fail(error);
    }
    if (full) throw full;
  }

  #mustBeWritable(): void {
    if (this.failure) throw new StoreError('closed', `nothing more is written: ${this.failure.message}`);
  }

  #fail = (error: unknown): unknown => {
    if (this.#fd === undefined) return error; // the first file was being written: nothing rests on it yet
    if (this.failure?.failure === 'unknown') return this.failure;
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
