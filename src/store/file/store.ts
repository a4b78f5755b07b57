/** The engine on a file: all rows in memory, and a write-ahead log. */
import { MemoryLimiter } from '../../access/usage.ts';
import type { Clock } from '../../clock.ts';
import type { Engine, EngineOptions, Metric, Proof } from '../engine.ts';
import { StoreError } from '../model.ts';
import { type Commit, GroupCommitStore, storeTime } from '../store.ts';
import { Tables } from '../tables.ts';
import { backupLines, prove, readBackup } from './backup.ts';
import { NextFile } from './compaction.ts';
import { Directory } from './directory.ts';
import { type Disk, isMissing, realDisk } from './disk.ts';
import { Journal, newStoreId, readStore } from './journal.ts';
import type { Header } from './log-format.ts';

/** Shares of `maxBytes` that are told in the log when they are reached. */
const WARN_AT = [0.8, 0.95];
/** A compaction beside us may remove the file that we are about to read. */
const MAX_READS = 5;

/** For tests: the simulated disk, and compaction of small files. */
export interface Internals {
  readonly disk?: Disk;
  readonly minCompactionBytes?: number;
}

export async function openFileStore(dir: string, options: EngineOptions, internals: Internals = {}): Promise<Engine> {
  const { clock, log, mustExist = false, onProgress } = options;
  const { disk = realDisk } = internals;
  const { tables, startClock } = newTables();
  if (options.readOnly) {
    const directory = Directory.openToRead(disk, dir);
    const read = await readBeside(directory, tables, onProgress);
    const header = { ...read.header, batch: read.batch, lastIds: tables.lastIds };
    return new FileEngine(directory, tables, startClock(clock, read.at), options, header);
  }
  const directory = await Directory.open(disk, dir, mustExist, (text) => log.warn(text));
  try {
    const read = await readStore(directory, tables, onProgress);
    if (read === undefined && mustExist) throw new Error(`there is no store in ${dir}`);
    const now = startClock(clock, read?.at);
    const journal = await Journal.open(directory, tables, read, { ...options, ...internals, now });
    return new FileEngine(directory, tables, now, options, journal);
  } catch (error) {
    directory.release();
    throw error;
  }
}

/** Fills an empty or a new store with the rows of a backup: all of them, or none. */
export async function restoreInto(
  dir: string,
  lines: AsyncIterable<Uint8Array>,
  disk: Disk = realDisk,
): Promise<Proof> {
  const directory = await Directory.open(disk, dir, false, () => {});
  try {
    const { tables: present } = newTables();
    const read = await readStore(directory, present);
    if (!present.isEmpty) throw new Error(`the store in ${dir} is not empty`);
    const { tables, header, proof } = await readBackup('the backup', lines);
    const file = read ? read.header.file + 1 : 1;
    // An id of its own: what clients remember of the store that was backed up is not true of this one.
    const next = await NextFile.write(directory, { ...header, store: newStoreId(), file }, tables.snapshot(header.at));
    await next.sync();
    await next.readBack();
    await next.finish();
    disk.close(next.fd);
    return proof;
  } finally {
    directory.release();
  }
}

/** Replays do not end while a file is read: what is read does not depend on the clock. */
function newTables() {
  let now = () => 0;
  const startClock = (clock: Clock, notBefore?: number) => (now = storeTime(clock, notBefore));
  return { tables: new Tables(() => now()), startClock };
}

/** Reads the store while another process, or this one, may be writing it. */
async function readBeside(directory: Directory, tables: Tables, onProgress?: EngineOptions['onProgress']) {
  for (let tries = 1; ; tries++) {
    try {
      const read = await readStore(directory, tables, onProgress);
      if (read === undefined) throw new Error(`there is no store in ${directory.path}`);
      return read;
    } catch (error) {
      if (!isMissing(error) || tries === MAX_READS) throw error; // else nothing was read yet
    }
  }
}

class FileEngine implements Engine {
  readonly store: GroupCommitStore;
  readonly limiter: MemoryLimiter;
  readonly #directory: Directory;
  readonly #tables: Tables;
  readonly #options: EngineOptions;
  /** Undefined: opened to read. */
  readonly #journal: Journal | undefined;
  readonly #header: () => Header;
  readonly #warned = new Set<number>();

  constructor(
    directory: Directory,
    tables: Tables,
    now: () => number,
    options: EngineOptions,
    opened: Journal | Header,
  ) {
    [this.#directory, this.#tables, this.#options] = [directory, tables, options];
    this.#journal = opened instanceof Journal ? opened : undefined;
    this.#header = () => (opened instanceof Journal ? opened.header : { ...opened, at: now() });
    const { maxBytes } = options;
    const commit: Commit = async (decide) => {
      const changes = decide();
      if (changes.length === 0) return;
      if (!this.#journal) throw new StoreError('closed', 'the store was opened to read');
      await this.#journal.append(changes);
      this.#warnIfNearlyFull();
    };
    this.store = new GroupCommitStore({ id: opened.store, tables, commit, now, maxBytes });
    this.limiter = new MemoryLimiter(this.store, options, tables.usage.list());
    this.#warnIfNearlyFull();
    this.#journal?.compactIfLong();
  }

  ready(): boolean {
    return this.#journal !== undefined && !this.#journal.hasFailed;
  }

  metrics(): Metric[] {
    const { maxBytes = 0 } = this.#options;
    const { length = 0, compactions = 0, failedCompactions = 0 } = this.#journal ?? {};
    const metric = (type: Metric['type'], name: string, help: string, value: number): Metric => {
      return { name: `petstore_${name}`, help, type, value };
    };
    return [
      metric('gauge', 'store_bytes', 'Length that the file would have if it was compacted now.', this.#tables.bytes),
      metric('gauge', 'store_max_bytes', 'The most that it may have; 0: no maximum.', maxBytes),
      metric('gauge', 'store_file_bytes', 'Length of the file.', length),
      metric('counter', 'compactions_total', 'Compactions since the start.', compactions),
      metric('counter', 'compactions_failed_total', 'Compactions that failed and are tried again.', failedCompactions),
    ];
  }

  /** Reads the file, also while it is written: it is verified up to where it ended a moment ago. */
  async verify(): Promise<Proof> {
    const header = this.#header();
    if (!this.#journal) return prove(header, this.#tables.snapshot(header.at)); // it was read just now
    const { tables } = newTables();
    await readBeside(this.#directory, tables, this.#options.onProgress);
    return prove(header, tables.snapshot(header.at));
  }

  async compact(): Promise<string> {
    if (!this.#journal) throw new StoreError('closed', 'the store was opened to read');
    return this.#journal.compact();
  }

  backup(): AsyncGenerator<Uint8Array, Proof> {
    const header = this.#header();
    return backupLines(header, this.#tables.snapshot(header.at));
  }

  async close(): Promise<void> {
    await this.limiter.close();
    await this.store.close();
    await this.#journal?.close();
  }

  #warnIfNearlyFull(): void {
    const { maxBytes, log } = this.#options;
    if (maxBytes === undefined) return;
    for (const share of WARN_AT) {
      if (this.#tables.bytes < share * maxBytes) this.#warned.delete(share);
      else if (!this.#warned.has(share)) {
        this.#warned.add(share);
        const message = `the store has reached ${share * 100} % of its maximum: at the maximum, what adds to it is refused`;
        log.warn(message, { bytes: this.#tables.bytes, maxBytes });
      }
    }
  }
}
