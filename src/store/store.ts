import { randomBytes } from 'node:crypto';
import { type Clock, systemClock } from '../clock.ts';
import { AheadView } from './ahead.ts';
import type { Files } from './backup.ts';
import { Committer, type Observer } from './commit.ts';
import { compactFiles } from './compaction.ts';
import { type Disk, realDisk } from './disk.ts';
import { beginGeneration, removeFiles, reopenLog } from './generation.ts';
import { fileName, generationOf } from './header.ts';
import type { Progress } from './lines.ts';
import { type Lock, takeLock } from './lock.ts';
import { Log } from './log.ts';
import { type Ahead, type Operation, type Reading, type Store, StoreError } from './model.ts';
import { type Recovered, recover, sizeOf } from './recovery.ts';
import type { State } from './state.ts';

/** A log is compacted when it is larger than this, and larger than the snapshot it follows. */
const MIN_COMPACTION_BYTES = 32 * 1024 * 1024;

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
  observe?: Observer;
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
  readonly #dir: string;
  readonly #disk: Disk;
  readonly #clock: Clock;
  readonly #state: State;
  readonly #committer: Committer;
  readonly #options: FileStoreOptions;
  readonly #store: string;
  readonly #lock: Lock | undefined;
  #snapshot: number;
  /** Generation and length of the logs between the snapshot and the one that is written. */
  #closedLogs = new Map<number, number>();
  #highest: number;
  /** Log bytes beyond which the next compaction begins by itself. */
  #compactAt: number;
  #compaction: Promise<void> | undefined;
  /** Closing does not wait for a snapshot: the chain of logs is as good. */
  readonly #givingUp = new AbortController();
  #pins = 0;
  #closing: Promise<void> | undefined;

  /** Recovers what is there, and resolves when it is safe to serve. */
  static async open(dir: string, options: FileStoreOptions = {}): Promise<FileStore> {
    const disk = options.disk ?? realDisk;
    await disk.makeDirectory(dir);
    const isAlive = options.isAlive ?? (async () => false);
    const lock = options.lock === false ? undefined : await takeLock(dir, isAlive);
    try {
      const found = await recover(disk, dir, {}, options.onProgress);
      const store = found.store ?? randomBytes(8).toString('hex');
      const log = found.isClean ? await reopenLog(disk, dir, found) : await beginGeneration(disk, dir, found, store);
      for (const notice of lock?.notice ? [lock.notice, ...found.notices] : found.notices) options.onNotice?.(notice);
      return new FileStore(dir, disk, options, found, store, log, lock);
    } catch (error) {
      lock?.release();
      throw error;
    }
  }

  private constructor(
    dir: string,
    disk: Disk,
    options: FileStoreOptions,
    found: Recovered,
    store: string,
    log: Log,
    lock: Lock | undefined,
  ) {
    this.#dir = dir;
    this.#disk = disk;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#state = found.state;
    this.#store = store;
    this.#lock = lock;
    this.#snapshot = found.isClean ? found.snapshot : log.generation;
    this.#highest = Math.max(found.highest, log.generation);
    this.#compactAt = this.#nextCompactionAt(found.snapshotBytes);
    for (const generation of found.isClean ? found.logs.slice(0, -1) : []) {
      this.#closedLogs.set(generation, sizeOf(disk, `${dir}/${fileName('log', generation)}`));
    }
    const observe = {
      batch: (records: number, bytes: number, ms: number) => {
        options.observe?.batch(records, bytes, ms);
        this.#compactWhenLarge();
      },
    };
    const position = { seq: found.seq, batch: found.batch };
    const onUnknown = (error: StoreError) => options.onFatal?.(error);
    this.#committer = new Committer(log, this.#state, new AheadView(this.#state), position, onUnknown, observe);
  }

  get read(): Reading {
    return this.#state;
  }

  write<O extends Operation>(decide: (ahead: Ahead) => O): Promise<O> {
    return this.#committer.write(decide);
  }

  /** Throws where the state contradicts itself. */
  check(): void {
    this.#state.check();
  }

  /** What is durable now, to be read by a backup; the files stay until they are released. */
  pin(): Pinned {
    const { log } = this.#committer;
    this.#pins++;
    let isReleased = false;
    const release = () => {
      if (isReleased) return;
      isReleased = true;
      this.#pins--;
      this.#sweep().catch((error) => this.#options.onNotice?.(`old files stay behind: ${error.message}`));
    };
    return { snapshot: this.#snapshot, last: { generation: log.generation, length: log.length }, release };
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

  async #close(): Promise<void> {
    this.#committer.stop();
    this.#givingUp.abort();
    await this.#compaction?.catch(() => {});
    try {
      const isWhole = await this.#committer.close({ op: 'end', how: 'close', at: this.#clock.wall() });
      if (!isWhole) this.#options.onNotice?.('there was no room for the closing record; nothing is lost');
    } finally {
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
      await this.#committer.between(async () => {
        if (this.#state.imports.size > 0) throw new StoreError('busy', 'an import is under way; compact after it');
        await this.#committer.end({ op: 'end', how: 'next', generation, at: this.#clock.wall() }, next);
      });
    } catch (error) {
      next.close();
      // When it is unknown whether the old log names the new one, that one must stay.
      const mayBeNamed = (error as StoreError).failure === 'unknown';
      if (!mayBeNamed) await this.#disk.unlink(`${this.#dir}/${fileName('log', generation)}`);
      throw error;
    }
    this.#closedLogs.set(before.generation, before.length);
    const { signal } = this.#givingUp;
    signal.throwIfAborted();
    const compact = this.#options.compact ?? ((dir, target) => compactFiles(this.#disk, dir, target));
    await compact(this.#dir, generation, signal);
    this.#snapshot = generation;
    this.#closedLogs.clear();
    this.#compactAt = this.#nextCompactionAt(sizeOf(this.#disk, `${this.#dir}/${fileName('snapshot', generation)}`));
    await this.#sweep();
  }

  /** Unlinks what is older than the snapshot, unless a backup may be reading it. */
  async #sweep(): Promise<void> {
    if (this.#pins > 0) return;
    const generation = (name: string) =>
      generationOf('log', name) ?? generationOf('snapshot', name.replace(/\.tmp$/, ''));
    const isOld = (name: string) => (generation(name) ?? this.#snapshot) < this.#snapshot;
    await removeFiles(this.#disk, this.#dir, this.#disk.list(this.#dir).filter(isOld));
  }

  #nextCompactionAt(snapshotBytes: number): number {
    return Math.max(this.#options.minCompactionBytes ?? MIN_COMPACTION_BYTES, snapshotBytes);
  }

  #compactWhenLarge(): void {
    let bytes = this.#committer.log.length;
    for (const length of this.#closedLogs.values()) bytes += length;
    if (bytes < this.#compactAt || this.#compaction || this.#closing || this.#state.imports.size > 0) return;
    this.compact().then(
      () => {},
      (error: Error) => {
        if (this.#closing) return;
        this.#compactAt = bytes * 2; // not again with every batch
        this.#options.onNotice?.(`compaction failed, and will be tried again: ${error.message}`);
      },
    );
  }
}
