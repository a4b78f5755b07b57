/**
 * From files to state. Reads and changes nothing; what is found unclean is written to a new generation by
 * generation.ts before anyone is served.
 */
import { AheadView } from './ahead.ts';
import { DamagedError } from './damage.ts';
import type { Disk } from './disk.ts';
import { fileName, generationOf } from './header.ts';
import type { Progress } from './lines.ts';
import { type LogEnd, readLog } from './read-log.ts';
import { readSnapshot } from './read-snapshot.ts';
import type { Entry } from './record.ts';
import { impossible } from './rules.ts';
import type { Position } from './snapshot.ts';
import { State } from './state.ts';

export interface Recovered {
  state: State;
  /** Undefined: there is no store here yet. */
  store: string | undefined;
  seq: number;
  batch: number;
  /** The generation of the snapshot, and of each log that follows it. */
  snapshot: number;
  logs: number[];
  /** The good part of the last log; without its closing record, if it has one. */
  length: number;
  snapshotBytes: number;
  /** The last log was closed, and no crash has left anything else: it may be written on. */
  isClean: boolean;
  /** Names of files that no longer count. */
  leftovers: string[];
  /** The highest generation that any name speaks of. */
  highest: number;
  /** What was found and put right, for the operator to read. */
  notices: string[];
}

/** Recovers the store in a directory. */
export async function recover(disk: Disk, dir: string, extent: Extent = {}, progress?: Progress): Promise<Recovered> {
  const { before = Number.POSITIVE_INFINITY } = extent;
  const names = disk.list(dir).sort();
  const generations = (kind: 'log' | 'snapshot') =>
    names.map((name) => generationOf(kind, name)).filter((found) => found !== undefined);
  const snapshots = generations('snapshot').filter((found) => found < before);
  const temporary = names.filter((name) => name.endsWith('.jsonl.tmp'));
  const numbers = temporary.map((name) => generationOf('snapshot', name.slice(0, -4)) ?? 0);
  const highest = Math.max(0, ...generations('log'), ...generations('snapshot'), ...numbers);
  if (snapshots.length === 0) return nothingYet(disk, dir, generations('log'), temporary, highest);
  const newest = Math.max(...snapshots);
  const recovered = await replay(disk, dir, newest, extent, progress);
  const used = new Set([fileName('snapshot', newest), ...recovered.logs.map((log) => fileName('log', log))]);
  const last = recovered.logs[recovered.logs.length - 1];
  for (const log of generations('log')) {
    if (log > newest && log < before && !recovered.logs.includes(log))
      await checkBlank(disk, dir, log, recovered, last);
  }
  recovered.leftovers = names.filter((name) => {
    const isOurs = generationOf('log', name) ?? generationOf('snapshot', name) ?? temporary.includes(name);
    return isOurs && !used.has(name);
  });
  recovered.highest = highest;
  recovered.isClean &&= recovered.leftovers.length === 0;
  return recovered;
}

/** How far to read, if not to the end of the newest log. */
export interface Extent {
  /** The chain of logs as it was before this generation began. */
  before?: number;
  /** How much of the last log counts: a running server may have written on. */
  last?: { generation: number; length: number };
  /** Damage ends the reading here, and what stands before it is kept: for repair. */
  onDamage?: (error: DamagedError) => void;
}

/** Reads a snapshot and the logs that follow it. */
export async function replay(
  disk: Disk,
  dir: string,
  generation: number,
  extent: Extent = {},
  progress?: Progress,
): Promise<Recovered> {
  const snapshotPath = `${dir}/${fileName('snapshot', generation)}`;
  const snapshot = await readSnapshot(disk, snapshotPath, progress, extent.onDamage);
  const { state, store } = snapshot;
  const chain = { logs: [] as number[], notices: [] as string[], end: startOf(snapshot) };
  try {
    if (snapshot.isWhole) await readChain(disk, dir, generation, snapshot, chain, extent, progress);
  } catch (error) {
    if (!extent.onDamage || !(error instanceof DamagedError)) throw error;
    extent.onDamage(error);
  }
  const { logs, notices, end } = chain;
  for (const first of state.imports.keys()) notices.push(`the import at ${first} never came to its end and is dropped`);
  state.dropImports();
  const isClean = end.closed?.how === 'close';
  return {
    state,
    store,
    seq: isClean ? end.seq - 1 : end.seq, // the closing record is cut away
    batch: isClean ? end.batch - 1 : end.batch,
    snapshot: generation,
    logs,
    length: end.length,
    snapshotBytes: sizeOf(disk, snapshotPath),
    isClean,
    leftovers: [],
    highest: generation,
    notices,
  };
}

function startOf({ seq, batch }: Position): LogEnd {
  return { seq, batch, left: 0, records: 0, length: 0, isBlank: true };
}

/** Each log that was closed names the next. What was read stands in `chain` also when this throws. */
async function readChain(
  disk: Disk,
  dir: string,
  generation: number,
  { state, store }: { state: State; store: string },
  chain: { logs: number[]; notices: string[]; end: LogEnd },
  { before = Number.POSITIVE_INFINITY, last }: Extent,
  progress?: Progress,
): Promise<void> {
  const ahead = new AheadView(state);
  const names = new Set(disk.list(dir));
  for (let next: number | undefined = generation; next !== undefined && next < before; ) {
    const path = `${dir}/${fileName('log', next)}`;
    if (!names.has(fileName('log', next))) throw new DamagedError(path, 0, 'the file is missing');
    const apply = (entry: Entry, offset: number) => applyEntry(state, ahead, entry, path, offset);
    const isLast: boolean = last?.generation === next;
    chain.end = { ...startOf(chain.end) };
    await readLog(disk, path, store, chain.end, apply, isLast ? last?.length : undefined, progress);
    if (chain.end.isBlank) throw new DamagedError(path, 0, 'the log has no header');
    const { torn, closed } = chain.end;
    chain.logs.push(next);
    if (torn)
      chain.notices.push(`${path}, offset ${torn.offset}: ${torn.what}; a crash cut this off, and it is dropped`);
    next = isLast ? undefined : closed?.generation;
  }
}

function applyEntry(state: State, ahead: AheadView, entry: Entry, path: string, offset: number): void {
  const { operation, seq } = entry;
  if (operation.op === 'end') {
    state.onces.dropExpired(operation.at);
    return;
  }
  const why = impossible(ahead, operation);
  if (why !== undefined) throw new DamagedError(path, offset, `the record contradicts what stands before: ${why}`, seq);
  state.apply(operation);
}

/** A log was made for a generation that never began: nothing may have been written to it. */
async function checkBlank(
  disk: Disk,
  dir: string,
  generation: number,
  recovered: Recovered,
  last: number,
): Promise<void> {
  const path = `${dir}/${fileName('log', generation)}`;
  const refuse = (entry: Entry, offset: number) => {
    throw new DamagedError(
      path,
      offset,
      `a record in a log that nothing leads to: ${fileName('log', last)} goes on`,
      entry.seq,
    );
  };
  if (generation > last) await readLog(disk, path, recovered.store!, startOf(recovered), refuse);
}

/** No snapshot: either nothing at all, or a first generation that never came to be. */
async function nothingYet(
  disk: Disk,
  dir: string,
  logs: number[],
  temporary: string[],
  highest: number,
): Promise<Recovered> {
  for (const generation of logs) {
    const path = `${dir}/${fileName('log', generation)}`;
    const missing = `${dir}/${fileName('snapshot', generation)}`;
    const refuse = (entry: Entry) => {
      throw new DamagedError(missing, 0, 'the file is missing, and there are records after it', entry.seq);
    };
    await readLog(disk, path, storeOf(disk, path), startOf({ seq: 0, batch: 0 }), refuse);
  }
  const leftovers = [...logs.map((generation) => fileName('log', generation)), ...temporary];
  const none = { seq: 0, batch: 0, snapshot: 0, logs: [], length: 0, snapshotBytes: 0, isClean: false, notices: [] };
  return { ...none, state: new State(), store: undefined, leftovers, highest };
}

/** The store that a header names, whatever it is. */
function storeOf(disk: Disk, path: string): string {
  const fd = disk.openToRead(path);
  try {
    const bytes = Buffer.alloc(SHORT_READ_BYTES);
    const text = bytes.toString('utf8', 0, disk.read(fd, bytes, 0));
    return /"store":"([^"]*)"/.exec(text)?.[1] ?? '';
  } finally {
    disk.close(fd);
  }
}

const SHORT_READ_BYTES = 512;

export function sizeOf(disk: Disk, path: string): number {
  const fd = disk.openToRead(path);
  try {
    return disk.size(fd);
  } finally {
    disk.close(fd);
  }
}
