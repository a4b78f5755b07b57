/** The engine on a file: all rows in memory, and a write-ahead log. */
import { randomBytes } from 'node:crypto';
import { MemoryLimiter } from '../../access/memory-limiter.ts';
import { DamagedError, type Engine, type EngineOptions, type Metric, type Proof } from '../engine.ts';
import { GroupCommitStore, storeTime } from '../group-commit.ts';
import { type Header, type LogFile, readBackup, readLog, snapshotLines } from '../log-format.ts';
import { StoreError, TABLE_NAMES } from '../model.ts';
import { Tables } from '../tables.ts';
import { Directory } from './directory.ts';
import { type Disk, piecesOf, realDisk } from './disk.ts';
import { Journal, type JournalOptions } from './journal.ts';

const MOVE_AWAY =
  'Nothing was changed. Put the file of this store in its place; or remove LOCK, if the file is the right one.';

/** Of a store that has no file yet. */
const newHeader = (at: number): Header => ({ store: randomBytes(12).toString('hex'), batch: 0, at });

/** `internals`, for tests: the simulated disk, and compaction of small files. */
export async function openFileStore(
  dir: string,
  options: EngineOptions,
  { disk = realDisk, ...internals }: { disk?: Disk; minCompactionBytes?: number } = {},
): Promise<Engine> {
  const directory = await Directory.open(disk, dir, options);
  return openEngine(directory, { ...options, ...internals }).catch((error) => {
    directory.release();
    throw error;
  });
}

async function openEngine(directory: Directory, options: EngineOptions & JournalOptions): Promise<Engine> {
  const { clock, log, maxBytes, readOnly, isServing, onBatch, stop } = options;
  const tables = new Tables();
  const read = await readStore(directory, tables, stop);
  tables.now = storeTime(clock, read?.header.at);
  if (read && read.tornBytes > 0) {
    const cause = readOnly ? 'a crash left them, or a server writes them now' : 'a crash left them';
    const what = `the last ${read.tornBytes} bytes are no complete line, and are left out`;
    log.warn(`${directory.file}, offset ${read.length}: ${what}: ${cause}`);
  }
  const journal = new Journal(directory, tables, read?.header ?? newHeader(tables.now()), options);
  if (readOnly) journal.failure = new StoreError('closed', 'the store was opened to read');
  else if (read) await journal.resume(read);
  else await journal.compact();
  const store = new GroupCommitStore({
    tables,
    maxBytes,
    log: isServing ? log : undefined,
    onBatch,
    async commit(decide) {
      const changes = decide();
      if (changes.length > 0) await journal.append(changes);
    },
  });
  const limiter = new MemoryLimiter(store, options, tables.usage.all());
  return {
    store,
    limiter,
    ready: () => journal.failure === undefined,
    metrics: () => metricsOf(tables, maxBytes, journal),
    compact: () => journal.compact(),
    async *backup() {
      return yield* snapshotLines({ ...journal.header, at: tables.now() }, tables.snapshot());
    },
    async close() {
      await limiter.close();
      await store.close();
      await journal.close();
      directory.release();
    },
  };
}

/** Reads the file into empty tables; undefined: there is no store yet. */
export async function readStore(
  directory: Directory,
  tables: Tables,
  stop?: AbortSignal,
): Promise<LogFile | undefined> {
  const { disk, file } = directory;
  const fd = disk.openToRead(file);
  if (fd === undefined) return undefined;
  try {
    const read = await readLog(file, piecesOf(disk, fd, stop), tables);
    const { store = read.header.store } = directory; // where LOCK says nothing, a start writes it anew
    if (store !== read.header.store) throw new DamagedError(file, 'it is of another store than LOCK says', MOVE_AWAY);
    return read;
  } catch (error) {
    throw Object.assign(error as Error, { path: file }); // an error of the disk names no file
  } finally {
    disk.close(fd);
  }
}

/** Fills an empty or a new store with the rows of a backup: all of them, or none. */
export async function restoreInto(
  dir: string,
  lines: AsyncIterable<Uint8Array>,
  disk: Disk = realDisk,
): Promise<Proof> {
  const directory = await Directory.open(disk, dir, {});
  try {
    const present = new Tables();
    const read = await readStore(directory, present);
    const isEmpty = TABLE_NAMES.every((name) => present.of(name).size === 0);
    if (!isEmpty) throw new Error(`the store in ${dir} is not empty: name another directory with --data`);
    const { header, tables, proof } = await readBackup('the backup', lines);
    const { store } = read?.header ?? newHeader(header.at);
    const journal = new Journal(directory, tables, { ...header, store });
    await journal.compact();
    await journal.close();
    return proof;
  } finally {
    directory.release();
  }
}

function metricsOf({ bytes }: Tables, maxBytes = 0, { length, compactions, failedCompactions }: Journal): Metric[] {
  const metrics: [Metric['type'], name: string, help: string, value: number][] = [
    ['gauge', 'store_bytes', 'Length that the file would have if it was compacted now.', bytes],
    ['gauge', 'store_max_bytes', 'The most that it may have; 0: no maximum.', maxBytes],
    ['gauge', 'store_file_bytes', 'Length of the file.', length],
    ['counter', 'compactions_total', 'Compactions since the start.', compactions],
    ['counter', 'compactions_failed_total', 'Compactions that failed and are tried again.', failedCompactions],
  ];
  return metrics.map(([type, name, help, value]) => ({ name: `petstore_${name}`, help, type, value }));
}
