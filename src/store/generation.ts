/**
 * How a new generation begins. Order of what is made durable when a running store compacts:
 *
 * 1. the new log, empty but for its header, and its name in the directory; a crash leaves it, and it holds nothing
 * 2. the closing record of the old log, which names the new one; a crash leaves a chain of logs, read in turn
 * 3. by another process, the snapshot under a temporary name, read back; then its name; old files no longer count
 * 4. only then the old files are unlinked, when no backup is reading them
 *
 * A compaction that fails leaves the chain, and the next one takes in all of it.
 */
import { dirname } from 'node:path';
import type { Disk } from './disk.ts';
import { Log } from './log.ts';
import { readSnapshot } from './read-snapshot.ts';
import { fileName, filesIn } from './record.ts';
import { type Recovered, recoverStore } from './recovery.ts';
import { type Held, type Proof, writeSnapshot } from './snapshot.ts';

/** Everything before the log of `generation`, as the snapshot of that generation. */
export async function compactFiles(disk: Disk, dir: string, generation: number): Promise<void> {
  const found = await recoverStore(disk, dir, { before: generation });
  const path = `${dir}/${fileName('snapshot', generation)}`;
  await saveSnapshot(disk, path, `${path}.tmp`, found, generation, async () => {
    // Whether the process we work for has ended is heard in the next turn but one: this one may have polled already.
    for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve));
  });
}

/**
 * After any end but a clean one, the files that were read may exist in the page cache alone, and may not be on disk.
 * So what was read is written anew, and only then is anyone served. The log comes before the snapshot gets its name:
 * a snapshot without its log is damage, a log without a snapshot and without records is nothing.
 */
export async function beginGeneration(disk: Disk, dir: string, found: Recovered, store: string): Promise<Log> {
  const generation = found.highest + 1;
  const path = `${dir}/${fileName('snapshot', generation)}`;
  let log!: Log;
  await saveSnapshot(disk, path, `${path}.tmp`, { ...found, store }, generation, async () => {
    log = await Log.create(disk, dir, store, generation);
  });
  await removeOlder(disk, dir, generation);
  return log;
}

/**
 * Goes on in a log that was closed. Its closing record proves that everything before it is durable, but may itself be
 * in the page cache alone: it is cut away, and the cut made durable, before anything is written in its place.
 */
export async function reopenLog(disk: Disk, dir: string, found: Recovered): Promise<Log> {
  const generation = found.logs[found.logs.length - 1];
  const fd = await disk.openToWrite(`${dir}/${fileName('log', generation)}`);
  await disk.truncate(fd, found.length);
  await disk.sync(fd);
  return new Log(disk, fd, found.length, generation);
}

/**
 * Writes a snapshot into a new file, whose name is a temporary one, makes it durable, and reads it back; then, after
 * `before`, it has its name. From there on it counts, and what is older may go.
 */
export async function saveSnapshot(
  disk: Disk,
  path: string,
  unfinished: string,
  held: Held & { store: string },
  generation: number,
  before: () => Promise<void> = async () => {},
): Promise<Proof> {
  try {
    const proof = await writeSnapshot(disk, unfinished, held, generation);
    const read = await readSnapshot(disk, unfinished);
    if (read.digest !== proof.digest) throw new Error(`${unfinished} was not written as it should be`);
    await before();
    await disk.rename(unfinished, path);
    await disk.syncDirectory(dirname(path));
    return proof;
  } catch (error) {
    await disk.unlink(unfinished).catch(() => {}); // it may not be there, and takes room that others need
    throw error;
  }
}

/** A file that is gone already is as good: the last compaction of a process that was killed may have renamed it. */
export async function removeOlder(disk: Disk, dir: string, generation: number): Promise<void> {
  for (const { name } of filesIn(disk.list(dir)).filter((file) => file.generation < generation)) {
    await disk.unlink(`${dir}/${name}`).catch((error) => {
      if (error.code !== 'ENOENT') throw error;
    });
  }
}
