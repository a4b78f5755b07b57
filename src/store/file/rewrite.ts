/**
 * Compaction, backup, the start after a crash, restore and repair are one thing: a state becomes the first batch of a
 * new file under a temporary name, durable and read back; then the file has its name, and that is made durable.
 */
import { dirname } from 'node:path';
import { State } from '../state.ts';
import { checkHeader, currentFile, removeOthers, writeMark } from './directory.ts';
import type { Disk } from './disk.ts';
import { fileName, type Header, writeState } from './format.ts';
import { type Found, type Progress, readFile } from './read.ts';

const COPY_BYTES = 4 * 1024 * 1024;

/** An open file, and how much of it is durable. */
interface Growing {
  fd: number;
  length: number;
}

/** Which file, and how much of it: what a running store has made durable. */
export interface Extent {
  file: number;
  length: number;
}

/** What is in the current file, or in the extent; undefined where there never was a store. */
export async function recover(
  disk: Disk,
  dir: string,
  state: State | undefined,
  { extent, ...options }: { extent?: Extent; salvage?: boolean; progress?: Progress } = {},
): Promise<Found | undefined> {
  const file = extent?.file ?? currentFile(disk, dir);
  if (file === undefined) return undefined;
  const found = await readFile(disk, `${dir}/${fileName(file)}`, state, { length: extent?.length, ...options });
  checkHeader(disk, dir, file, found.header);
  return found;
}

/** The child's work in a compaction: the state of the extent, under the temporary name of the next file. */
export async function compactFile(disk: Disk, dir: string, extent: Extent): Promise<void> {
  const state = new State();
  const found = await recover(disk, dir, state, { extent });
  const header = { ...found!.header, file: extent.file + 1, first: found!.batch };
  await writeWhole(disk, `${dir}/${fileName(header.file)}.tmp`, header, state);
}

/**
 * What was appended to a file since `copied`, copied to the end of another until so much is left, and made durable.
 * Gives how far that is.
 */
export async function copyTail(disk: Disk, from: Growing, copied: number, to: Growing, leave: number): Promise<number> {
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

/** A whole new file, durable but for its name. Gives its length. Where it fails, it takes no room. */
export async function writeWhole(disk: Disk, path: string, header: Header, state: State): Promise<number> {
  await disk.unlink(path).catch(ignoreMissing);
  try {
    const length = await writeState(disk, path, header, state);
    await readFile(disk, path);
    return length;
  } catch (error) {
    await disk.unlink(path).catch(ignoreMissing);
    throw error;
  }
}

/** From here on the file counts. */
export async function giveName(disk: Disk, unfinished: string, path: string): Promise<void> {
  const directory = disk.openToRead(dirname(path)); // first, for afterwards there may be no descriptor left
  try {
    await disk.rename(unfinished, path);
    await disk.syncDirectory(directory);
  } finally {
    disk.close(directory);
  }
}

/** A state becomes the store. Gives the length of its file. */
export async function goOnIn(disk: Disk, dir: string, header: Header, state: State): Promise<number> {
  const path = `${dir}/${fileName(header.file)}`;
  const length = await writeWhole(disk, `${path}.tmp`, header, state);
  await giveName(disk, `${path}.tmp`, path);
  await dropOthers(disk, dir, header);
  return length;
}

/** First `LOCK` says that no older file counts; only then they go. */
export async function dropOthers(
  disk: Disk,
  dir: string,
  { store, file }: Pick<Header, 'store' | 'file'>,
): Promise<void> {
  await writeMark(disk, dir, { store, lowest: file });
  await removeOthers(disk, dir, file);
}

function ignoreMissing(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ENOENT') throw error;
}
