/** The engine on a file: all rows in memory, and a write-ahead log. */
import { MemoryLimiter } from '../../access/usage.ts';
import type { Engine, EngineOptions, Metric, Proof } from '../engine.ts';
import { NoStoreError } from '../errors.ts';
import { StoreError, TABLE_NAMES } from '../model.ts';
import { GroupCommitStore, storeTime } from '../store.ts';
import { Tables } from '../tables.ts';
import { backupLines, prove, readBackup } from './backup.ts';
import { NextFile } from './compaction.ts';
import { Directory } from './directory.ts';
import { type Disk, realDisk } from './disk.ts';
import { Journal, newStoreId, readStore, refuseLaterFile } from './journal.ts';
import type { Header } from './log-format.ts';

/** For tests: the simulated disk, and compaction of small files. */
export interface Internals {
  readonly disk?: Disk;
  readonly minCompactionBytes?: number;
}

export async function openFileStore(dir: string, options: EngineOptions, internals: Internals = {}): Promise<Engine> {
  const { clock, log, readOnly = false, onProgress } = options;
  const { disk = realDisk } = internals;
  const mustExist = options.mustExist || readOnly;
  const warn = (text: string) => log.warn(text);
  const directory = readOnly ? Directory.openToRead(disk, dir) : await Directory.open(disk, dir, mustExist, warn);
  try {
    const tables = new Tables();
    const read = await readStore(directory, tables, onProgress);
    if (read === undefined && mustExist) throw new NoStoreError(dir);
    tables.now = storeTime(clock, read?.header.at);
    const journal = readOnly ? undefined : await Journal.open(directory, tables, read, { ...options, ...internals });
    const header = () => journal?.header ?? read!.header;
    return engineOn(directory, tables, options, header, journal);
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
    if (TABLE_NAMES.some((name) => present[name].size > 0))
      throw new Error(`the store in ${dir} is not empty: name another directory with --data`);
    const { header, snapshot, proof } = await readBackup('the backup', lines);
    if (read) await refuseLaterFile(directory, read);
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

/** `journal`: undefined if the store was opened to read. */
function engineOn(
  directory: Directory,
  tables: Tables,
  options: EngineOptions,
  header: () => Header,
  journal?: Journal,
): Engine {
  const { maxBytes, log, onProgress } = options;
  const writable = (): Journal => {
    if (!journal) throw new StoreError('closed', 'the store was opened to read');
    return journal;
  };
  const store = new GroupCommitStore({
    id: header().store,
    tables,
    maxBytes,
    log,
    async commit(decide) {
      const changes = decide();
      if (changes.length > 0) await writable().append(changes);
    },
  });
  const limiter = new MemoryLimiter(store, options, tables.usage.all());
  journal?.compactIfLong();
  return {
    store,
    limiter,
    ready: () => journal !== undefined && journal.failure === undefined,
    metrics: () => metricsOf(tables, maxBytes, journal),
    /** Reads the file, also while it is written: it is verified up to where it ended a moment ago. */
    async verify() {
      if (!journal) return prove(tables.snapshot(store.now())); // it was read just now
      const again = new Tables();
      await readStore(directory, again, onProgress);
      return prove(again.snapshot(store.now()));
    },
    compact: async () => writable().compact(),
    backup: () => backupLines({ ...header(), at: store.now() }, tables.snapshot(store.now())),
    async close() {
      await limiter.close();
      await store.close();
      await journal?.close();
    },
  };
}

function metricsOf(tables: Tables, maxBytes = 0, journal?: Journal): Metric[] {
  const { length = 0, compactions = 0, failedCompactions = 0 } = journal ?? {};
  const metric = (type: Metric['type'], name: string, help: string, value: number): Metric => {
    return { name: `petstore_${name}`, help, type, value };
  };
  return [
    metric('gauge', 'store_bytes', 'Length that the file would have if it was compacted now.', tables.bytes),
    metric('gauge', 'store_max_bytes', 'The most that it may have; 0: no maximum.', maxBytes),
    metric('gauge', 'store_file_bytes', 'Length of the file.', length),
    metric('counter', 'compactions_total', 'Compactions since the start.', compactions),
    metric('counter', 'compactions_failed_total', 'Compactions that failed and are tried again.', failedCompactions),
  ];
}
