/** Opens a store in a directory to be written on, by one process at a time. */
import { systemClock } from '../../clock.ts';
import { MemoryStore, type MemoryStoreOptions } from '../memory.ts';
import { LOCK, refuseForeign } from './directory.ts';
import { type Disk, realDisk } from './disk.ts';
import { FileJournal, type FileJournalOptions } from './journal.ts';

/** Another process has the directory, to serve or to work on it. */
export class InUseError extends Error {
  constructor(dir: string) {
    super(`${dir} is in use by another petstore`);
  }
}

/** Of everything that takes the lock of a directory. */
export interface LockOptions {
  disk?: Disk;
  /** Whether another process answers for this directory: where there is no flock program, or was none for that one. */
  isAlive?: () => Promise<boolean>;
}

type OpenOptions = Omit<FileJournalOptions, 'release'> & LockOptions & Partial<MemoryStoreOptions>;

/** Takes the lock, recovers what is there, and resolves when it is safe to serve. Closing the store frees the lock. */
export async function openStore(
  dir: string,
  { clock = systemClock, onDurable, isAlive, disk = realDisk, ...options }: OpenOptions = {},
): Promise<{ store: MemoryStore; journal: FileJournal }> {
  const { failed, release } = await claim(disk, dir, isAlive);
  try {
    if (failed) options.onNotice?.(`the store is not locked against a process that does not answer: ${failed}`);
    const journal = new FileJournal(disk, dir, { ...options, release });
    return { store: await MemoryStore.open(journal, { clock, onDurable, onNotice: options.onNotice }), journal };
  } catch (error) {
    release();
    throw error;
  }
}

/** Makes the directory, and takes the lock. */
export async function claim(disk: Disk, dir: string, isAlive: LockOptions['isAlive']) {
  refuseForeign(disk, dir);
  await disk.makeDirectory(dir);
  return takeLock(disk, dir, isAlive);
}

/** Also with the lock in hand it is asked who answers: another may run without it, where it found no flock program. */
export async function takeLock(disk: Disk, dir: string, isAlive = async () => false) {
  const lock = disk.lock(`${dir}/${LOCK}`);
  if (!lock.isHeld && !(await isAlive())) return lock;
  lock.release();
  throw new InUseError(dir);
}
