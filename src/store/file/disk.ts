/**
 * All file calls of the store; tests replace them by a simulated disk. Reads are synchronous: nearly all happen before
 * the store serves, or in another process. Calls that change a file are asynchronous.
 */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { dirname } from 'node:path';
import { openOurs, refuseOthersDirectory } from './owner.ts';

/** Modes for the owner alone: names of callers and digests of keys are inside. */
const FILE_MODE = 0o600;
const DIRECTORY_MODE = 0o700;

/** Errors of missing room: the disk is full, the quota is used up, or the file may not become larger. */
const NO_ROOM = ['ENOSPC', 'EDQUOT', 'EFBIG'];
/** Errors of a missing program: not installed, or not for this user or machine. */
const NO_PROGRAM = ['ENOENT', 'EACCES', 'ENOEXEC'];
export const isNoRoom = (error: unknown): boolean => NO_ROOM.includes((error as NodeJS.ErrnoException).code ?? '');
/** True if a file could not be opened, often for want of a descriptor. Nothing has been changed. */
export const isOpenFailure = (error: unknown): boolean => (error as NodeJS.ErrnoException).syscall === 'open';

function call<T = void>(start: (done: (error?: Error | null, value?: T) => void) => void): Promise<T> {
  return new Promise((resolve, reject) => start((error, value) => (error ? reject(error) : resolve(value as T))));
}

/** Changes a name in a directory, durably. The directory is opened first: later there may be no descriptor left. */
async function changeName(path: string, change: (done: (error: Error | null) => void) => void): Promise<void> {
  const directory = fs.openSync(dirname(path), 'r');
  try {
    await call(change);
    await call((done) => fs.fsync(directory, done));
  } finally {
    fs.closeSync(directory);
  }
}

export type Disk = typeof realDisk;

export const realDisk = {
  /** Names in a directory; none if there is no such directory. Any other failure is thrown. */
  list(dir: string): string[] {
    try {
      return fs.readdirSync(dir);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
      throw error;
    }
  },
  /** Throws if a data directory is not the owner's alone. `isKept` is true for the names in it that we use. */
  mustBeOurs: refuseOthersDirectory,
  size: (fd: number): number => fs.fstatSync(fd).size,
  /** False once the last name of an open file is removed: when it is closed, its content is gone. */
  hasName: (fd: number): boolean => fs.fstatSync(fd).nlink > 0,
  /** True if the name leads to the open file. False once that, or a directory above it, was removed or moved. */
  isAt(fd: number, path: string): boolean {
    const here = fs.fstatSync(fd, { bigint: true });
    const there = fs.lstatSync(path, { bigint: true, throwIfNoEntry: false });
    return there?.ino === here.ino && there.dev === here.dev;
  },
  openToRead: (path: string): number => openOurs(path, fs.constants.O_RDONLY, FILE_MODE),
  /** Fills `bytes` from `position`; fewer only at the end of the file. */
  read(fd: number, bytes: Uint8Array, position: number): number {
    let at = 0;
    while (at < bytes.length) {
      const count = fs.readSync(fd, bytes, at, bytes.length - at, position + at);
      if (count === 0) break;
      at += count;
    }
    return at;
  },
  close: (fd: number): void => fs.closeSync(fd),
  /** Makes a new file; fails if there is one. */
  create: (path: string) => call<number>((done) => fs.open(path, 'wx', FILE_MODE, done)),
  openToWrite: async (path: string): Promise<number> => openOurs(path, fs.constants.O_RDWR, FILE_MODE),
  /** Writes all of the bytes, or throws. If the disk becomes full, one call writes fewer, and only the next fails. */
  async write(fd: number, bytes: Uint8Array, position: number): Promise<void> {
    for (let at = 0; at < bytes.length; ) {
      at += await call<number>((done) => fs.write(fd, bytes, at, bytes.length - at, position + at, done));
    }
  },
  truncate: (fd: number, length: number) => call((done) => fs.ftruncate(fd, length, done)),
  /** fdatasync: the content is durable, and as much of the metadata as is needed to read it. */
  sync: (fd: number) => call((done) => fs.fdatasync(fd, done)),
  /** Gives a file a second name, durably; fails if that is taken. */
  link: (from: string, to: string) => changeName(to, (done) => fs.link(from, to, done)),
  /** Gives a file another name, durably. */
  rename: (from: string, to: string) => changeName(to, (done) => fs.rename(from, to, done)),
  unlink: (path: string) => call((done) => fs.unlink(path, done)),
  /** Makes one level after the other: with `recursive`, Node tries for ever where it can make none, as in /proc. */
  async makeDirectory(dir: string): Promise<void> {
    if (fs.existsSync(dir)) return;
    await realDisk.makeDirectory(dirname(dir));
    fs.mkdirSync(dir, DIRECTORY_MODE);
    await changeName(dir, (done) => done(null)); // durable, too
  },
  /**
   * Takes a lock by flock(1): a child inherits our open file and locks it. The lock belongs to the open file, so it
   * outlives the child, holds while we are stopped, and is freed by the kernel however we die. `failed`: the reason for
   * which we have no lock. `isHeld`: the reason is that another process has the lock. Any other reason means that
   * flock is missing or does not work, and nobody is locked out. Throws if another attempt might succeed. `fd`: the
   * locked file, to be written through it alone.
   */
  lock(path: string): { fd: number; isHeld: boolean; failed?: string; release(): void } {
    const fd = openOurs(path, fs.constants.O_RDWR | fs.constants.O_CREAT, FILE_MODE);
    const PATH = [process.env.PATH, '/usr/bin', '/bin'].filter(Boolean).join(':'); // a service's PATH may lack these
    const { status, signal, error } = spawnSync('flock', ['-n', '-x', '3'], {
      env: { ...process.env, PATH },
      stdio: ['ignore', 'ignore', 'ignore', fd],
    });
    const failed = error ? error.message : `flock ended with ${status ?? signal}`;
    const { code } = (error ?? {}) as NodeJS.ErrnoException;
    if (signal || (error && !NO_PROGRAM.includes(code ?? ''))) {
      fs.closeSync(fd);
      throw Object.assign(new Error(`${path} could not be locked: ${failed}`), { code });
    }
    return { fd, isHeld: status === 1, failed: status === 0 ? undefined : failed, release: () => fs.closeSync(fd) };
  },
};
