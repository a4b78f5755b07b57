/**
 * The data directory: `LOCK`, and the store's file, `store-000007.jsonl`. `LOCK` is locked by the process that has the
 * store open, and says which store it is and the number of the current file. So neither a lost file nor an old copy
 * goes unnoticed, and a directory that once held a store is never taken for an empty one.
 *
 * Which file is the current one, when `LOCK` says 7:
 * - 7, if it is the highest number. A lower one is what a compaction left, and is removed.
 * - 8, if it is the highest: a file gets its name when it is complete, and from then on nothing is written to the one
 *   before; a crash came before `LOCK` was written.
 * - None, if the highest is lower than 7, or higher than 8: that is damage.
 *
 * When `LOCK` says nothing, the file with the highest number is the current one: the only one, or the second of two that
 * follow each other and are of one store, as a crash in a compaction leaves them.
 */
import { DamagedError, type EngineOptions, InUseError, NoStoreError } from '../engine.ts';
import { decodeLine, encodeLine, type Header } from '../log-format.ts';
import type { Disk } from './disk.ts';

const LOCK = 'LOCK';
const SOCKET = 'admin.sock';
/** `store-000007.jsonl`, with `.tmp` while it is written. The first has the number 1. */
const OURS = /^store-(?!0+\.)(\d{6,15})\.jsonl(\.tmp)?$/;
const LIKE_OURS = /^store-.*\.jsonl/;
/** What may stand in a directory without a store: the rest of an interrupted start, a mounted disk, the example. */
const HARMLESS = [LOCK, SOCKET, 'lost+found', 'seed.json'];
/** One sector, which a disk writes as a whole. */
const CURRENT_BYTES = 512;
const MAX_HEADER_BYTES = 8 * 1024;
export const MOVE_AWAY = 'Nothing was changed. If it is not of this store, or a copy of an older file, move it away.';
const PUT_BACK = 'Nothing was changed. Put it back, or restore a backup.';

const isOfStore = (name: string): boolean => LIKE_OURS.test(name) || name === LOCK;

export const fileName = (file: number): string => `store-${String(file).padStart(6, '0')}.jsonl`;

type OpenOptions = Partial<Pick<EngineOptions, 'mustExist' | 'readOnly' | 'log'>>;

/** What `LOCK` says. */
type Current = Pick<Header, 'store' | 'file'>;

export class Directory {
  readonly disk: Disk;
  readonly path: string;
  /** `LOCK`, which is locked as long as this is open; undefined: opened to read. */
  readonly #lock: number | undefined;

  /** Takes the lock. Who only reads takes none: it works beside a running server, and on a read-only disk. */
  static async open(disk: Disk, path: string, { mustExist, readOnly, log }: OpenOptions): Promise<Directory> {
    const names = disk.list(path) ?? [];
    disk.mustBeOurs(path, (name) => isOfStore(name) || name === SOCKET);
    if (!names.some(isOfStore) && (mustExist || readOnly)) throw new NoStoreError(path);
    const lock = await readLock(disk, path);
    if (currentIn(lock) === undefined && !names.some((name) => LIKE_OURS.test(name))) {
      if (lock.length > 0)
        throw new DamagedError(`${path}/${LOCK}`, 'it names no store, and there is no file of one', PUT_BACK);
      const foreign = JSON.stringify(names.find((name) => !HARMLESS.includes(name)));
      if (foreign) throw new Error(`${path} holds no store, but ${foreign}: name an empty directory, or a new one`);
    }
    if (readOnly) return new Directory(disk, path);
    await disk.makeDirectory(path);
    disk.makePrivate(path);
    const { fd, state } = disk.lock(`${path}/${LOCK}`);
    const directory = new Directory(disk, path, fd);
    if (state === 'none')
      log?.warn(`the program flock does not work here: never start two processes on ${path} at the same time`);
    if (state !== 'held') return directory;
    directory.release();
    throw new InUseError(`${path} is in use by another process`);
  }

  private constructor(disk: Disk, path: string, lock?: number) {
    this.disk = disk;
    this.path = path;
    this.#lock = lock;
  }

  pathOf(file: number): string {
    return `${this.path}/${fileName(file)}`;
  }

  /** Opens the current file, to read it; undefined: there is no store yet. Throws if that file is missing. */
  async openCurrent(): Promise<{ fd: number; file: number; store?: string } | undefined> {
    const { disk } = this;
    const current = await this.#readCurrent();
    const files = this.#files();
    if (current === undefined) await this.#mustBeOneStore(files);
    const newest = files.at(-1) ?? 0;
    const named = current?.file ?? newest;
    if (named === 0) return undefined;
    const fd = newest === named || newest === named + 1 ? disk.openToRead(this.pathOf(newest)) : undefined;
    if (fd !== undefined) return { ...current, file: newest, fd };
    if ((await this.#readCurrent())?.file !== current?.file) return this.openCurrent(); // a compaction has ended meanwhile
    if (newest <= named) throw new DamagedError(this.pathOf(named), 'the file is missing', PUT_BACK);
    throw new DamagedError(this.pathOf(newest), `LOCK says that ${fileName(named)} is the newest file`, MOVE_AWAY);
  }

  /**
   * Makes the names of files durable, then writes `LOCK`, and only then removes temporary files, and all other files of
   * this store: one of another store stays.
   */
  async setCurrent({ store, file }: Current): Promise<void> {
    const { disk, path } = this;
    await disk.syncDirectory(path);
    const line = encodeLine(JSON.stringify({ store, file })).toString('latin1').trimEnd();
    await disk.write(this.#lock!, Buffer.from(`${line.padEnd(CURRENT_BYTES - 1)}\n`), 0);
    await disk.sync(this.#lock!);
    for (const name of disk.list(path) ?? []) {
      const [, , temporary] = OURS.exec(name) ?? [];
      const isOld = OURS.test(name) && name !== fileName(file);
      if (!isOld || (temporary === undefined && (await this.#storeOf(`${path}/${name}`)) !== store)) continue;
      await disk.unlink(`${path}/${name}`).catch(() => {}); // if one stays, the next start tries again
    }
  }

  /** Frees the lock. */
  release(): void {
    if (this.#lock !== undefined) this.disk.unlock(this.#lock);
  }

  /** The numbers of the files, the lowest first. */
  #files(): number[] {
    const numbers: number[] = [];
    for (const name of this.disk.list(this.path) ?? []) {
      const [, number, temporary] = OURS.exec(name) ?? [];
      if (number === undefined && LIKE_OURS.test(name)) {
        throw new DamagedError(`${this.path}/${name}`, 'no file of the store has such a name', MOVE_AWAY);
      }
      if (number !== undefined && temporary === undefined) numbers.push(Number(number));
    }
    return numbers.sort((a, b) => a - b);
  }

  /** Throws unless these files can be of one store: see above, where `LOCK` says nothing. */
  async #mustBeOneStore(files: readonly number[]): Promise<void> {
    const [first, second] = files;
    if (second === undefined) return;
    const stores = await Promise.all(files.map((file) => this.#storeOf(this.pathOf(file))));
    if (files.length === 2 && second === first + 1 && stores[0] !== undefined && stores[0] === stores[1]) return;
    const names = files.map(fileName).join(', ');
    throw new DamagedError(
      this.path,
      `LOCK is missing or destroyed, and it is unknown which is the store: ${names}`,
      MOVE_AWAY,
    );
  }

  /** The store's id in the header of a file; undefined: it has no header. */
  async #storeOf(path: string): Promise<unknown> {
    const { disk } = this;
    const fd = disk.openToRead(path);
    if (fd === undefined) return undefined;
    try {
      const bytes = Buffer.alloc(MAX_HEADER_BYTES);
      const header = bytes.subarray(0, await disk.read(fd, bytes, 0));
      return decodeLine(header.subarray(0, Math.max(0, header.indexOf('\n'))))?.store;
    } finally {
      disk.close(fd);
    }
  }

  async #readCurrent(): Promise<Current | undefined> {
    return currentIn(await readLock(this.disk, this.path));
  }
}

/** The bytes of `LOCK`: none before it is first written, which is when the store has a file. */
async function readLock(disk: Disk, path: string): Promise<Buffer> {
  const bytes = Buffer.alloc(CURRENT_BYTES);
  const fd = disk.openToRead(`${path}/${LOCK}`);
  if (fd === undefined) return bytes.subarray(0, 0);
  try {
    return bytes.subarray(0, await disk.read(fd, bytes, 0));
  } finally {
    disk.close(fd);
  }
}

/** What `LOCK` says; undefined: it was never written as a whole, or has been destroyed. */
function currentIn(lock: Buffer): Current | undefined {
  const { store, file } = decodeLine(Buffer.from(lock.toString('latin1').trimEnd(), 'latin1')) ?? {};
  return typeof store === 'string' && typeof file === 'number' ? { store, file } : undefined;
}
