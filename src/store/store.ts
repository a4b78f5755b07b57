import { randomBytes } from 'node:crypto';
import { type Clock, systemClock } from '../clock.ts';
import { Committer } from './commit.ts';
import { type Disk, realDisk } from './disk.ts';
import { beginGeneration, compactFiles, removeOlder, reopenLog } from './generation.ts';
import type { Progress } from './lines.ts';
import { type Lock, takeLock } from './lock.ts';
import { Log } from './log.ts';
import { type Ahead, type Operation, type Reading, type Store, StoreError } from './model.ts';
import { fileName } from './record.ts';
import { type Files, type Recovered, recover } from './recovery.ts';
import { type Proof, prove } from './snapshot.ts';
import { readingOf, type State } from './state.ts';

/** A log is compacted when it is larger than this, and larger than the snapshot it follows. */
export const MIN_COMPACTION_BYTES = 64 * 1024 * 1024;

export interface FileStoreOptions {
  clock?: Clock;
  disk?: Disk;
  /** Whether another process answers for this directory: where there is no flock program, or was none for that one. */
  isAlive?: () => Promise<boolean>;
  /** False on a disk that is simulated, or where the lock is held already. */
  lock?: boolean;
  /** Writes the snapshot of that generation, in another process; by default in this one. Given up at the signal. */
  compact?: (dir: string, generation: number, signal: AbortSignal) => Promise<unknown>;
  minCompactionBytes?: number;
  /** Told after each batch, for the metrics. */
  observe?: { batch(records: number, bytes: number, ms: number): void };
  /** What is on disk cannot be known: the process must end, with a status that is not 0. */
  onFatal?: (error: StoreError) => void;
  /** Something the operator should read: what recovery found, a compaction that failed. */
  onNotice?: (text: string) => void;
  onProgress?: Progress;
}

/** Files of a running store that stay as they are until released. */
interface Pinned extends Files {
  release(): void;
}

/** The store behind the seam of model.ts: everything in memory, every change in a log first. */
export class FileStore implements Store {
  readonly read: Reading;
  readonly #dir: string;
  readonly #disk: Disk;
  readonly #options: FileStoreOptions;
  readonly #state: State;
  readonly #store: string;
  readonly #committer: Committer;
  readonly #lock: Lock | undefined;
  /** Generation of the snapshot that counts. */
  #snapshot: number;
  #highest: number;
  /** Bytes of the logs between the snapshot and the one that is written. */
  #closedBytes = 0;
  /** Log bytes beyond which the next compaction begins by itself. */
  #compactAt: number;
  #compaction: Promise<void> | undefined;
  /** Closing does not wait for a snapshot: the chain of logs is as good. */
  readonly #givingUp = new AbortController();
  readonly #pins = new Set<Pinned>();
  #closing: Promise<void> | undefined;

  /** Recovers what is there, and resolves when it is safe to serve. */
  static async open(dir: string, options: FileStoreOptions = {}): Promise<FileStore> {
    const disk = options.disk ?? realDisk;
    await disk.makeDirectory(dir);
    const lock = options.lock === false ? undefined : await takeLock(dir, options.isAlive);
    try {
      const found = await recover(disk, dir, { progress: options.onProgress });
      const store = found.store ?? randomBytes(8).toString('hex');
      const log = found.isClean ? await reopenLog(disk, dir, found) : await beginGeneration(disk, dir, found, store);
      for (const notice of lock?.notice ? [lock.notice, ...found.notices] : found.notices) options.onNotice?.(notice);
      return new FileStore(dir, disk, options, { ...found, store }, log, lock);
    } catch (error) {
      lock?.release();
      throw error;
    }
  }

  private constructor(
    dir: string,
    disk: Disk,
    options: FileStoreOptions,
    found: Recovered & { store: string },
    log: Log,
    lock: Lock | undefined,
  ) {
    this.#dir = dir;
    this.#disk = disk;
    this.#options = options;
    this.#state = found.state;
    this.read = readingOf(found.state);
    this.#store = found.store;
    this.#lock = lock;
    this.#snapshot = found.isClean ? found.snapshot : log.generation;
    this.#highest = Math.max(found.highest, log.generation);
    this.#compactAt = this.#nextCompactionAt();
    const closed = found.isClean ? found.logs.slice(0, -1) : [];
    for (const generation of closed) this.#closedBytes += disk.size(`${dir}/${fileName('log', generation)}`);
    this.#committer = new Committer(log, found, {
      batch: (records, bytes, ms) => {
        options.observe?.batch(records, bytes, ms);
        this.#compactWhenLarge();
      },
      unknown: (error) => options.onFatal?.(error),
    });
  }

  write<O extends Operation>(decide: (ahead: Ahead) => O): Promise<O> {
    return this.#committer.write(decide);
  }

  /** Throws where the state contradicts itself; else tells what is in it. */
  check(): Proof {
    this.#state.check();
    return prove(this.#state);
  }

  /** What is durable now, to be read by a backup; the files stay until they are released. */
  pin(): Pinned {
    const { generation, length } = this.#committer.log;
    const pinned = {
      snapshot: this.#snapshot,
      last: { generation, length },
      release: () => {
        this.#pins.delete(pinned);
        this.#sweep().catch((error) => this.#options.onNotice?.(`old files stay behind: ${error.message}`));
      },
    };
    this.#pins.add(pinned);
    return pinned;
  }

  /** What an import has brought that will not come to its end. */
  forgetImport(name: string): void {
    this.#state.imports.delete(name);
  }

  /** Resolves when everything older is in one snapshot. One at a time: who asks meanwhile waits for that one. */
  compact(): Promise<void> {
    if (this.#closing) return Promise.reject(new StoreError('closed', 'the store is closed'));
    this.#compaction ??= this.#compact().finally(() => {
      this.#compaction = undefined;
    });
    return this.#compaction;
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /**
   * What was accepted is made durable. Without room for the closing record it is durable too, but the next start
   * writes a new generation. Rejects when it cannot be known what is on disk.
   */
  async #close(): Promise<void> {
    this.#committer.stop();
    this.#givingUp.abort();
    await this.#compaction?.catch(() => {});
    try {
      await this.#committer.end({ op: 'end', how: 'close', at: this.#now() });
    } catch (error) {
      if ((error as StoreError).failure !== 'full') throw error;
      this.#options.onNotice?.('there was no room for the closing record; all writes that were acknowledged are kept');
    } finally {
      this.#committer.log.close();
      this.#lock?.release();
    }
  }

  async #compact(): Promise<void> {
    const generation = ++this.#highest;
    const next = await Log.create(this.#disk, this.#dir, this.#store, generation).catch((error) => {
      if (error.failure === 'unknown') this.#committer.fail(error);
      throw error;
    });
    const before = this.#committer.log;
    try {
      await this.#committer.end({ op: 'end', how: 'next', generation, at: this.#now() }, next);
    } catch (error) {
      next.close();
      // When it is unknown whether the old log names the new one, that one must stay.
      const mayBeNamed = (error as StoreError).failure === 'unknown';
      if (!mayBeNamed) await this.#disk.unlink(`${this.#dir}/${fileName('log', generation)}`);
      throw error;
    }
    this.#closedBytes += before.length;
    const { signal } = this.#givingUp;
    signal.throwIfAborted();
    const compact = this.#options.compact ?? ((dir, target) => compactFiles(this.#disk, dir, target));
    await compact(this.#dir, generation, signal);
    this.#snapshot = generation;
    this.#closedBytes = 0;
    this.#compactAt = this.#nextCompactionAt();
    await this.#sweep();
  }

  /** Unlinks what is older than the snapshot, unless a backup may be reading it. */
  async #sweep(): Promise<void> {
    if (this.#pins.size === 0) await removeOlder(this.#disk, this.#dir, this.#snapshot);
  }

  #nextCompactionAt(): number {
    const snapshotBytes = this.#disk.size(`${this.#dir}/${fileName('snapshot', this.#snapshot)}`);
    return Math.max(this.#options.minCompactionBytes ?? MIN_COMPACTION_BYTES, snapshotBytes);
  }

  #compactWhenLarge(): void {
    const bytes = this.#committer.log.length + this.#closedBytes;
    if (bytes < this.#compactAt || this.#compaction || this.#closing || this.#state.imports.size > 0) return;
    this.compact().catch((error: Error) => {
      if (this.#closing) return;
      this.#compactAt = bytes * 2; // not again with every batch
      this.#options.onNotice?.(`compaction failed, and will be tried again: ${error.message}`);
    });
  }

  #now(): number {
    return (this.#options.clock ?? systemClock).steady();
  }
}
