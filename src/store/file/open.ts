/** Opens a store in a directory for writing, by one process at a time. */
import { systemClock } from '../../clock.ts';
import { MemoryStore, type MemoryStoreOptions } from '../memory.ts';
import { currentFile, refuseForeign, refuseOthers } from './directory.ts';
import { type Disk, realDisk } from './disk.ts';
import { FileJournal, type FileJournalOptions } from './journal.ts';
import { LOCK, readMark } from './lock.ts';

/** Another process serves the directory, or works on it. */
export class InUseError extends Error {
  constructor(dir: string) {
    super(`${dir} is in use by another petstore`);
  }
}

/** Options of every function that takes the lock. */
export interface LockOptions {
  disk?: Disk;
  /** True if another process answers for this directory: flock may be missing, here or for that process. */
  isAlive?: () => Promise<boolean>;
}

type OpenOptions = Omit<FileJournalOptions, 'lock'> & LockOptions & Partial<MemoryStoreOptions>;

/** Takes the lock, recovers the state, and resolves when it is safe to serve. Closing the store frees the lock. */
export async function openStore(
  dir: string,
  { clock = systemClock, onDurable, maxBytes, isAlive, disk = realDisk, ...options }: OpenOptions = {},
): Promise<{ store: MemoryStore; journal: FileJournal }> {
  const lock = await claim(disk, dir, isAlive);
  try {
    const { failed } = lock;
    if (failed)
      options.onNotice?.(
        `the store is not locked (${failed}): another petstore is noticed only if it answers on the admin socket`,
      );
    const timesSeen = readMark(disk, dir)?.times;
    let store: MemoryStore | undefined;
    const times = () => (store === undefined ? timesSeen : { at: store.unix(), wall: Math.floor(clock.wall()) });
    const journal = new FileJournal(disk, dir, { ...options, lock, times });
    store = await MemoryStore.open(journal, { clock, onDurable, maxBytes, onNotice: options.onNotice, timesSeen });
    return { store, journal };
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
 * Takes the lock. It looks at the directory first, so that a refused directory is left unchanged. It calls `isAlive`
 * even if it has the lock: another process that found no flock runs without a lock.
 */
async function takeLock(disk: Disk, dir: string, isAlive = async () => false) {
  refuseOthers(disk, dir);
  currentFile(disk, dir);
  const lock = disk.lock(`${dir}/${LOCK}`);
  if (!lock.isHeld && !(await isAlive())) return lock;
  lock.release();
  throw new InUseError(dir);
}
