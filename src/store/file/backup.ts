/** Backup and restore: the whole store as one file, and back. */
import { randomBytes } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import type { Proof } from '../model.ts';
import { prove } from '../record.ts';
import { State } from '../state.ts';
import { newStoreId } from './directory.ts';
import { type Disk, realDisk } from './disk.ts';
import { DamagedError, type Header } from './format.ts';
import { claim, type DirectoryOptions, readStore } from './open.ts';
import { type Progress, readFile } from './read.ts';
import { goOnIn, recover, writeWhole } from './rewrite.ts';

/** Writes the whole store as one file, which has its name only when it is whole and durable. */
export async function backup(dir: string, target: string, options: DirectoryOptions = {}): Promise<Proof> {
  const { disk = realDisk } = options;
  if (`${realpathSync(dirname(resolve(target)))}/`.startsWith(`${realpathSync(dir)}/`)) {
    throw new Error(`${target} is inside the data directory`);
  }
  mustBeNew(disk, target);
  const { found, state, proof } = await readStore(dir, options);
  await writeBackup(disk, target, { ...found.header, first: found.batch }, state);
  return proof;
}

export async function writeBackup(disk: Disk, target: string, header: Header, state: State): Promise<void> {
  mustBeNew(disk, target);
  const path = resolve(target);
  // Where it goes anything may stand: the name is one that nobody has chosen.
  const unfinished = `${path}.${randomBytes(8).toString('hex')}.tmp`;
  try {
    await writeWhole(disk, unfinished, header, state);
    await disk.link(unfinished, path); // which takes no name that somebody else has given meanwhile
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') throw new Error(`${target} exists`);
    if (syscall === 'fsync') await disk.unlink(path).catch(() => {}); // it has its name, but perhaps not for good
    throw Object.assign(error as Error, { path: target }); // the disk that has no room is not that of the store
  } finally {
    await disk.unlink(unfinished).catch(() => {});
  }
}

function mustBeNew(disk: Disk, target: string): void {
  const path = resolve(target);
  if (disk.list(dirname(path)).includes(basename(path))) throw new Error(`${target} exists`);
}

/** Fills an empty store from a backup, under a new store id. What it has written was read back, and proven. */
export async function restore(
  backup: string,
  dir: string,
  { disk = realDisk, progress, isAlive }: DirectoryOptions = {},
): Promise<Proof> {
  const state = new State();
  const batch = await readBackup(disk, backup, state, progress);
  const lock = await claim(disk, dir, isAlive);
  try {
    const before = new State();
    const found = await recover(disk, dir, before);
    if (Object.values(before.counts()).some((count) => count > 0)) throw new Error(`the store in ${dir} is not empty`);
    const file = (found?.header.file ?? 0) + 1;
    await goOnIn(disk, dir, { store: newStoreId(), file, first: batch }, state);
    return prove(state);
  } finally {
    lock?.release();
  }
}

/** A backup may have any name. What is damaged here is not the store: there is nothing to repair. */
export async function readBackup(disk: Disk, file: string, state: State, progress?: Progress): Promise<number> {
  const advice = 'It is the backup that is damaged; nothing was restored.';
  try {
    const { batch, torn } = await readFile(disk, file, state, { progress });
    if (torn) throw new DamagedError(file, 0, torn, advice);
    state.check();
    return batch;
  } catch (error) {
    if (error instanceof DamagedError) throw new DamagedError(file, error.offset, error.what, advice);
    throw error;
  }
}
