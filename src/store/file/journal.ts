import { type Journal, type Operation, StoreError } from '../model.ts';
import type { State } from '../state.ts';
import { newStoreId } from './directory.ts';
import { type Disk, isNoRoom, isOpenFailure } from './disk.ts';
import { encodeBatch, fileName, type Header } from './format.ts';
import type { Lock } from './lock.ts';
import type { Progress } from './read.ts';
import { compactFile, copyTail, dropOthers, type Extent, giveName, recover, writeWhole } from './rewrite.ts';

/** A file is compacted when it is larger than this, and than twice what it began with. */
const MIN_COMPACTION_BYTES = 64 * 1024 * 1024;
/** So much at most is copied while a batch waits. */
const LAST_COPY_BYTES = 256 * 1024;
/** After a start without room, writing anew is tried again after so long. */
const RETRY_MS = 2_000;

export interface FileJournalOptions {
  /** Does the work of `compactFile`, in another process; by default in this one. Given up at the signal. */
  compact?: (dir: string, extent: Extent, signal: AbortSignal) => Promise<unknown>;
  minCompactionBytes?: number;
  /** Freed when the journal is closed. */
  lock?: Lock;
  /** Told after each batch, for the metrics. */
  observe?: { batch(records: number, bytes: number, ms: number): void };
  /** What is on disk cannot be known: the process must end, with a status that is not 0. Told once. */
  onFatal?: (error: StoreError) => void;
  /** Something the operator should read: what recovery found, a compaction that failed. */
  onNotice?: (text: string) => void;
  onProgress?: Progress;
}

/** The file that is written. */
interface Current {
  store: string;
  file: number;
  fd: number;
  /** Bytes that are durable. */
  length: number;
  /** How long it was when it was begun. */
  began: number;
}

/**
 * One file, written at its end.
 *
 * Failure policy:
 * - A write fails for want of room: nothing of the batch is acknowledged. The file is cut back to the end of the batch
 *   before, and that is made durable; then the batch is refused as `full`, and the next one tries again.
 * - The cut fails, a write fails otherwise, or fdatasync fails: what is on disk cannot be known. After a failed
 *   fdatasync the kernel may have dropped the pages and call the file clean, so that a second fdatasync succeeds
 *   without anything being kept: it is never tried again. The batch is refused as `unknown`, the file takes no more,
 *   and the process must end. For the same reason a start after anything but a clean close writes what it has read into
 *   a new file before a write is acknowledged: what it read may be in the page cache alone. Where there is no room for
 *   that, reads are served and writes refused as `full`, and it is tried again.
 *
 * Compaction, in order: the state as of now into a new file under a temporary name, by another process; what was
 * written meanwhile is copied behind it, a last piece of it while a batch waits; durable; its name; the name durable;
 * `LOCK` says that no older file counts; only then the old file goes. After a crash the higher number counts, whole.
 */
export class FileJournal implements Journal {
  readonly #disk: Disk;
  readonly #dir: string;
  readonly #options: FileJournalOptions;
  #current: Current | undefined;
  #batch = 1;
  /** Begins the first file of this process; there until that is done. */
  #begin: (() => Promise<void>) | undefined;
  #triedAt = Number.NEGATIVE_INFINITY;
  #failure: StoreError | undefined;
  /** Appends and the end of a compaction, one after the other. */
  #turn: Promise<unknown> = Promise.resolve();
  #compaction: Promise<void> | undefined;
  readonly #closing = new AbortController();

  constructor(disk: Disk, dir: string, options: FileJournalOptions) {
    [this.#disk, this.#dir, this.#options] = [disk, dir, options];
  }

  async replay(state: State): Promise<void> {
    const found = await recover(this.#disk, this.#dir, state, { progress: this.#options.onProgress });
    const { store, file } = found?.header ?? { store: newStoreId(), file: 0 };
    const { length = 0 } = found ?? {};
    this.#batch = found?.batch ?? 1;
    if (found?.torn) this.#options.onNotice?.(found.torn);
    if (found?.isClosed) {
      const fd = await this.#disk.openToWrite(this.#path(file));
      this.#current = { store, file, fd, length, began: length };
      await this.#disk.truncate(fd, length); // it may be in the page cache alone, and nothing may follow on it
      await this.#disk.sync(fd);
      return this.#dropOthers(this.#current);
    }
    this.#begin = () => this.#beginFile({ store, file: file + 1, first: this.#batch }, state);
    await this.#begin().catch((error) => {
      if (!found || !isNoRoom(error)) throw error;
      this.#options.onNotice?.(`there is no room to write; what is there is served: ${error.message}`);
    });
  }

  /** What is durable; undefined while nothing can be written. */
  get extent(): Extent | undefined {
    return this.#current && { file: this.#current.file, length: this.#current.length };
  }

  append(batch: Operation[]): Promise<undefined> {
    return this.#inTurn(async () => {
      const current = await this.#writable();
      const bytes = encodeBatch(this.#batch + 1, batch);
      const began = performance.now();
      await this.#write(current, bytes);
      this.#options.observe?.batch(batch.length, bytes.length, performance.now() - began);
      this.#compactWhenLarge(current);
      return undefined;
    });
  }

  /** Resolves when everything is folded into one state. One at a time: who asks meanwhile waits for that one. */
  compact(): Promise<void> {
    const over = () => void (this.#compaction = undefined);
    return (this.#compaction ??= this.#compact().finally(over));
  }

  /** Where there is no room to say that it was closed, the next start only writes a new file. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#compaction?.catch(() => {});
    const current = this.#current;
    try {
      const closing = encodeBatch(this.#batch + 1, [{ op: 'close' }]);
      if (current && !this.#failure) await this.#inTurn(() => this.#write(current, closing));
    } catch (error) {
      if ((error as StoreError).failure !== 'full') throw error;
      this.#options.onNotice?.('there was no room for the closing record; all writes that were acknowledged are kept');
    } finally {
      if (current) this.#disk.close(current.fd);
      this.#options.lock?.release();
    }
  }

  async #writable(): Promise<Current> {
    if (this.#failure) throw new StoreError('closed', `nothing more is kept: ${this.#failure.message}`);
    if (this.#begin) {
      const now = performance.now();
      if (now - this.#triedAt < RETRY_MS) throw new StoreError('full', 'there is no room for a new file');
      this.#triedAt = now;
      await this.#begin().catch((error) => {
        throw isNoRoom(error) ? new StoreError('full', error.message) : this.#fail(error);
      });
    }
    return this.#current!;
  }

  async #beginFile(header: Header, state: State): Promise<void> {
    const path = this.#path(header.file);
    const length = await writeWhole(this.#disk, `${path}.tmp`, header, state);
    const fd = await this.#disk.openToWrite(`${path}.tmp`);
    await this.#goOnIn({ ...header, fd, length, began: length });
    this.#begin = undefined;
  }

  /** The file is whole and durable; from here on it has its name, and counts. */
  async #goOnIn(next: Current): Promise<void> {
    const path = this.#path(next.file);
    await giveName(this.#disk, `${path}.tmp`, path);
    if (this.#current) this.#disk.close(this.#current.fd);
    this.#current = next;
    await this.#dropOthers(next);
  }

  /**
   * Where there is no room to say that older files do not count, they stay: the next start or compaction tries again.
   */
  async #dropOthers(current: Current): Promise<void> {
    try {
      await dropOthers(this.#disk, this.#dir, current);
    } catch (error) {
      if (!isNoRoom(error) && !isOpenFailure(error)) throw this.#fail(error);
      this.#options.onNotice?.(`older files stay behind: ${(error as Error).message}`);
    }
  }

  #compactWhenLarge(current: Current): void {
    const limit = Math.max(this.#options.minCompactionBytes ?? MIN_COMPACTION_BYTES, 2 * current.began);
    if (current.length < limit || this.#compaction || this.#closing.signal.aborted) return;
    this.compact().catch((error: Error) => {
      if (this.#closing.signal.aborted) return;
      current.began = current.length; // not again with every batch
      this.#options.onNotice?.(`compaction failed, and will be tried again: ${error.message}`);
    });
  }

  async #compact(): Promise<void> {
    const disk = this.#disk;
    const from = await this.#inTurn(() => this.#writable());
    const unfinished = `${this.#path(from.file + 1)}.tmp`;
    let fd: number | undefined;
    try {
      const compact = this.#options.compact ?? ((dir: string, extent: Extent) => compactFile(disk, dir, extent));
      const { length } = from;
      await compact(this.#dir, { file: from.file, length }, this.#closing.signal);
      const began = disk.size(unfinished);
      fd = await disk.openToWrite(unfinished);
      const next = { store: from.store, file: from.file + 1, fd, length: began, began };
      const copied = await copyTail(disk, from, length, next, LAST_COPY_BYTES);
      await this.#inTurn(async () => {
        await this.#writable();
        await copyTail(disk, from, copied, next, 0);
        await this.#goOnIn(next).catch((error) => {
          throw isOpenFailure(error) ? error : this.#fail(error);
        });
      });
    } catch (error) {
      if (fd !== undefined) disk.close(fd);
      if (!this.#failure) await disk.unlink(unfinished).catch(() => {}); // it takes room that others need
      throw error;
    }
  }

  async #write(current: Current, bytes: Buffer): Promise<void> {
    const failing = (error: unknown) => Promise.reject(this.#fail(error));
    try {
      await this.#disk.write(current.fd, bytes, current.length);
    } catch (error) {
      if (!isNoRoom(error)) throw this.#fail(error);
      await this.#disk.truncate(current.fd, current.length).catch(failing);
      await this.#disk.sync(current.fd).catch(failing);
      throw new StoreError('full', `there is no room for the log: ${(error as Error).message}`);
    }
    await this.#disk.sync(current.fd).catch(failing);
    current.length += bytes.length;
    this.#batch++;
  }

  /** What is on disk cannot be known from here on. */
  #fail(error: unknown): StoreError {
    if (this.#failure) return this.#failure;
    this.#failure = new StoreError('unknown', `the log could not be written: ${(error as Error).message}`);
    this.#options.onFatal?.(this.#failure);
    return this.#failure;
  }

  #path(file: number): string {
    return `${this.#dir}/${fileName(file)}`;
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work);
    this.#turn = done.catch(() => {});
    return done;
  }
}
