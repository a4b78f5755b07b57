/**
 * The data directory: `LOCK`, and the store's file. `LOCK` is locked by the process that has the store open, and holds the
 * store's id. So a lost file and one of another store are noticed, and a directory that once held a store is never taken
 * for an empty one.
 */
import { resolve } from 'node:path';
import { DamagedError, type EngineOptions, InUseError, NoStoreError } from '../engine.ts';
import { decodeLine, encodeLine } from '../log-format.ts';
import { VersionError } from '../schema.ts';
import type { Disk } from './disk.ts';

export const LOCK = 'LOCK';
export const STORE_FILE = 'store.jsonl';
/** The next file, while it is written. */
const NEXT = 'store.jsonl.tmp';
export const SOCKET = 'admin.sock';
/** The names that the file had before the first release. */
const OLD = /^store-\d+\.jsonl$/;
/** What may stand in a directory without a store: the rest of an interrupted start, a mounted disk, the example. */
const HARMLESS = [LOCK, NEXT, SOCKET, 'lost+found', 'seed.json'];
const MAX_LOCK_BYTES = 512;
const PUT_BACK = 'Nothing was changed. Put it back, or restore a backup into another directory.';

type OpenOptions = Partial<Pick<EngineOptions, 'mustExist' | 'readOnly' | 'log'>>;

export class Directory {
  readonly disk: Disk;
  readonly file: string;
  readonly nextFile: string;
  /** The id of the store, by `LOCK`; undefined: `LOCK` was never written as a whole, was lost or has been destroyed. */
  readonly store: string | undefined;
  /** `LOCK`, which is locked as long as this is open; undefined: opened to read. */
  #lock: number | undefined;
  /** The directory itself: so that `settle` needs no descriptor where the process has no more. */
  #names: number | undefined;

  /** Takes the lock. Who only reads takes none: it works beside a running server, and on a read-only disk. */
  static async open(disk: Disk, path: string, { mustExist, readOnly, log }: OpenOptions): Promise<Directory> {
    const names = disk.list(path);
    disk.mustBeOurs(path, (name) => [LOCK, STORE_FILE, NEXT, SOCKET].includes(name));
    const lock = await readLock(disk, `${path}/${LOCK}`);
    const directory = new Directory(disk, path, storeIn(lock));
    if (!names.includes(STORE_FILE)) {
      const old = names.find((name) => OLD.test(name));
      if (old !== undefined) throw new VersionError(`${path}/${old}: written by an older version of petstore`);
      // `LOCK` is written as soon as a store has its file.
      if (directory.store !== undefined) throw new DamagedError(directory.file, 'the file is missing', PUT_BACK);
      const noStore = 'it names no store, and there is no file of one';
      if (lock.length > 0) throw new DamagedError(`${path}/${LOCK}`, noStore, PUT_BACK);
      if (mustExist ?? readOnly) throw new NoStoreError(`there is no store in ${resolve(path)}`);
      const foreign = JSON.stringify(names.find((name) => !HARMLESS.includes(name)));
      if (foreign) throw new Error(`${path} holds no store, but ${foreign}: name an empty directory, or a new one`);
    }
    if (readOnly) return directory;
    await disk.makeDirectory(path);
    disk.makePrivate(path);
    directory.#names = disk.openDirectory(path);
    const { fd, state } = disk.lock(`${path}/${LOCK}`);
    directory.#lock = fd;
    if (state === 'none')
      log?.warn(`the program flock does not work here: never start two processes on ${path} at the same time`);
    if (state !== 'held') return directory;
    directory.release();
    throw new InUseError(`${path} is in use by another process`);
  }

  private constructor(disk: Disk, path: string, store: string | undefined) {
    this.disk = disk;
    this.store = store;
    this.file = `${path}/${STORE_FILE}`;
    this.nextFile = `${path}/${NEXT}`;
  }

  /** Makes the name of the file durable, then writes `LOCK`. Nothing is acknowledged before. */
  async settle(store: string): Promise<void> {
    await this.disk.syncNames(this.#names!);
    await this.disk.write(this.#lock!, encodeLine(JSON.stringify({ store })), 0);
    await this.disk.sync(this.#lock!);
  }

  /** Frees the lock. */
  release(): void {
    if (this.#lock !== undefined) this.disk.unlock(this.#lock);
    if (this.#names !== undefined) this.disk.close(this.#names);
  }
}

/** Its bytes; none if there is no such file. */
async function readLock(disk: Disk, path: string): Promise<Buffer> {
  const fd = disk.openToRead(path);
  if (fd === undefined) return Buffer.alloc(0);
  const bytes = Buffer.alloc(MAX_LOCK_BYTES);
  const length = await disk.read(fd, bytes, 0).finally(() => disk.close(fd));
  return bytes.subarray(0, length);
}

function storeIn(lock: Buffer): string | undefined {
  const { store } = decodeLine(lock.subarray(0, Math.max(0, lock.indexOf('\n')))) ?? {};
  return typeof store === 'string' ? store : undefined;
}
