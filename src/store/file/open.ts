/** Opens a store in a directory to be written on, by one process at a time. */
import { systemClock } from '../../clock.ts';
import { MemoryStore, type MemoryStoreOptions } from '../memory.ts';
import { currentFile, refuseForeign, refuseOthers } from './directory.ts';
import { type Disk, realDisk } from './disk.ts';
import { FileJournal, type FileJournalOptions } from './journal.ts';
import { LOCK } from './lock.ts';

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

type OpenOptions = Omit<FileJournalOptions, 'lock'> & LockOptions & Partial<MemoryStoreOptions>;

/** Takes the lock, recovers what is there, and resolves when it is safe to serve. Closing the store frees the lock. */
export async function openStore(
  dir: string,
  { clock = systemClock, onDurable, maxBytes, isAlive, disk = realDisk, ...options }: OpenOptions = {},
): Promise<{ store: MemoryStore; journal: FileJournal }> {
  const lock = await claim(disk, dir, isAlive);
  try {
    const { failed } = lock;
    if (failed) options.onNotice?.(`the store is not locked against a process that does not answer: ${failed}`);
    const journal = new FileJournal(disk, dir, { ...options, lock });
    return {
      store: await MemoryStore.open(journal, { clock, onDurable, maxBytes, onNotice: options.onNotice }),
      journal,
    };
  } catch (error) {
    lock.release();
    throw error;
  }
}

/** Makes the directory, and takes the lock. */
export async function claim(disk: Disk, dir: string, isAlive: LockOptions['isAlive']) {
  refuseForeign(disk, dir);
  refuseOthers(disk, dir);
  await disk.makeDirectory(dir);
  return takeLock(disk, dir, isAlive);
}

/**
 * What stands there is looked at first, so that nothing is changed where it is refused. Also with the lock in hand it
 * is asked who answers: another may run without it, where it found no flock program.
 */
export async function takeLock(disk: Disk, dir: string, isAlive = async () => false) {
  refuseOthers(disk, dir);
  currentFile(disk, dir);
  const lock = disk.lock(`${dir}/${LOCK}`);
  if (!lock.isHeld && !(await isAlive())) return lock;
  lock.release();
  throw new InUseError(dir);
}
