/**
 * Compaction is recovery run elsewhere: the running store closes its log and goes on in the next; another process
 * reads the old snapshot and logs and writes the new snapshot. Order of what is made durable:
 *
 * 1. the new log, empty but for its header, and its name in the directory (the store)
 * 2. the closing record of the old log, which names the new one; from here on writes go to the new log (the store)
 * 3. the new snapshot under a temporary name, read back; then its name (the child)
 * 4. only then the old files are unlinked (the store, when no backup is reading them)
 *
 * A crash after 1 leaves a log that nothing leads to and that holds nothing; after 2, a chain of two logs, which
 * recovery reads in turn; after 3, old files that no longer count. A compaction that fails leaves the chain, and the
 * next one takes in all of it.
 */
import { setPriority } from 'node:os';
import { type Disk, realDisk } from './disk.ts';
import { adoptSnapshot, makeSnapshot, temporary } from './generation.ts';
import { fileName } from './header.ts';
import type { Progress } from './lines.ts';
import { recover } from './recovery.ts';
import type { Proof } from './snapshot.ts';

const LOWEST_PRIORITY = 19;

/** The child's part: everything before the log of `generation`, as the snapshot of that generation. */
export async function compactFiles(disk: Disk, dir: string, generation: number, progress?: Progress): Promise<Proof> {
  const found = await recover(disk, dir, { before: generation }, progress);
  if (found.store === undefined) throw new Error(`${dir} holds no store to compact`);
  const { state, store, seq, batch } = found;
  const path = `${dir}/${fileName('snapshot', generation)}`;
  const unfinished = await temporary(disk, path);
  const proof = await makeSnapshot(disk, unfinished, state, { store, generation, seq, batch });
  // Whether the process we work for has ended is heard in the next turn but one: this one may have polled already.
  for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve));
  await adoptSnapshot(disk, unfinished, path);
  return proof;
}

/** The same as the whole of a process. Its CPU time is what the serving process does not need. */
export async function runCompaction(dir: string, generation: number): Promise<Proof> {
  setPriority(LOWEST_PRIORITY);
  return compactFiles(realDisk, dir, generation);
}
