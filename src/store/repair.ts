import { basename } from 'node:path';
import type { WorkOptions } from './backup.ts';
import type { DamagedError } from './damage.ts';
import { type Disk, realDisk } from './disk.ts';
import { beginGeneration } from './generation.ts';
import { readLines } from './lines.ts';
import { takeLock } from './lock.ts';
import type { Operation } from './model.ts';
import { decodeEntry, type End, filesIn } from './record.ts';
import { recoverStore } from './recovery.ts';
import { type Proof, prove } from './snapshot.ts';
import type { State } from './state.ts';

interface RepairOptions extends WorkOptions {
  /** One that is simulated cannot be locked. */
  disk?: Disk;
  lock?: boolean;
}

interface Repaired {
  /** Undefined: there was nothing to repair, and nothing was changed. */
  damage: DamagedError | undefined;
  /** Paths of the copies of what was damaged, and of what followed it. */
  kept: string[];
  /** Records that stand after the cut and could still be read: how many of each kind are gone. */
  lost: Map<string, number>;
  /** Bytes after the cut, readable or not. */
  lostBytes: number;
  proof: Proof;
}

/**
 * Cuts at the damage. What stands before it becomes a new generation; the damaged file and whatever follows it are
 * copied aside first, and the copies made durable (their names with that of the new log), before anything is removed.
 * Ids that can be read after the cut are never given again.
 */
export async function repair(dir: string, options: RepairOptions = {}): Promise<Repaired> {
  const { disk = realDisk, progress, isAlive } = options;
  const lock = options.lock === false ? undefined : await takeLock(dir, isAlive);
  try {
    const damages: DamagedError[] = [];
    const found = await recoverStore(disk, dir, { onDamage: (error) => damages.push(error), progress });
    const [damage] = damages;
    const report = { damage, kept: [] as string[], lost: new Map<string, number>(), lostBytes: 0 };
    if (damage === undefined) return { ...report, proof: prove(found.state) };
    for (const { name, kind, generation } of filesIn(disk.list(dir))) {
      const isDamaged = name === basename(damage.file);
      const follows = kind === 'log' && generation >= found.snapshot && !found.logs.includes(generation);
      if (!isDamaged && !follows) continue;
      const path = `${dir}/${name}`;
      report.lostBytes += await countLost(disk, path, isDamaged ? damage.offset : 0, found.state, report.lost);
      report.kept.push(await copy(disk, path, freeName(disk, dir, name)));
    }
    const log = await beginGeneration(disk, dir, found, found.store);
    log.close();
    return { ...report, proof: prove(found.state) };
  } finally {
    lock?.release();
  }
}

/** Gives the bytes after the cut. Somebody may know the ids that stand there: they are not given again. */
async function countLost(
  disk: Disk,
  path: string,
  from: number,
  { counters }: State,
  lost: Map<string, number>,
): Promise<number> {
  const size = await readLines(disk, path, (line) => {
    if (line.offset < from || !line.isGood) return;
    const { operation } = decodeEntry(line.bytes);
    if (!operation.op) return; // a header, or a line of a snapshot
    lost.set(operation.op, (lost.get(operation.op) ?? 0) + 1);
    counters.nextPetId = Math.max(counters.nextPetId, 1 + lastPetId(operation));
    if (operation.op === 'placeOrder') counters.nextOrderId = Math.max(counters.nextOrderId, operation.order.id + 1);
  });
  return size - from;
}

function lastPetId(operation: Operation | End): number {
  if (operation.op === 'addPet') return operation.pet.id;
  if (operation.op === 'seed') return operation.pets.at(-1)?.id ?? 0;
  return operation.op === 'endImport' ? operation.first + operation.count - 1 : 0;
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
