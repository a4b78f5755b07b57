/**
 * Compaction, backup, the start after a crash, and restore do the same: a state becomes the first batch of a new
 * file under a temporary name, durable and read back; then the file gets its name, and the name is made durable.
 */
import { State } from '../state.ts';
import { checkHeader, currentFile, dropOthers, type Home, mustBeHome } from './directory.ts';
import type { Disk } from './disk.ts';
import { BEYOND_A_CUT, DamagedError, encodeFile, fileName, type Header, inPieces } from './format.ts';
import { type Mark, readMark } from './lock.ts';
import { type Found, type ReadFileOptions, readFile } from './read.ts';

/** The durable part of a running store's file. */
export interface Extent {
  file: number;
  length: number;
}

/** Reads the current file; undefined: there never was a store. Throws if the state contradicts itself. */
export async function recover(
  disk: Disk,
  dir: string,
  state: State,
  options?: Pick<ReadFileOptions, 'onProgress'>,
): Promise<Found | undefined> {
  const mark = readMark(disk, dir); // read first: a running server may write on meanwhile
  const file = currentFile(disk, dir);
  if (file === undefined) return undefined;
  const path = `${dir}/${fileName(file)}`;
  const isMarked = mark?.lowest === file;
  const known = mark && {
    batch: mark.batch,
    length: isMarked ? mark.length : 0,
    isClosed: () => isMarked && mark.closed && readMark(disk, dir)?.closed === true,
  };
  try {
    const onHeader = (header: Header) => checkHeader(dir, file, header, mark);
    const found = await readFile(disk, path, state, { ...options, known, onHeader });
    mustAgree(path, found, state);
    return found;
  } catch (error) {
    const isGone = (error as NodeJS.ErrnoException).code === 'ENOENT' && currentFile(disk, dir) !== file;
    if (isGone) return recover(disk, dir, state, options); // a running server has just compacted it
    throw error;
  }
}

/**
 * For a reader without the lock. While it reads, others may open the store, write, and close it again: what it has read
 * is then of several moments. So damage counts only if a second reading finds the same; `read` begins anew each time.
 */
export async function readTwiceIfDamaged<R>(read: () => Promise<R>): Promise<R> {
  for (let before = ''; ; ) {
    try {
      return await read();
    } catch (error) {
      const { message } = error as Error;
      if (!(error instanceof DamagedError) || message === before) throw error;
      before = message;
    }
  }
}

/** Throws if the state contradicts itself: it may do so even if every line is good. */
export function mustAgree(path: string, { length }: Found, state: State): void {
  try {
    state.check();
  } catch (error) {
    throw new DamagedError(path, length, `it contradicts itself: ${(error as Error).message}`, BEYOND_A_CUT);
  }
}

/** The child's part of a compaction: writes the state of the extent to a new file. Returns its temporary name. */
export async function compactFile(
  disk: Disk,
  dir: string,
  { file, length }: Extent,
  temporaryName = `${fileName(file + 1)}.tmp`,
): Promise<string> {
  const state = new State();
  const { header, batch } = await readFile(disk, `${dir}/${fileName(file)}`, state, { length });
  await writeWhole(disk, `${dir}/${temporaryName}`, { ...header, file: file + 1, first: batch }, state);
  return temporaryName;
}

/** Writes a whole new file, durable but for its name, and returns its length. If it throws, the caller removes it. */
export async function writeWhole(disk: Disk, path: string, header: Header, state: State): Promise<number> {
  await disk.unlink(path).catch(() => {}); // the rest of an attempt that was cut off
  const fd = await disk.create(path);
  let length = 0;
  try {
    for (const piece of inPieces(encodeFile(header, state))) {
      const bytes = Buffer.from(piece);
      await disk.write(fd, bytes, length);
      // Synced piece by piece: the fdatasync of a batch would have to wait for one large write.
      await disk.sync(fd);
      length += bytes.length;
    }
  } finally {
    disk.close(fd);
  }
  await readFile(disk, path);
  return length;
}

/**
 * Makes a state the store: writes it as a new file that counts. Returns the length of the file. `times`: those last seen,
 * which stay in `LOCK`.
 */
export async function becomeStore(home: Home, header: Header, state: State, times?: Mark['times']): Promise<number> {
  const { disk, dir } = home;
  const { store, file, first } = header;
  const temporaryName = `${fileName(file)}.tmp`;
  mustBeHome(home);
  try {
    const length = await writeWhole(disk, `${dir}/${temporaryName}`, header, state);
    await giveName(home, temporaryName, { store, lowest: file, batch: first, length, closed: false, times });
    return length;
  } catch (error) {
    await disk.unlink(`${dir}/${temporaryName}`).catch(() => {}); // frees its room; fails, harmlessly, after the rename
    throw error;
  }
}

/** Gives a whole and durable file its name, durably, and makes it count. Throws first if the directory is another. */
export async function giveName(home: Home, temporaryName: string, mark: Mark): Promise<void> {
  const { disk, dir } = home;
  mustBeHome(home);
  await disk.rename(`${dir}/${temporaryName}`, `${dir}/${fileName(mark.lowest)}`);
  await dropOthers(home, mark);
}
