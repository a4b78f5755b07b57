import fs from 'node:fs';
import { dirname } from 'node:path';

/**
 * The file calls of the store, all of them: what a simulated disk must stand in for. Reading waits (it happens before
 * the store serves anyone, or in another process); whatever changes a file does not.
 */
export interface Disk {
  /** Names in a directory; none when there is no such directory. */
  list(dir: string): string[];
  size(fd: number): number;
  /** Fills `bytes` from `position`; fewer only at the end of the file. */
  read(fd: number, bytes: Uint8Array, position: number): number;
  openToRead(path: string): number;
  close(fd: number): void;
  /** A new file; fails where there is one. */
  create(path: string): Promise<number>;
  openToWrite(path: string): Promise<number>;
  /** All of the bytes, or an error. */
  write(fd: number, bytes: Uint8Array, position: number): Promise<void>;
  truncate(fd: number, length: number): Promise<void>;
  /** The content is on disk, and as much of the rest as is needed to read it. */
  sync(fd: number): Promise<void>;
  syncDirectory(dir: string): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  unlink(path: string): Promise<void>;
  makeDirectory(dir: string): Promise<void>;
}

/** Only the owner may look: names of callers and digests of keys are inside. */
const FILE_MODE = 0o600;
const DIRECTORY_MODE = 0o700;

type Done = (error: Error | null | undefined) => void;

function call(start: (done: Done) => void): Promise<void> {
  return new Promise((resolve, reject) => start((error) => (error ? reject(error) : resolve())));
}

/** A write may be short: a full disk shows itself only on the next call. So: again until nothing is left. */
function writeAll(fd: number, bytes: Uint8Array, from: number, position: number, done: Done): void {
  fs.write(fd, bytes, from, bytes.length - from, position, (error, count) => {
    if (error || from + count === bytes.length) done(error);
    else writeAll(fd, bytes, from + count, position + count, done);
  });
}

function open(path: string, flags: string): Promise<number> {
  return new Promise((resolve, reject) => {
    fs.open(path, flags, FILE_MODE, (error, fd) => (error ? reject(error) : resolve(fd)));
  });
}

export const realDisk: Disk = {
  list: (dir) => (fs.existsSync(dir) ? fs.readdirSync(dir) : []),
  size: (fd) => fs.fstatSync(fd).size,
  read(fd, bytes, position) {
    let at = 0;
    while (at < bytes.length) {
      const count = fs.readSync(fd, bytes, at, bytes.length - at, position + at);
      if (count === 0) break;
      at += count;
    }
    return at;
  },
  openToRead: (path) => fs.openSync(path, 'r'),
  close: (fd) => fs.closeSync(fd),
  create: (path) => open(path, 'wx'),
  openToWrite: (path) => open(path, 'r+'),
  write: (fd, bytes, position) => call((done) => writeAll(fd, bytes, 0, position, done)),
  truncate: (fd, length) => call((done) => fs.ftruncate(fd, length, done)),
  sync: (fd) => call((done) => fs.fdatasync(fd, done)),
  async syncDirectory(dir) {
    const fd = await open(dir, 'r');
    await call((done) => fs.fsync(fd, done)).finally(() => fs.closeSync(fd));
  },
  rename: (from, to) => call((done) => fs.rename(from, to, done)),
  unlink: (path) => call((done) => fs.unlink(path, done)),
  async makeDirectory(dir) {
    if (fs.existsSync(dir)) return;
    const made = fs.mkdirSync(dir, { recursive: true, mode: DIRECTORY_MODE });
    for (let path = dir; made && path !== dirname(made); path = dirname(path))
      await realDisk.syncDirectory(dirname(path));
  },
};
