/**
 * Compaction, backup, the start after a crash, restore and repair are one thing: a state becomes the first batch of a
 * new file under a temporary name, durable and read back; then the file has its name, and that is made durable.
 */
import { State } from '../state.ts';
import { checkHeader, currentFile, dropOthers } from './directory.ts';
import type { Disk } from './disk.ts';
import { encodeFile, fileName, type Header } from './format.ts';
import { type Found, type ReadFileOptions, readFile } from './read.ts';

const WRITE_BYTES = 1024 * 1024;

/** Which file, and how much of it: what a running store has made durable. */
export interface Extent {
  file: number;
  length: number;
}

/** What is in the current file; undefined where there never was a store. */
export async function recover(
  disk: Disk,
  dir: string,
  state: State,
  options?: ReadFileOptions,
): Promise<Found | undefined> {
  const file = currentFile(disk, dir);
  if (file === undefined) return undefined;
  try {
    const found = await readFile(disk, `${dir}/${fileName(file)}`, state, options);
    checkHeader(disk, dir, file, found.header);
    return found;
  } catch (error) {
    const isGone = (error as NodeJS.ErrnoException).code === 'ENOENT' && currentFile(disk, dir) !== file;
    if (isGone) return recover(disk, dir, state, options); // a server beside us has just compacted it
    throw error;
  }
}

/** The child's work in a compaction: the state of the extent, under the temporary name of the next file. */
export async function compactFile(disk: Disk, dir: string, { file, length }: Extent): Promise<void> {
  const state = new State();
  const { header, batch } = await readFile(disk, `${dir}/${fileName(file)}`, state, { length });
  await writeWhole(disk, `${dir}/${fileName(file + 1)}.tmp`, { ...header, file: file + 1, first: batch }, state);
}

/** A whole new file, durable but for its name. Gives its length. Who asked for it removes what a failure leaves. */
export async function writeWhole(disk: Disk, path: string, header: Header, state: State): Promise<number> {
  await disk.unlink(path).catch(() => {}); // left by one that was cut off
  const fd = await disk.create(path);
  let text = '';
  let length = 0;
  // Made durable piece by piece: behind much that is still to be written, a batch's fdatasync would have to wait.
  const flush = async () => {
    const bytes = Buffer.from(text);
    await disk.write(fd, bytes, length);
    await disk.sync(fd);
    length += bytes.length;
    text = '';
  };
  try {
    for (const line of encodeFile(header, state)) {
      text += line;
      if (text.length >= WRITE_BYTES) await flush();
    }
    await flush();
  } finally {
    disk.close(fd);
  }
  await readFile(disk, path);
  return length;
}

/** A state becomes the store. Gives the length of its file. */
export async function becomeStore(disk: Disk, dir: string, header: Header, state: State): Promise<number> {
  const unnamed = `${dir}/${fileName(header.file)}.tmp`;
  try {
    const length = await writeWhole(disk, unnamed, header, state);
    await giveName(disk, dir, header);
    return length;
  } catch (error) {
    await disk.unlink(unnamed).catch(() => {}); // it takes room that others need, if it has no other name yet
    throw error;
  }
}

/** A file that is whole and durable has its name, for good, and counts. */
export async function giveName(disk: Disk, dir: string, header: Pick<Header, 'store' | 'file'>): Promise<void> {
  const path = `${dir}/${fileName(header.file)}`;
  await disk.rename(`${path}.tmp`, path);
  await dropOthers(disk, dir, header);
}
