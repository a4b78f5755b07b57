/** A store in a directory: to be served, or only to be read. */
import { type Clock, systemClock } from '../../clock.ts';
import { MemoryStore } from '../memory.ts';
import type { Proof } from '../model.ts';
import { prove } from '../record.ts';
import { State } from '../state.ts';
import { refuseForeign } from './directory.ts';
import { type Disk, realDisk } from './disk.ts';
import { FileJournal, type FileJournalOptions } from './journal.ts';
import { takeLock } from './lock.ts';
import type { Found, Progress } from './read.ts';
import { recover } from './rewrite.ts';

/** Of everything that is done to a directory. */
export interface DirectoryOptions {
  disk?: Disk;
  /** Whether another process answers for this directory: where there is no flock program, or was none for that one. */
  isAlive?: () => Promise<boolean>;
  /** False on a disk that is simulated, or where the lock is held already. */
  lock?: boolean;
  progress?: Progress;
}

type OpenOptions = Omit<FileJournalOptions, 'lock'> & DirectoryOptions & { clock?: Clock };

/** Takes the lock, recovers what is there, and resolves when it is safe to serve. Closing the store frees the lock. */
export async function openStore(
  dir: string,
  { clock = systemClock, isAlive, disk = realDisk, lock = true, ...options }: OpenOptions = {},
): Promise<{ store: MemoryStore; journal: FileJournal }> {
  const taken = await claim(disk, dir, isAlive, lock);
  try {
    if (taken?.notice) options.onNotice?.(taken.notice);
    const journal = new FileJournal(disk, dir, { ...options, lock: taken });
    return { store: await MemoryStore.open(journal, { clock }), journal };
  } catch (error) {
    taken?.release();
    throw error;
  }
}

/** Makes the directory, and takes the lock. */
export async function claim(disk: Disk, dir: string, isAlive?: () => Promise<boolean>, lock = true) {
  refuseForeign(disk, dir);
  await disk.makeDirectory(dir);
  return lock ? takeLock(dir, isAlive) : undefined;
}

/**
 * Reads everything, checks everything, changes nothing: without the lock, and on a read-only mount. `notices`: what the
 * next start will put right by itself.
 */
export async function readStore(
  dir: string,
  { disk = realDisk, progress }: DirectoryOptions = {},
): Promise<{ found: Found; state: State; proof: Proof; notices: string[] }> {
  const state = new State();
  const found = await recover(disk, dir, state, { progress });
  if (!found) throw new Error(`there is no store in ${dir}`);
  state.check();
  return { found, state, proof: prove(state), notices: found.torn ? [found.torn] : [] };
}
