import { randomBytes } from 'node:crypto';
import { basename, dirname } from 'node:path';
import { DamagedError } from './damage.ts';
import { type Disk, realDisk } from './disk.ts';
import { adoptSnapshot, beginGeneration, makeSnapshot, removeFiles } from './generation.ts';
import { fileName } from './header.ts';
import type { Progress } from './lines.ts';
import { takeLock } from './lock.ts';
import { checkSnapshot, readSnapshot } from './read-snapshot.ts';
import { type Recovered, recover, replay } from './recovery.ts';
import { type Proof, prove } from './snapshot.ts';

/** Which files hold the store, and how much of the last one counts: as a running server gives them out. */
export interface Files {
  snapshot: number;
  last: { generation: number; length: number };
}

export interface WorkOptions {
  disk?: Disk;
  progress?: Progress;
  /** See FileStoreOptions. */
  isAlive?: () => Promise<boolean>;
  lock?: boolean;
}

interface Verified {
  proof: Proof;
  /** What the next start will put right by itself. */
  notices: string[];
}

function readFiles(disk: Disk, dir: string, files?: Files, progress?: Progress): Promise<Recovered> {
  return files ? replay(disk, dir, files.snapshot, files, progress) : recover(disk, dir, {}, progress);
}

/** Reads everything, checks everything, changes nothing. `files`: of a running server, which must hold them. */
export async function verify(
  dir: string,
  files?: Files,
  { disk = realDisk, progress }: WorkOptions = {},
): Promise<Verified> {
  const found = await readFiles(disk, dir, files, progress);
  if (found.store === undefined) throw new NoStoreError(dir);
  await checkSnapshot(disk, `${dir}/${fileName('snapshot', found.snapshot)}`);
  found.state.check();
  return { proof: prove(found.state), notices: found.notices };
}

/** Writes the whole store as one snapshot file. It has its name only when it is whole and durable. */
export async function backup(
  dir: string,
  target: string,
  files?: Files,
  { disk = realDisk, progress }: WorkOptions = {},
): Promise<Proof> {
  const into = dirname(target);
  if (disk.list(into).includes(basename(target))) throw new Error(`${target} exists`);
  const found = await readFiles(disk, dir, files, progress);
  const { state, store, seq, batch } = found;
  if (store === undefined) throw new NoStoreError(dir);
  const about = { store, generation: files?.last.generation ?? found.highest, seq, batch };
  // Where the backup goes anything may stand: the name is one that nobody has chosen.
  const unfinished = `${target}.${randomBytes(8).toString('hex')}.tmp`;
  try {
    const proof = await makeSnapshot(disk, unfinished, state, about);
    await adoptSnapshot(disk, unfinished, target);
    return proof;
  } catch (error) {
    await removeFiles(disk, into, [basename(unfinished)]);
    throw error;
  }
}

/** Fills an empty store from a backup, under a new store id, and proves that all of it came back. */
export async function restore(file: string, dir: string, options: WorkOptions = {}): Promise<Proof> {
  const { disk = realDisk, progress } = options;
  const { told, state, seq, batch } = await readBackup(disk, file, progress);
  await disk.makeDirectory(dir);
  const lock = options.lock === false ? undefined : await takeLock(dir, options.isAlive ?? (async () => false));
  try {
    const found = await recover(disk, dir);
    const { pets, orders, categories, keys } = found.state.counts();
    if (pets + orders + categories + keys > 0) throw new NotEmptyError(dir);
    const store = randomBytes(8).toString('hex');
    const log = await beginGeneration(disk, dir, { ...found, state, seq, batch }, store);
    log.close();
    const { proof } = await verify(dir, undefined, { disk });
    if (!isSame(proof, told)) {
      throw new DamagedError(dir, 0, 'what was restored is not what the backup tells', undefined, 'Do not use it.');
    }
    return proof;
  } finally {
    lock?.release();
  }
}

/** What is damaged here is not the store: there is nothing to repair. */
async function readBackup(disk: Disk, file: string, progress?: Progress) {
  try {
    return { told: await checkSnapshot(disk, file), ...(await readSnapshot(disk, file, progress)) };
  } catch (error) {
    if (!(error instanceof DamagedError)) throw error;
    const advice = 'It is the backup that is damaged; nothing was restored.';
    throw new DamagedError(file, error.offset, error.what, error.sequence, advice);
  }
}

export function isSame(a: Proof, b: Proof): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

export class NotEmptyError extends Error {
  constructor(dir: string) {
    super(`the store in ${dir} is not empty`);
  }
}

export class NoStoreError extends Error {
  constructor(dir: string) {
    super(`there is no store in ${dir}`);
  }
}
