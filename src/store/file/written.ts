/** A file that is open to be written at its end, and the reasons to write no more. */
import type { Home } from './directory.ts';
import type { Disk } from './disk.ts';
import { fileName, type Header } from './format.ts';
import { LOCK } from './lock.ts';

const COPY_BYTES = 4 * 1024 * 1024;
/** The most that is left to be copied while a batch waits. */
const LAST_COPY_BYTES = 256 * 1024;

export interface Written {
  store: string;
  file: number;
  fd: number;
  /** The length from which its growth is measured, for the next compaction: the end of its first batch. */
  baseLength: number;
  /** The durable length. */
  length: number;
}

/** Opens the store's file, or the next one, to write on at `length`. A new file has its first batch alone. */
export async function openWritten(
  { disk, dir }: Home,
  { store, file }: Pick<Header, 'store' | 'file'>,
  length: number,
  baseLength = length,
  name = fileName(file),
): Promise<Written> {
  const fd = await disk.openToWrite(`${dir}/${name}`);
  return { store, file, fd, length, baseLength };
}

/**
 * What others have done, so that nothing more may be written; undefined: nothing. A file without a name is gone when it
 * is closed; what is written after a cut cannot be read; and if `LOCK` was removed, another process may open the same
 * store.
 */
export function doneByOthers({ disk, dir, fd }: Home, current: Written): string | undefined {
  const held = `/proc/${process.pid}/fd/${current.fd}`;
  const saved = `Before this process ends, save all of it: \`petstore restore ${held} --data NEW\` (Linux)`;
  const [path, bytes] = [`${dir}/${fileName(current.file)}`, disk.size(current.fd)];
  if (!disk.hasName(current.fd)) return `${path} was removed. ${saved}`;
  if (bytes !== current.length) {
    return `${path} was changed by another program: it has ${bytes} bytes, not ${current.length}. Restore a backup`;
  }
  return disk.hasName(fd) ? undefined : `${dir}/${LOCK} was removed. Start again: that makes another`;
}

/** Copies `from`, from `copied` on, to the end of `to`, until at most `leave` bytes remain. Returns the new offset. */
export async function copyTail(
  disk: Disk,
  from: Written,
  copied: number,
  to: Written,
  leave = LAST_COPY_BYTES,
): Promise<number> {
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
