/** The engine on a file: all rows in memory, and a write-ahead log. */
import { MemoryLimiter } from '../../access/usage.ts';
import type { Engine, EngineOptions, Metric, Proof } from '../engine.ts';
import { NoStoreError } from '../errors.ts';
import { StoreError } from '../model.ts';
import { type Commit, GroupCommitStore, storeTime } from '../store.ts';
import { Tables } from '../tables.ts';
import { backupLines, prove, readBackup } from './backup.ts';
import { NextFile } from './compaction.ts';
import { Directory } from './directory.ts';
import { type Disk, isMissing, realDisk } from './disk.ts';
import { Journal, newStoreId, readStore } from './journal.ts';
import type { Header } from './log-format.ts';

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
  const tables = new Tables();
  if (options.readOnly) {
    const directory = Directory.openToRead(disk, dir);
    const { header, batch, at } = await readBeside(directory, tables, onProgress);
    tables.now = storeTime(clock, at);
    return new FileEngine(directory, tables, options, { ...header, batch, at });
  }
  const directory = await Directory.open(disk, dir, mustExist, (text) => log.warn(text));
  try {
    const read = await readStore(directory, tables, onProgress);
    if (read === undefined && mustExist) throw new NoStoreError(dir);
    tables.now = storeTime(clock, read?.at);
    const journal = await Journal.open(directory, tables, read, { ...options, ...internals });
    return new FileEngine(directory, tables, options, journal.header, journal);
  } catch (error) {
    directory.release();
    throw error;
  }
}

/** Fills an empty or a new store with the rows of a backup: all of them, or none. Returns what is read from it then. */
export async function restoreInto(
  dir: string,
  lines: AsyncIterable<Uint8Array>,
  disk: Disk = realDisk,
): Promise<Proof> {
  const directory = await Directory.open(disk, dir, false, () => {});
  try {
    const present = new Tables();
    const read = await readStore(directory, present);
    if (!present.isEmpty) throw new Error(`the store in ${dir} is not empty`);
    const { header, snapshot, proof } = await readBackup('the backup', lines);
    const file = read ? read.header.file + 1 : 1;
    // An id of its own: what clients remember of the store that was backed up is not true of this one.
    const next = await NextFile.write(directory, { ...header, store: newStoreId(), file }, snapshot);
    await next.sync();
    await next.finish();
    disk.close(next.fd);
    const restored = await readStore(directory, new Tables());
    if (restored?.proof.digest === proof.digest) return proof;
    throw new Error('the restored content differs from the backup: do not use it');
  } finally {
    directory.release();
  }
}

/** Reads the store while another process, or this one, may be writing it. */
async function readBeside(directory: Directory, tables: Tables, onProgress?: EngineOptions['onProgress']) {
  for (let tries = 1; ; tries++) {
    try {
      const read = await readStore(directory, tables, onProgress);
      if (read === undefined) throw new NoStoreError(directory.path);
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
  /** The header of what was read. */
  readonly #opened: Header;
  /** Undefined: opened to read. */
  readonly #journal: Journal | undefined;

  constructor(directory: Directory, tables: Tables, options: EngineOptions, opened: Header, journal?: Journal) {
    [this.#directory, this.#tables, this.#options] = [directory, tables, options];
    [this.#opened, this.#journal] = [opened, journal];
    const commit: Commit = async (decide) => {
      const changes = decide();
      if (changes.length > 0) await this.#writable().append(changes);
    };
    const { maxBytes, log } = options;
    this.store = new GroupCommitStore({ id: opened.store, tables, commit, maxBytes, log });
    this.limiter = new MemoryLimiter(this.store, options, tables.usage.all());
    this.#journal?.compactIfLong();
  }

  ready(): boolean {
    return this.#journal !== undefined && this.#journal.failure === undefined;
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
    if (!this.#journal) return prove(this.#tables.snapshot(this.store.now())); // it was read just now
    const tables = new Tables();
    await readBeside(this.#directory, tables, this.#options.onProgress);
    return prove(tables.snapshot(this.store.now()));
  }

  async compact(): Promise<string> {
    return this.#writable().compact();
  }

  backup(): AsyncGenerator<Uint8Array, Proof> {
    const at = this.store.now();
    return backupLines({ ...(this.#journal?.header ?? this.#opened), at }, this.#tables.snapshot(at));
  }

  async close(): Promise<void> {
    await this.limiter.close();
    await this.store.close();
    await this.#journal?.close();
  }

  #writable(): Journal {
    if (!this.#journal) throw new StoreError('closed', 'the store was opened to read');
    return this.#journal;
  }
}
