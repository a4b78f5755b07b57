/** `petstore verify`, `backup` and `restore`: the whole store, read, written to one file, and taken back from it. */
import { randomBytes } from 'node:crypto';
import { basename, dirname } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { DamagedError } from './damage.ts';
import { realDisk as disk, sparingDisk } from './disk.ts';
import { beginGeneration, saveSnapshot } from './generation.ts';
import type { Progress } from './lines.ts';
import { takeLock } from './lock.ts';
import { readSnapshot } from './read-snapshot.ts';
import { type Files, recover, recoverStore } from './recovery.ts';
import { type Held, type Proof, prove } from './snapshot.ts';
import { State } from './state.ts';

export interface WorkOptions {
  progress?: Progress;
  /** As for the lock. */
  isAlive?: () => Promise<boolean>;
  /** Rejects if the files that are read are no longer held for us. */
  stillHeld?: () => Promise<void>;
}

/**
 * Reads everything, checks everything, changes nothing. `files`: of a running server, which must hold them. `notices`:
 * what the next start will put right by itself.
 */
export async function verify(
  dir: string,
  files?: Files,
  { progress, stillHeld }: WorkOptions = {},
): Promise<{ proof: Proof; notices: string[] }> {
  const { state, notices } = await recoverStore(disk, dir, { files, progress });
  state.check();
  await stillHeld?.();
  return { proof: prove(state), notices };
}

/** Writes the whole store as one snapshot file. It has its name only when it is whole and durable. */
export async function backup(
  dir: string,
  target: string,
  files?: Files,
  { progress, stillHeld }: WorkOptions = {},
): Promise<Proof> {
  if (disk.list(dirname(target)).includes(basename(target))) throw new Error(`${target} exists`);
  const found = await recoverStore(disk, dir, { files, progress });
  // Where the backup goes anything may stand: the name is one that nobody has chosen.
  const unfinished = `${target}.${randomBytes(8).toString('hex')}.tmp`;
  const generation = files?.last.generation ?? found.highest;
  return saveSnapshot(sparingDisk, target, unfinished, found, generation, stillHeld);
}

/** Fills an empty store from a backup, under a new store id, and proves that all of it came back. */
export async function restore(file: string, dir: string, { progress, isAlive }: WorkOptions = {}): Promise<Proof> {
  const { told, held } = await readBackup(file, progress);
  await disk.makeDirectory(dir);
  const lock = await takeLock(dir, isAlive);
  try {
    const found = await recover(disk, dir);
    const counts = Object.values(found.state.counts());
    if (counts.some((count) => count > 0)) throw new Error(`the store in ${dir} is not empty`);
    const log = await beginGeneration(disk, dir, { ...found, ...held }, randomBytes(8).toString('hex'));
    log.close();
    const { proof } = await verify(dir);
    if (isDeepStrictEqual(proof, told)) return proof;
    throw new DamagedError(dir, 0, 'what was restored is not what the backup tells', undefined, 'Do not use it.');
  } finally {
    lock.release();
  }
}

/** A backup may have any name. What is damaged here is not the store: there is nothing to repair. */
async function readBackup(file: string, progress?: Progress): Promise<{ told: Proof; held: Held }> {
  const held: Held = { state: new State(), store: undefined, seq: 0, batch: 0 };
  try {
    return { told: await readSnapshot(disk, file, held, { progress }), held };
  } catch (error) {
    if (!(error instanceof DamagedError)) throw error;
    throw error.advising('It is the backup that is damaged; nothing was restored.');
  }
}
