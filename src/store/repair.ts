import { basename } from 'node:path';
import { systemClock } from '../clock.ts';
import type { WorkOptions } from './backup.ts';
import { DamagedError } from './damage.ts';
import { type Disk, realDisk } from './disk.ts';
import { beginGeneration } from './generation.ts';
import { type Progress, readLines } from './lines.ts';
import { takeLock } from './lock.ts';
import { Loss } from './loss.ts';
import { decodeEntry, fileName, filesIn } from './record.ts';
import { recoverStore } from './recovery.ts';
import { type Proof, prove } from './snapshot.ts';
import { MIN_COMPACTION_BYTES } from './store.ts';

interface RepairOptions extends WorkOptions {
  /** One that is simulated cannot be locked. */
  disk?: Disk;
  lock?: boolean;
}

export interface Repaired {
  /** Undefined: there was nothing to repair, and nothing was changed. */
  damage: DamagedError | undefined;
  /** Paths of the copies of what was damaged, of what followed it, and of older files that were left over. */
  kept: string[];
  /** How much of each kind is gone, as far as it can be told. */
  lost: Loss['counts'];
  /** Bytes after the cut, readable or not. */
  lostBytes: number;
  proof: Proof;
}

/**
 * Cuts at the damage. What stands before it becomes a new generation; the damaged file and whatever follows it are
 * copied aside first, and the copies made durable (their names with that of the new log), before anything is removed.
 * Ids that were given after the cut are never given again.
 */
export async function repair(dir: string, options: RepairOptions = {}): Promise<Repaired> {
  const { disk = realDisk, progress, isAlive } = options;
  const lock = options.lock === false ? undefined : await takeLock(dir, isAlive);
  try {
    const { found, damages } = await salvage(disk, dir, progress);
    const [damage] = damages;
    const loss = new Loss(found);
    const report = { damage, kept: [] as string[], lost: loss.counts, lostBytes: 0 };
    if (damage === undefined) return { ...report, proof: prove(found.state) };
    const files = filesIn(disk.list(dir)).filter(({ kind }) => kind !== 'unfinished');
    const snapshotsFirst = files.toSorted((a, b) => b.kind.localeCompare(a.kind));
    for (const { name, kind, generation } of snapshotsFirst) {
      const harmed = damages.find(({ file }) => basename(file) === name);
      const isWhole = kind === 'log' ? found.logs.includes(generation) : generation === found.snapshot;
      if (isWhole && !harmed) continue;
      const path = `${dir}/${name}`;
      const isOlder = generation < found.snapshot;
      if (!isOlder) report.lostBytes += await countLost(disk, path, kind, harmed?.offset ?? 0, loss);
      report.kept.push(await copy(disk, path, freeName(disk, dir, name)));
    }
    // Few logs grow longer than this before they are compacted.
    if (!files.some(({ name }) => name === basename(damage.file))) loss.takeUnreadable('log', MIN_COMPACTION_BYTES);
    loss.settle(systemClock.wall());
    const log = await beginGeneration(disk, dir, found, found.store);
    log.close();
    return { ...report, proof: prove(found.state) };
  } finally {
    lock?.release();
  }
}

type Found = Awaited<ReturnType<typeof recoverStore>>;

/**
 * What can be recovered, and what is damaged: first what a start would name. Beside a damaged snapshot a crash may have
 * left an older one whose logs lead as far, or from which more is left.
 */
async function salvage(
  disk: Disk,
  dir: string,
  progress?: Progress,
): Promise<{ found: Found; damages: DamagedError[] }> {
  const snapshots = filesIn(disk.list(dir)).filter(({ kind }) => kind === 'snapshot');
  const newestFirst = snapshots.map(({ generation }) => generation).sort((a, b) => b - a);
  const damages: DamagedError[] = [];
  let best: Found | undefined;
  for (const snapshot of newestFirst.length > 0 ? newestFirst : [0]) {
    const before = damages.length;
    const onDamage = (error: DamagedError) => void damages.push(error);
    const found = await recoverStore(disk, dir, { snapshot, onDamage, progress }).catch((error) => {
      if (!(error instanceof DamagedError)) throw error;
      damages.push(error);
      return undefined;
    });
    if (found && (!best || found.seq >= best.seq || rowsIn(found) > rowsIn(best))) best = found;
    const isOfSnapshot = ({ file }: DamagedError) => basename(file) === fileName('snapshot', snapshot);
    if (!damages.slice(before).some(isOfSnapshot)) break;
  }
  if (!best) throw damages[0];
  return { found: best, damages };
}

function rowsIn({ state }: Found): number {
  return Object.values(state.counts()).reduce((sum, count) => sum + count, 0);
}

/** Gives the bytes after the cut. */
async function countLost(disk: Disk, path: string, kind: string, from: number, loss: Loss): Promise<number> {
  const size = await readLines(disk, path, (line) => {
    if (line.offset < from) return;
    if (!line.isGood) loss.takeUnreadable(kind, line.bytes.length);
    else if (kind === 'log') loss.takeRecord(decodeEntry(line.bytes).operation);
    else loss.takeLine(JSON.parse(line.bytes.toString()));
  });
  return size - from;
}

function freeName(disk: Disk, dir: string, name: string): string {
  const names = disk.list(dir);
  let free = `${name}.damaged`;
  for (let number = 2; names.includes(free); number++) free = `${name}.damaged-${number}`;
  return `${dir}/${free}`;
}

/** Durable but for its name. */
async function copy(disk: Disk, from: string, to: string): Promise<string> {
  await disk.copyFile(from, to);
  const fd = await disk.openToWrite(to);
  try {
    await disk.sync(fd);
    return to;
  } finally {
    disk.close(fd);
  }
}
