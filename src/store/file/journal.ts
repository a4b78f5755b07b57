/**
 * The write-ahead log: one file, written at its end.
 *
 * Failure policy:
 * - A write fails because there is no room: nothing of the batch is acknowledged. The file is cut back to the end of
 *   the batch before, and the cut is made durable; then the batch is refused as `full`, and the next one tries again.
 * - The cut fails, a write fails otherwise, or fdatasync fails: the content of the disk is unknown. After a failed
 *   fdatasync the kernel may drop the pages and call the file clean, so that a second fdatasync succeeds and keeps
 *   nothing: it is never tried. The batch is refused as `unknown`, the file takes no more, the process must end.
 * - For the same reason a start after anything but a clean close writes the state into a new file before a write is
 *   acknowledged: the file read may be in the page cache alone. Without room for the new file, reads are served,
 *   writes are refused as `full`, and a later write tries again to begin it.
 *
 * Compaction, in order: another process writes the present state into a new file under a temporary name; later batches
 * are copied after it, the last of them while a batch waits; the file is synced and renamed, and its directory synced;
 * `LOCK` says that no older file counts; the old file is removed. After a crash the file of the higher number counts.
 */
import { type Change, type Journal, StoreError } from '../model.ts';
import type { State } from '../state.ts';
import { Compactions } from './compactions.ts';
import { dropOthers, type Home, isElsewhere, mustBeHome, newStoreId } from './directory.ts';
import { type Disk, isNoRoom, isOpenFailure } from './disk.ts';
import { encodeBatch, fileName } from './format.ts';
import { type Mark, Marks, writeMark } from './lock.ts';
import type { Found, Progress } from './read.ts';
import { becomeStore, compactFile, type Extent, giveName, recover } from './rewrite.ts';
import { copyTail, doneByOthers, openWritten, type Written } from './written.ts';

/** A file is compacted when it is larger than this, and than twice its first length, whatever starts there were. */
const MIN_COMPACTION_BYTES = 64 * 1024 * 1024;
/** After a start without room, the time between two attempts to begin a new file. */
const RETRY_MS = 2_000;

export interface FileJournalOptions {
  /**
   * Does the work of `compactFile`, in another process; by default in this one. The signal aborts it. Returns the
   * temporary name of the next file.
   */
  compact?: (dir: string, extent: Extent, signal: AbortSignal) => Promise<string>;
  /** Released when the journal is closed. */
  lock: { fd: number; release(): void };
  markEveryMs?: number;
  /** Called after each batch with its duration, for the metrics. */
  onBatch?: (ms: number) => void;
  /** Called once if the content of the disk cannot be known: the process must end, with a status that is not 0. */
  onFatal?: (error: StoreError) => void;
  /** Called with texts that the operator should read: findings of the recovery, a failed compaction. */
  onNotice?: (text: string) => void;
  onProgress?: Progress;
  times?: () => Mark['times'];
}

export class FileJournal implements Journal {
  readonly #home: Home;
  readonly #options: FileJournalOptions;
  #current: Written | undefined;
  #batch = 1;
  /** Begins a new file; set unless the file that was read may be continued. */
  #begin: (() => Promise<void>) | undefined;
  #triedAt = Number.NEGATIVE_INFINITY;
  #failure: StoreError | undefined;
  /** The last of the tasks that run one by one: appends, writes of `LOCK`, the last step of a compaction, the close. */
  #turn: Promise<unknown> = Promise.resolve();
  readonly #marks: Marks;
  readonly compactions = new Compactions((signal) => this.#compact(signal));

  constructor(disk: Disk, dir: string, options: FileJournalOptions) {
    this.#home = { disk, dir, fd: options.lock.fd };
    this.#options = options;
    this.#marks = new Marks(() => this.#inTurn(() => this.#mark()), options.markEveryMs);
  }

  async replay(state: State): Promise<void> {
    const [home, { onNotice, onProgress, times }] = [this.#home, this.#options];
    const found = await recover(home.disk, home.dir, state, { onProgress });
    const { store, file } = found?.header ?? { store: newStoreId(), file: 0 };
    this.#batch = found?.batch ?? 1;
    if (found?.torn) onNotice?.(found.torn);
    if (found?.isClosed && (await this.#goOn(found))) return;
    const header = { store, file: file + 1, first: this.#batch };
    this.#begin = async () => {
      this.#current = await openWritten(home, header, await becomeStore(home, header, state, times?.()));
    };
    await this.#begin().catch((error) => {
      if (!found || !isNoRoom(error)) throw error;
      onNotice?.(`there is no room to write; reads are served: ${error.message}`);
    });
  }

  append(batch: Change[]): Promise<undefined> {
    return this.#inTurn(async () => {
      const current = await this.#writable();
      const bytes = encodeBatch(this.#batch + 1, batch);
      const began = performance.now();
      await this.#write(current, bytes);
      this.#options.onBatch?.(performance.now() - began);
      this.#marks.due();
      this.#compactWhenLarge(current);
      return undefined;
    });
  }

  /** Resolves when the file is compacted. One compaction at a time: a second caller waits for the one under way. */
  compact = (): Promise<void> => this.compactions.run();

  /** The length of the current file. 0: there was no room yet to begin one. */
  get bytes(): number {
    return this.#current?.length ?? 0;
  }

  /** Aborts a compaction under way, and prevents any other. */
  giveUp = (): void => this.compactions.giveUp();

  /** If there is no room for the closing record, nothing is lost: the next start just writes a new file. */
  async close(): Promise<void> {
    this.giveUp();
    await this.compactions.underWay?.catch(() => {});
    this.#marks.stop();
    const current = this.#current;
    try {
      if (this.#failure?.failure === 'closed') throw this.#failure;
      if (current && !this.#failure) await this.#inTurn(() => this.#writeClose(this.#untouched(current)));
    } catch (error) {
      if ((error as StoreError).failure !== 'full' && !isNoRoom(error)) throw error;
      this.#options.onNotice?.('there was no room for the closing record; all writes that were acknowledged are kept');
    } finally {
      if (current) this.#home.disk.close(current.fd);
      this.#options.lock.release();
    }
  }

  /** Writes the closing record, then `LOCK`: until `LOCK` is written, the record alone shows that the end was clean. */
  async #writeClose(current: Written): Promise<void> {
    const [{ disk, fd }, batch] = [this.#home, this.#batch];
    await this.#write(current, encodeBatch(batch + 1, [{ op: 'close' }]));
    await writeMark(disk, fd, { ...this.#markOf(current), batch, closed: true });
    await disk.sync(fd);
  }

  /**
   * Goes on with a cleanly closed file. First it writes into `LOCK` that the file is open; without room for that, it
   * returns false. Then it cuts off the closing record, after which nothing may stand, and makes the cut durable.
   */
  async #goOn({ header, length, baseLength }: Found): Promise<boolean> {
    const { disk } = this.#home;
    const current = await openWritten(this.#home, header, length, baseLength);
    if (await dropOthers(this.#home, this.#markOf(current))) {
      await disk.truncate(current.fd, length);
      await disk.sync(current.fd);
      this.#current = current;
    } else disk.close(current.fd);
    return current === this.#current;
  }

  #markOf({ store, file, length }: Written): Mark {
    return { store, lowest: file, batch: this.#batch, length, closed: false, times: this.#options.times?.() };
  }

  async #mark(): Promise<void> {
    const { disk, fd } = this.#home;
    if (this.#current && !this.#failure) await writeMark(disk, fd, this.#markOf(this.#current));
  }

  async #writable(): Promise<Written> {
    if (this.#failure) throw new StoreError('closed', `nothing more is kept: ${this.#failure.message}`);
    if (this.#current) return this.#untouched(this.#current);
    const now = performance.now();
    if (now - this.#triedAt < RETRY_MS) throw new StoreError('full', 'there is no room for a new file');
    this.#triedAt = now;
    await this.#begin!().catch((error) => {
      throw isNoRoom(error) ? new StoreError('full', error.message) : this.#fail(error);
    });
    return this.#writable();
  }

  /** Returns the file if nobody else has changed it; else ends writing. Reads go on: memory may be the only copy. */
  #untouched(current: Written): Written {
    const why = doneByOthers(this.#home, current);
    if (why === undefined) return current;
    this.#options.onNotice?.(`${why}. No write is taken any more; reads are served`);
    throw (this.#failure = new StoreError('closed', why));
  }

  #compactWhenLarge(current: Written): void {
    const limit = Math.max(MIN_COMPACTION_BYTES, 2 * current.baseLength);
    if (current.length < limit || this.compactions.underWay || this.compactions.areOver) return;
    this.compact().catch((error: Error) => {
      current.baseLength = current.length; // not again with every batch
      if (this.compactions.areOver) return;
      this.#options.onNotice?.(`compaction failed, and will be tried again: ${error.message}`);
    });
  }

  async #compact(signal: AbortSignal): Promise<void> {
    const { disk, dir } = this.#home;
    const from = await this.#inTurn(() => this.#writable());
    const { store, file, length } = from;
    let temporaryName = `${fileName(file + 1)}.tmp`;
    const { compact = (_: string, extent: Extent) => compactFile(disk, dir, extent) } = this.#options;
    let next: Written | undefined;
    mustBeHome(this.#home);
    try {
      temporaryName = await compact(dir, { file, length }, signal);
      next = await openWritten(this.#home, { store, file: file + 1 }, 0, 0, temporaryName);
      next.baseLength = next.length = disk.size(next.fd);
      const copied = await copyTail(disk, from, length, next);
      await this.#inTurn(async () => {
        await this.#writable();
        await copyTail(disk, from, copied, next!, 0);
        await giveName(this.#home, temporaryName, this.#markOf(next!)).catch((error) => {
          throw isOpenFailure(error) || isElsewhere(error) ? error : this.#fail(error);
        });
        this.#current = next;
        disk.close(from.fd);
      });
    } catch (error) {
      if (next && next !== this.#current) disk.close(next.fd);
      await disk.unlink(`${dir}/${temporaryName}`).catch(() => {}); // frees its room
      throw error;
    }
  }

  async #write(current: Written, bytes: Buffer): Promise<void> {
    const failing = (error: unknown) => Promise.reject(this.#fail(error));
    try {
      await this.#home.disk.write(current.fd, bytes, current.length);
    } catch (error) {
      if (!isNoRoom(error)) throw this.#fail(error);
      await this.#home.disk.truncate(current.fd, current.length).catch(failing);
      await this.#home.disk.sync(current.fd).catch(failing);
      throw new StoreError('full', `there is no room for the log: ${(error as Error).message}`);
    }
    await this.#home.disk.sync(current.fd).catch(failing);
    current.length += bytes.length;
    this.#batch++;
  }

  /** From here on the content of the disk cannot be known. */
  #fail(error: unknown): StoreError {
    this.#failure = new StoreError('unknown', `the log could not be written: ${(error as Error).message}`);
    this.#options.onFatal?.(this.#failure);
    return this.#failure;
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work);
    this.#turn = done.catch(() => {});
    return done;
  }
}
