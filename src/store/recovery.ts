/**
 * From files to state. Reads and changes nothing; what is found unclean is written to a new generation by
 * generation.ts before anyone is served.
 */
import { BEYOND_REPAIR, DamagedError } from './damage.ts';
import type { Disk } from './disk.ts';
import type { Progress } from './lines.ts';
import type { Operation } from './model.ts';
import { impossible, perform } from './operations.ts';
import { LogReader } from './read-log.ts';
import { readSnapshot } from './read-snapshot.ts';
import { type End, fileName, filesIn } from './record.ts';
import type { Held } from './snapshot.ts';
import { State } from './state.ts';

export interface Recovered extends Held {
  /** The generation of the snapshot, and of each log that follows it. */
  snapshot: number;
  logs: number[];
  /** The good part of the last log; without its closing record, if it has one. */
  length: number;
  /** The last log was closed, and no crash has left anything else: it may be written on. */
  isClean: boolean;
  /** The highest generation that any name speaks of. */
  highest: number;
  /** How many animals came with imports that never came to their end; they are dropped. */
  unended: number;
  /** What was found and put right, for the operator to read. */
  notices: string[];
}

/** Which files hold the store, and how much of the last one counts: as a running server gives them out. */
export interface Files {
  snapshot: number;
  last: { generation: number; length: number };
}

/** What to read, if not all there is. */
interface Extent {
  /** The chain of logs as it was before this generation began. */
  before?: number;
  /** Nothing but these. */
  files?: Files;
  /** Not from the newest snapshot but from this one. */
  snapshot?: number;
  /** Damage ends the reading, and what stands before it is recovered; without this, it is thrown. */
  onDamage?: (error: DamagedError) => void;
  progress?: Progress;
}

/** Recovers the store in a directory. */
export async function recover(disk: Disk, dir: string, extent: Extent = {}): Promise<Recovered> {
  const { before = Number.POSITIVE_INFINITY, files, onDamage, progress } = extent;
  const all = filesIn(disk.list(dir));
  const generations = (kind: string) => all.filter((file) => file.kind === kind).map((file) => file.generation);
  const logs = generations('log').filter((log) => log < before);
  const snapshots = generations('snapshot').filter((one) => one < before);
  const snapshot = files?.snapshot ?? extent.snapshot ?? Math.max(0, ...snapshots);
  const highest = Math.max(0, ...all.map((file) => file.generation));
  const nothing = { store: undefined, seq: 0, batch: 0, logs: [], length: 0, isClean: false };
  const found: Recovered = { ...nothing, state: new State(), snapshot, highest, unended: 0, notices: [] };
  let isClosed = false;
  try {
    if (snapshot > 0) {
      const path = `${dir}/${fileName('snapshot', snapshot)}`;
      await readSnapshot(disk, path, found, { generation: snapshot, progress });
      isClosed = await readChain(disk, dir, found, logs, extent);
    }
    if (!files) await checkOthers(disk, dir, found, logs);
  } catch (error) {
    if (!(error instanceof DamagedError)) throw error;
    const isLast = snapshots.every((one) => one >= snapshot);
    if (found.store === undefined) throw isLast ? error.advising(BEYOND_REPAIR) : error;
    if (!onDamage) throw error;
    onDamage(error);
  }
  for (const { count } of found.state.imports.values()) found.unended += count;
  found.state.imports.clear();
  found.isClean = isClosed && all.length === 1 + found.logs.length;
  return found;
}

/** The same, where there must be a store. */
export async function recoverStore(disk: Disk, dir: string, extent: Extent): Promise<Recovered & { store: string }> {
  const found = await recover(disk, dir, extent);
  if (found.store === undefined) throw new Error(`there is no store in ${dir}`);
  return { ...found, store: found.store };
}

/** Each log that was closed names the next. Whether the last was closed for good. */
async function readChain(
  disk: Disk,
  dir: string,
  found: Recovered,
  logs: number[],
  { before = Number.POSITIVE_INFINITY, files, progress }: Extent,
): Promise<boolean> {
  const { state, notices } = found;
  const apply = (operation: Operation | End) => {
    if (operation.op === 'end') {
      state.dropExpired(operation.at);
      return undefined;
    }
    const why = impossible(operation, state);
    if (why !== undefined) return `the record contradicts what stands before: ${why}`;
    perform(operation, state);
    return undefined;
  };
  for (let generation = found.snapshot; ; ) {
    const log = new LogReader(dir, generation, found);
    if (!logs.includes(generation)) throw new DamagedError(log.path, 0, 'the file is missing');
    const length = files?.last.generation === generation ? files.last.length : undefined;
    await log.read(disk, apply, { length, progress });
    if (log.isBlank) throw new DamagedError(log.path, 0, 'the log has no header');
    found.logs.push(generation);
    found.length = log.length;
    const { torn, closed } = log;
    if (torn) notices.push(`${log.path}, offset ${torn.offset}: ${torn.what}; a crash cut this off, and it is dropped`);
    const next = closed?.generation;
    if (length !== undefined || next === undefined || next >= before) return closed?.how === 'close';
    generation = next;
  }
}

/** A log that nothing leads to was made for a generation that never began: nothing may have been written to it. */
async function checkOthers(disk: Disk, dir: string, { store, seq, batch, logs, length }: Recovered, all: number[]) {
  const last = logs.at(-1) ?? 0;
  for (const generation of all.filter((log) => log > last)) {
    const name = fileName('log', generation);
    try {
      await new LogReader(dir, generation, { store, seq, batch }).read(disk, () => 'nothing leads to this log');
    } catch (error) {
      if (!(error instanceof DamagedError)) throw error;
      // What stands in it was led to once: by a snapshot that is gone, or by the end of the log before.
      const missing = `the file is missing, its log is not empty`;
      if (last === 0) throw new DamagedError(`${dir}/${fileName('snapshot', generation)}`, 0, missing);
      if (error.sequence === undefined) throw error;
      throw new DamagedError(
        `${dir}/${fileName('log', last)}`,
        length,
        `the log ends here, but ${name} goes on`,
        seq + 1,
      );
    }
  }
}
