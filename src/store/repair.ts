import { basename } from 'node:path';
import { NoStoreError, type WorkOptions } from './backup.ts';
import { DamagedError } from './damage.ts';
import { type Disk, realDisk } from './disk.ts';
import { beginGeneration } from './generation.ts';
import { fileName, generationOf } from './header.ts';
import { readLines } from './lines.ts';
import { takeLock } from './lock.ts';
import type { Operation } from './model.ts';
import { decodeEntry, type End, isSealed } from './record.ts';
import { type Recovered, recover, replay } from './recovery.ts';
import { type Proof, prove } from './snapshot.ts';
import type { State } from './state.ts';

const COPY_BYTES = 1024 * 1024;

interface Repaired {
  /** Undefined: there was nothing to repair, and nothing was changed. */
  damage?: DamagedError;
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
export async function repair(dir: string, options: WorkOptions = {}): Promise<Repaired> {
  const { disk = realDisk, progress } = options;
  const lock = options.lock === false ? undefined : await takeLock(dir, options.isAlive ?? (async () => false));
  try {
    const damage = await findDamage(async () => {
      const { store, state } = await recover(disk, dir, {}, progress);
      if (store === undefined) throw new NoStoreError(dir);
      return state;
    });
    if (!(damage instanceof DamagedError)) return { kept: [], lost: new Map(), lostBytes: 0, proof: prove(damage) };
    const found = await salvage(disk, dir, damage);
    const report: Repaired = { damage, kept: [], lost: new Map(), lostBytes: 0, proof: prove(found.state) };
    for (const name of found.leftovers) await setAside(disk, dir, name, damage, found.state, report);
    report.proof = prove(found.state);
    found.leftovers = disk.list(dir).filter((name) => isOurs(name) && !isReplaced(found, name));
    const log = await beginGeneration(disk, dir, found, found.store!);
    log.close();
    return report;
  } finally {
    lock?.release();
  }
}

async function findDamage(read: () => Promise<State>): Promise<State | DamagedError> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof DamagedError) return error;
    throw error;
  }
}

/** What stands before the damage. `leftovers`: the names of the damaged file and of all that follow it. */
async function salvage(disk: Disk, dir: string, damage: DamagedError): Promise<Recovered> {
  const names = disk.list(dir).filter(isOurs).sort();
  const snapshots = names.map((name) => generationOf('snapshot', name)).filter((found) => found !== undefined);
  const newest = Math.max(...snapshots);
  if (snapshots.length === 0) throw damage; // logs alone do not say what they follow
  const found = await replay(disk, dir, newest, { onDamage: () => {} });
  const damaged = basename(damage.file);
  found.leftovers = names.filter((name) => {
    const log = generationOf('log', name);
    return name === damaged || (log !== undefined && log >= newest && !found.logs.includes(log));
  });
  found.highest = Math.max(...names.map((name) => generationOf('log', name) ?? generationOf('snapshot', name) ?? 0));
  return found;
}

function isOurs(name: string): boolean {
  return (generationOf('log', name) ?? generationOf('snapshot', name)) !== undefined;
}

/** Whether the new generation stands for this file, and beginGeneration removes it by itself. */
function isReplaced(found: Recovered, name: string): boolean {
  return name === fileName('snapshot', found.snapshot) || found.logs.some((log) => name === fileName('log', log));
}

async function setAside(
  disk: Disk,
  dir: string,
  name: string,
  damage: DamagedError,
  state: State,
  report: Repaired,
): Promise<void> {
  const path = `${dir}/${name}`;
  const fd = disk.openToRead(path);
  try {
    const size = disk.size(fd);
    const from = name === basename(damage.file) ? damage.offset : 0;
    report.lostBytes += size - from;
    for (const { bytes, start, end, offset, isWhole } of readLines(disk, fd, size)) {
      if (offset < from || !isWhole || !isSealed(bytes, start, end)) continue;
      const { operation } = decodeEntry(bytes.toString('utf8', start, end));
      if (!operation?.op) continue; // a header, or a line of a snapshot
      report.lost.set(operation.op, (report.lost.get(operation.op) ?? 0) + 1);
      passIds(state, operation);
    }
    report.kept.push(await copy(disk, fd, size, freeName(disk, dir, name)));
  } finally {
    disk.close(fd);
  }
}

/** Somebody may know these ids: they are not given again. */
function passIds(state: State, operation: Operation | End): void {
  const passPet = (id: number) => {
    state.nextPetId = Math.max(state.nextPetId, id + 1);
  };
  if (operation.op === 'addPet') passPet(operation.pet.id);
  if (operation.op === 'seed') for (const pet of operation.pets) passPet(pet.id);
  if (operation.op === 'beginImport') passPet(operation.first + operation.count - 1);
  if (operation.op === 'placeOrder') state.nextOrderId = Math.max(state.nextOrderId, operation.order.id + 1);
}

function freeName(disk: Disk, dir: string, name: string): string {
  const names = new Set(disk.list(dir));
  for (let number = 1; ; number++) {
    const free = number === 1 ? `${name}.damaged` : `${name}.damaged-${number}`;
    if (!names.has(free)) return `${dir}/${free}`;
  }
}

async function copy(disk: Disk, from: number, size: number, path: string): Promise<string> {
  const fd = await disk.create(path);
  try {
    const bytes = Buffer.alloc(COPY_BYTES);
    for (let position = 0; position < size; ) {
      const count = disk.read(from, bytes, position);
      await disk.write(fd, bytes.subarray(0, count), position);
      position += count;
    }
    await disk.sync(fd);
    return path;
  } finally {
    disk.close(fd);
  }
}
