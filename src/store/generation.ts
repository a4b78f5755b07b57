import { basename, dirname } from 'node:path';
import type { Disk } from './disk.ts';
import { fileName } from './header.ts';
import { Log } from './log.ts';
import { checkSnapshot } from './read-snapshot.ts';
import type { Recovered } from './recovery.ts';
import { type Position, type Proof, writeSnapshot } from './snapshot.ts';
import type { State } from './state.ts';

/** The name of the store's snapshot that is not finished; what an earlier attempt has left there is removed. */
export async function temporary(disk: Disk, path: string): Promise<string> {
  const unfinished = `${path}.tmp`;
  const names = disk.list(dirname(path)).filter((name) => name === basename(unfinished));
  await removeFiles(disk, dirname(path), names);
  return unfinished;
}

/** Writes a snapshot into a new file, whose name is a temporary one, makes it durable, and reads it back. */
export async function makeSnapshot(
  disk: Disk,
  unfinished: string,
  state: State,
  about: { store: string; generation: number } & Position,
): Promise<Proof> {
  const fd = await disk.create(unfinished);
  try {
    const proof = await writeSnapshot(disk, fd, state, about);
    const read = await checkSnapshot(disk, unfinished);
    if (read.digest !== proof.digest) throw new Error(`${unfinished} was not written as it should be`);
    return proof;
  } finally {
    disk.close(fd);
  }
}

/** From here on the snapshot counts, and what is older may go. */
export async function adoptSnapshot(disk: Disk, unfinished: string, path: string): Promise<void> {
  await disk.rename(unfinished, path);
  await disk.syncDirectory(dirname(path));
}

/** A file that is gone already is as good: the last compaction of a process that was killed may have renamed it. */
export async function removeFiles(disk: Disk, dir: string, names: string[]): Promise<void> {
  for (const name of names) {
    await disk.unlink(`${dir}/${name}`).catch((error) => {
      if (error.code !== 'ENOENT') throw error;
    });
  }
}

/**
 * After any end but a clean one, the files that were read may exist in the page cache alone, and may not be on disk.
 * So what was read is written anew, and only then is anyone served. The log comes before the snapshot gets its name:
 * a snapshot without its log is damage, a log without a snapshot and without records is nothing.
 */
export async function beginGeneration(disk: Disk, dir: string, found: Recovered, store: string): Promise<Log> {
  const generation = found.highest + 1;
  const path = `${dir}/${fileName('snapshot', generation)}`;
  const unfinished = await temporary(disk, path);
  await makeSnapshot(disk, unfinished, found.state, { store, generation, seq: found.seq, batch: found.batch });
  const log = await Log.create(disk, dir, store, generation);
  await adoptSnapshot(disk, unfinished, path);
  const old = [fileName('snapshot', found.snapshot), ...found.logs.map((number) => fileName('log', number))];
  await removeFiles(disk, dir, found.store === undefined ? found.leftovers : [...old, ...found.leftovers]);
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
