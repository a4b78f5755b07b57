/** All file calls of the store. Tests replace them by a simulated disk. Calls that change a file are asynchronous. */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { constants } from 'node:os';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { refuseOthersDirectory } from './owner.ts';

/** For the owner alone: names of callers and digests of keys are inside. */
const FILE_MODE = 0o600;
const DIRECTORY_MODE = 0o700;
const READ_BYTES = 1024 * 1024;
const { O_RDONLY, O_RDWR, O_CREAT, O_TRUNC, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = fs.constants;

/** The disk is full, or the file may not become larger. */
const NO_ROOM = ['ENOSPC', 'EFBIG'];
/** The quota is used up, for which Node has no code. */
const QUOTA = -constants.errno.EDQUOT;
/** A program is not installed, or not for this user or machine. */
const NO_PROGRAM = ['ENOENT', 'EACCES', 'ENOEXEC'];
const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException | undefined)?.code ?? '';
export const isNoRoom = (error: unknown): boolean =>
  NO_ROOM.includes(codeOf(error)) || (error as NodeJS.ErrnoException | undefined)?.errno === QUOTA;

/** Throws where that cannot be seen: a store that we may not look at is not a missing one. */
const isThere = (path: string): boolean => fs.lstatSync(path, { throwIfNoEntry: false }) !== undefined;

/** Follows no link, and waits for no FIFO or device. */
function openFile(path: string, flags: number): number {
  const fd = fs.openSync(path, flags | O_NOFOLLOW | O_NONBLOCK, FILE_MODE);
  if (fs.fstatSync(fd).isFile()) return fd;
  fs.closeSync(fd);
  throw new Error(`${path} is not a file`);
}

const [open, read, write] = [promisify(fs.open), promisify(fs.read), promisify(fs.write)];
const [ftruncate, fdatasync, fsync] = [promisify(fs.ftruncate), promisify(fs.fdatasync), promisify(fs.fsync)];

export type Disk = typeof realDisk;

export const realDisk = {
  /** The names in a directory; none if there is no such directory. */
  list: (dir: string): string[] => (isThere(dir) ? fs.readdirSync(dir) : []),
  /** Throws if a directory is not the owner's alone, or one of the named files in it is a link. */
  mustBeOurs: refuseOthersDirectory,
  size: (fd: number): number => fs.fstatSync(fd).size,
  /** Undefined: there is no such file. */
  openToRead: (path: string) => (isThere(path) ? openFile(path, O_RDONLY) : undefined),
  openToWrite: (path: string): number => openFile(path, O_RDWR),
  /** In the background: closing a large file that was removed frees its blocks, which may take 100 ms. */
  close: (fd: number): void => fs.close(fd, () => {}),
  read: async (fd: number, bytes: Uint8Array, position: number): Promise<number> =>
    (await read(fd, bytes, 0, bytes.length, position)).bytesRead,
  /** Makes an empty file. */
  create: (path: string): Promise<number> => open(path, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW, FILE_MODE),
  /** Writes all of the bytes, or throws. If the disk becomes full, one call writes fewer, and only the next fails. */
  async write(fd: number, bytes: Uint8Array, position: number): Promise<void> {
    for (let written = 0; written < bytes.length; ) {
      written += (await write(fd, bytes, written, bytes.length - written, position + written)).bytesWritten;
    }
  },
  truncate: (fd: number, length: number): Promise<void> => ftruncate(fd, length),
  /** Makes the content durable, and as much of the metadata as is needed to read it. */
  sync: (fd: number): Promise<void> => fdatasync(fd),
  rename: (from: string, to: string): Promise<void> => fs.promises.rename(from, to),
  unlink: (path: string): Promise<void> => fs.promises.unlink(path),
  openDirectory: (dir: string): number => fs.openSync(dir, 'r'),
  /** Makes the names in an open directory durable. */
  syncNames: (fd: number): Promise<void> => fsync(fd),
  async syncDirectory(dir: string): Promise<void> {
    const fd = realDisk.openDirectory(dir);
    await realDisk.syncNames(fd).finally(() => fs.closeSync(fd));
  },
  /** One level after the other: with `recursive`, Node tries for ever where it can make none, as in /proc. */
  async makeDirectory(dir: string): Promise<void> {
    if (fs.existsSync(dir)) return;
    await realDisk.makeDirectory(dirname(dir));
    try {
      fs.mkdirSync(dir, DIRECTORY_MODE);
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error; // another process has just made it
    }
    await realDisk.syncDirectory(dirname(dir));
  },
  /** Names of callers, digests of keys and the socket for commands are in it. */
  makePrivate(dir: string): void {
    if ((fs.statSync(dir).mode & 0o077) !== 0) fs.chmodSync(dir, DIRECTORY_MODE);
  },
  /** Locks a file, which is made if it is missing. `none`: flock is missing or does not work, nobody is locked out. */
  lock(path: string): { fd: number; state: 'ours' | 'held' | 'none' } {
    const fd = openFile(path, O_RDWR | O_CREAT);
    return { fd, state: flock(fd) };
  },
  unlock: (fd: number): void => fs.closeSync(fd),
};

/**
 * Locks by flock(1): a child inherits our open file and locks it. The lock belongs to the open file, so it outlives the
 * child, holds while we are stopped, and is freed by the kernel however we die.
 */
function flock(fd: number): 'ours' | 'held' | 'none' {
  const PATH = [process.env.PATH, '/usr/bin', '/bin'].filter(Boolean).join(':'); // a service's PATH may lack these
  const { status, signal, error } = spawnSync('flock', ['-n', '-x', '3'], {
    env: { ...process.env, PATH },
    stdio: ['ignore', 'ignore', 'ignore', fd],
  });
  if (signal) throw new Error(`the program flock, which locks the data directory, ended by ${signal}`);
  if (error && !NO_PROGRAM.includes(codeOf(error))) throw error;
  return status === 0 ? 'ours' : status === 1 ? 'held' : 'none';
}

/** The bytes of a file, up to its end as it is now. `stop` ends that with its reason. */
export async function* piecesOf(disk: Disk, fd: number, stop?: AbortSignal): AsyncGenerator<Buffer> {
  const end = disk.size(fd);
  for (let from = 0, length = 0; from < end; from += length) {
    stop?.throwIfAborted();
    const piece = Buffer.allocUnsafe(Math.min(READ_BYTES, end - from));
    length = await disk.read(fd, piece, from);
    if (length === 0) return; // it was cut meanwhile
    yield piece.subarray(0, length);
  }
}
