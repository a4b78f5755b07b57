/**
 * Compaction, backup, the start after a crash, restore and repair are one thing: a state becomes the first batch of a
 * new file under a temporary name, durable and read back; then the file has its name, and that is made durable.
 */
import { State } from '../state.ts';
import { checkHeader, currentFile, dropOthers, type Home } from './directory.ts';
import type { Disk } from './disk.ts';
import { BEYOND_REPAIR, DamagedError, encodeFile, fileName, type Header, inPieces } from './format.ts';
import { type Mark, readMark } from './lock.ts';
import { type Found, type ReadFileOptions, readFile } from './read.ts';

const COPY_BYTES = 4 * 1024 * 1024;

/** Which file, and how much of it: what a running store has made durable. */
export interface Extent {
  file: number;
  length: number;
}

/** A file that is open to be written at its end. */
export interface Written {
  store: string;
  file: number;
  fd: number;
  /** How long it was when it was begun. */
  began: number;
  /** How much of it is durable. */
  length: number;
}

/** What is in the current file; undefined where there never was a store. It does not contradict itself. */
export async function recover(
  disk: Disk,
  dir: string,
  state: State,
  options?: Pick<ReadFileOptions, 'salvage' | 'onProgress'>,
): Promise<Found | undefined> {
  const mark = readMark(disk, dir); // first: a server beside us may go on meanwhile
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
    if (isGone) return recover(disk, dir, state, options); // a server beside us has just compacted it
    throw error;
  }
}

/** Each line may be as it was written, and the whole be nothing that a store can hold. */
export function mustAgree(path: string, { length }: Found, state: State): void {
  try {
    state.check();
  } catch (error) {
    throw new DamagedError(path, length, `it contradicts itself: ${(error as Error).message}`, BEYOND_REPAIR);
  }
}

/** The child's work in a compaction: the state of the extent as a file of its own. Gives its name. */
export async function compactFile(
  disk: Disk,
  dir: string,
  { file, length }: Extent,
  unnamed = `${fileName(file + 1)}.tmp`,
): Promise<string> {
  const state = new State();
  const { header, batch } = await readFile(disk, `${dir}/${fileName(file)}`, state, { length });
  await writeWhole(disk, `${dir}/${unnamed}`, { ...header, file: file + 1, first: batch }, state);
  return unnamed;
}

/** A whole new file, durable but for its name. Gives its length. Who asked for it removes what a failure leaves. */
export async function writeWhole(disk: Disk, path: string, header: Header, state: State): Promise<number> {
  await disk.unlink(path).catch(() => {}); // left by one that was cut off
  const fd = await disk.create(path);
  let length = 0;
  try {
    for (const piece of inPieces(encodeFile(header, state))) {
      const bytes = Buffer.from(piece);
      await disk.write(fd, bytes, length);
      // Piece by piece: behind much that is still to be written, a batch's fdatasync would have to wait.
      await disk.sync(fd);
      length += bytes.length;
    }
  } finally {
    disk.close(fd);
  }
  await readFile(disk, path);
  return length;
}

/** A state becomes the store. Gives the length of its file. */
export async function becomeStore(home: Home, header: Header, state: State): Promise<number> {
  const { disk, dir } = home;
  const { store, file, first } = header;
  const unnamed = `${fileName(file)}.tmp`;
  try {
    const length = await writeWhole(disk, `${dir}/${unnamed}`, header, state);
    await giveName(home, unnamed, { store, lowest: file, batch: first, length, closed: false });
    return length;
  } catch (error) {
    await disk.unlink(`${dir}/${unnamed}`).catch(() => {}); // it takes room that others need, if it has no other name yet
    throw error;
  }
}

/** A file that is whole and durable has its name, for good, and counts. */
export async function giveName(home: Home, unnamed: string, mark: Mark): Promise<void> {
  const { disk, dir } = home;
  await disk.rename(`${dir}/${unnamed}`, `${dir}/${fileName(mark.lowest)}`);
  await dropOthers(home, mark);
}

/** What `from` holds behind `copied` goes to the end of `to`, until so much is left. Gives how far that is. */
export async function copyTail(disk: Disk, from: Written, copied: number, to: Written, leave: number): Promise<number> {
  while (from.length - copied > leave) {
    const bytes = Buffer.alloc(Math.min(COPY_BYTES, from.length - copied));
    disk.read(from.fd, bytes, copied);
    await disk.write(to.fd, bytes, to.length);
    copied += bytes.length;
    to.length += bytes.length;
  }
  await disk.sync(to.fd);
  return copied;
}
