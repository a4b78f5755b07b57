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

/** How long a log that is gone may have been: it is compacted before it is longer, or than its snapshot. */
const MISSING_LOG_BYTES = 64 * 1024 * 1024;

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
    const { found, damage } = await salvage(disk, dir, progress);
    const loss = new Loss(found);
    const report = { damage, kept: [] as string[], lost: loss.counts, lostBytes: 0 };
    if (damage === undefined) return { ...report, proof: prove(found.state) };
    const files = filesIn(disk.list(dir)).filter(({ kind }) => kind !== 'unfinished');
    const snapshotsFirst = files.toSorted((a, b) => b.kind.localeCompare(a.kind));
    for (const { name, kind, generation } of snapshotsFirst) {
      const isDamaged = name === basename(damage.file);
      const follows = kind === 'log' && generation >= found.snapshot && !found.logs.includes(generation);
      const isOlder = generation < found.snapshot;
      if (!isDamaged && !follows && !isOlder) continue;
      const path = `${dir}/${name}`;
      if (!isOlder) report.lostBytes += await countLost(disk, path, kind, isDamaged ? damage.offset : 0, loss);
      report.kept.push(await copy(disk, path, freeName(disk, dir, name)));
    }
    if (!files.some(({ name }) => name === basename(damage.file))) loss.takeUnreadable('log', MISSING_LOG_BYTES);
    loss.settle(systemClock.wall());
    const log = await beginGeneration(disk, dir, found, found.store);
    log.close();
    return { ...report, proof: prove(found.state) };
  } finally {
    lock?.release();
  }
}

/**
 * What can be recovered, and what is damaged. Beside a damaged snapshot a crash may have left an older one whose logs
 * lead as far.
 */
async function salvage(disk: Disk, dir: string, progress?: Progress) {
  const snapshots = filesIn(disk.list(dir)).filter(({ kind }) => kind === 'snapshot');
  const newestFirst = snapshots.map(({ generation }) => generation).sort((a, b) => b - a);
  let best: Awaited<ReturnType<typeof recoverStore>> | undefined;
  let first: DamagedError | undefined;
  for (const snapshot of newestFirst.length > 0 ? newestFirst : [0]) {
    let damage: DamagedError | undefined;
    const onDamage = (error: DamagedError) => {
      damage = error;
    };
    const found = await recoverStore(disk, dir, { snapshot, onDamage, progress }).catch((error) => {
      if (!(error instanceof DamagedError)) throw error;
      damage = error;
      return undefined;
    });
    first ??= damage;
    if (found && (!best || found.seq >= best.seq)) best = found;
    if (basename(damage?.file ?? '') !== fileName('snapshot', snapshot)) break;
  }
  if (!best) throw first;
  return { found: best, damage: first };
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
