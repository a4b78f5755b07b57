/** A store in a directory: to be served, or only to be read. */
import { type Clock, systemClock } from '../../clock.ts';
import { MemoryStore } from '../memory.ts';
import type { Proof } from '../model.ts';
import { prove } from '../record.ts';
import { State } from '../state.ts';
import { holdsStore, LOCK } from './directory.ts';
import { type Disk, realDisk } from './disk.ts';
import { FileJournal, type FileJournalOptions } from './journal.ts';
import { takeLock } from './lock.ts';
import type { Progress } from './read.ts';
import { type Extent, recover } from './rewrite.ts';

/** Of a start that was cut off, of a file system of its own, and the seed that a clone has in `data/`. */
const NOBODYS = [LOCK, 'admin.sock', 'lost+found', 'seed.json'];

interface OpenOptions extends Omit<FileJournalOptions, 'lock'> {
  clock?: Clock;
  /** Whether another process answers for this directory: where there is no flock program, or was none for that one. */
  isAlive?: () => Promise<boolean>;
  disk?: Disk;
  /** False on a disk that is simulated, or where the lock is held already. */
  lock?: boolean;
}

/** Takes the lock, recovers what is there, and resolves when it is safe to serve. Closing the store frees the lock. */
export async function openStore(
  dir: string,
  { clock = systemClock, isAlive, disk = realDisk, lock = true, ...options }: OpenOptions = {},
): Promise<{ store: MemoryStore; journal: FileJournal }> {
  refuseForeign(disk, dir);
  await disk.makeDirectory(dir);
  const taken = lock ? await takeLock(dir, isAlive) : undefined;
  try {
    if (taken?.notice) options.onNotice?.(taken.notice);
    const journal = new FileJournal(disk, dir, { ...options, lock: taken });
    return { store: await MemoryStore.open(journal, { clock }), journal };
  } catch (error) {
    taken?.release();
    throw error;
  }
}

/** A mistyped directory must not become a store. It is left as it is. */
export function refuseForeign(disk: Disk, dir: string): void {
  const others = disk.list(dir).filter((name) => !NOBODYS.includes(name));
  if (others.length === 0 || holdsStore(disk, dir)) return;
  throw new Error(`${dir} holds other files and no store; it was left as it is. Name another directory.`);
}

export interface ReadOptions {
  /** Of a running server: what it says is durable. By default, all there is. */
  extent?: Extent;
  progress?: Progress;
  disk?: Disk;
}

/**
 * Reads everything, checks everything, changes nothing: without the lock, and on a read-only mount. `notices`: what the
 * next start will put right by itself.
 */
export async function readStore(
  dir: string,
  { disk = realDisk, ...options }: ReadOptions = {},
): Promise<{ state: State; proof: Proof; notices: string[]; store: string; batch: number; file: number }> {
  const state = new State();
  const found = await recover(disk, dir, state, options);
  if (!found) throw new Error(`there is no store in ${dir}`);
  state.check();
  const { store, file } = found.header;
  return { state, proof: prove(state), notices: found.torn ? [found.torn] : [], store, batch: found.batch, file };
}
