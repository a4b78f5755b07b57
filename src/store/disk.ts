import fs from 'node:fs';
import { dirname } from 'node:path';

/** Only the owner may look: names of callers and digests of keys are inside. */
const FILE_MODE = 0o600;
const DIRECTORY_MODE = 0o700;

function call<T = void>(start: (done: (error?: Error | null, value?: T) => void) => void): Promise<T> {
  return new Promise((resolve, reject) => start((error, value) => (error ? reject(error) : resolve(value as T))));
}

function open(path: string, flags: string): Promise<number> {
  return call((done) => fs.open(path, flags, FILE_MODE, done));
}

/**
 * The file calls of the store, all of them: what a simulated disk must stand in for. Reading waits (it happens before
 * the store serves anyone, or in another process); whatever changes a file does not.
 */
export type Disk = typeof realDisk;

export const realDisk = {
  /** Names in a directory; none when there is no such directory. */
  list: (dir: string): string[] => (fs.existsSync(dir) ? fs.readdirSync(dir) : []),
  size: (path: string): number => fs.statSync(path).size,
  openToRead: (path: string): number => fs.openSync(path, 'r'),
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
  /** A new file; fails where there is one. */
  create: (path: string) => open(path, 'wx'),
  openToWrite: (path: string) => open(path, 'r+'),
  /** Into a new file, of which nothing is on disk yet. */
  copyFile: (from: string, to: string) => call((done) => fs.copyFile(from, to, fs.constants.COPYFILE_EXCL, done)),
  /** All of the bytes, or an error. It may be short: a full disk shows itself only on the next call. */
  async write(fd: number, bytes: Uint8Array, position: number): Promise<void> {
    for (let at = 0; at < bytes.length; ) {
      at += await call<number>((done) => fs.write(fd, bytes, at, bytes.length - at, position + at, done));
    }
  },
  truncate: (fd: number, length: number) => call((done) => fs.ftruncate(fd, length, done)),
  /** The content is on disk, and as much of the rest as is needed to read it. */
  sync: (fd: number) => call((done) => fs.fdatasync(fd, done)),
  async syncDirectory(dir: string): Promise<void> {
    const fd = await open(dir, 'r');
    await call((done) => fs.fsync(fd, done)).finally(() => fs.closeSync(fd));
  },
  rename: (from: string, to: string) => call((done) => fs.rename(from, to, done)),
  unlink: (path: string) => call((done) => fs.unlink(path, done)),
  async makeDirectory(dir: string): Promise<void> {
    if (fs.existsSync(dir)) return;
    const made = fs.mkdirSync(dir, { recursive: true, mode: DIRECTORY_MODE });
    for (let path = dir; made && path !== dirname(made); path = dirname(path))
      await realDisk.syncDirectory(dirname(path));
  },
};

/** The same, but a rename overwrites nothing: of two to one name, one fails. */
export const sparingDisk: Disk = {
  ...realDisk,
  async rename(from: string, to: string): Promise<void> {
    const failure = await call((done) => fs.link(from, to, done)).catch((error) => error);
    if (failure?.code === 'EEXIST') throw new Error(`${to} exists`);
    if (failure === undefined) return realDisk.unlink(from);
    // Not every file system has hard links. There the name is taken first, and for a moment stands for an empty file.
    fs.closeSync(await open(to, 'wx'));
    return realDisk.rename(from, to);
  },
};
