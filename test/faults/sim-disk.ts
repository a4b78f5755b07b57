/**
 * A disk in memory that remembers what is durable and what is not, so that every crash can be tried. What was written
 * since the last sync may be kept, dropped, cut or read as zeros, sector by sector; what was done to names since the
 * last sync of the directory may be kept or not, each for itself.
 */
import { createHash } from 'node:crypto';
import { closeSync, constants, openSync } from 'node:fs';
import { basename } from 'node:path';
import { type Disk, realDisk } from '../../src/store/file/disk.ts';

/** The one directory that there is. */
export const DIR = '/sim';
export const SECTOR_BYTES = 512;

type Change = { position: number; bytes: Buffer } | { length: number };

/** For who has the lock already, in this process. */
export const unlocked = (disk: Disk = realDisk): Disk => ({
  ...disk,
  lock(path) {
    const fd = openSync(path, constants.O_RDWR | constants.O_CREAT, 0o600);
    return { fd, isHeld: false, release: () => closeSync(fd) };
  },
});

/** A change of names: an entry set, or removed (undefined). A rename is both at once. */
type Naming = [name: string, file: SimFile | undefined][];

class SimFile {
  durable: Buffer = Buffer.alloc(0);
  now: Buffer = Buffer.alloc(0);
  pending: Change[] = [];
}

function changed(before: Buffer, change: Change): Buffer {
  if ('length' in change) {
    const cut = Buffer.alloc(change.length);
    before.copy(cut, 0, 0, Math.min(before.length, change.length));
    return cut;
  }
  const after = Buffer.alloc(Math.max(before.length, change.position + change.bytes.length));
  before.copy(after);
  change.bytes.copy(after, change.position);
  return after;
}

export type Random = () => number;

/** Small, seeded, and the same everywhere. */
export function seeded(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export class SimDisk implements Disk {
  names = new Map<string, SimFile>();
  durableNames = new Map<string, SimFile>();
  pendingNames: Naming[] = [];
  #open = new Map<number, SimFile>();
  #nextFd = 3;
  /** Called before and after each call that changes anything; may throw in its place. */
  onCall: (call: string) => void = () => {};

  list = (): string[] => [...this.names.keys()];
  mustBeOurs = (): void => {};
  size = (fd: number): number => this.#file(fd).now.length;
  hasName = (fd: number): boolean => [...this.names.values()].includes(this.#file(fd));
  isAt = (fd: number, path: string): boolean => this.names.get(basename(path)) === this.#file(fd);
  read = (fd: number, bytes: Uint8Array, position: number): number => this.#file(fd).now.copy(bytes, 0, position);
  close = (fd: number): void => void this.#open.delete(fd);
  openToWrite = async (path: string): Promise<number> => this.openToRead(path);
  makeDirectory = async (): Promise<void> => {};
  lock = (path: string) => ({ fd: this.openToRead(path), isHeld: false, release: () => {} });

  openToRead(path: string): number {
    const file = this.names.get(basename(path));
    if (!file) throw Object.assign(new Error(`ENOENT: ${path}`), { code: 'ENOENT' });
    this.#open.set(this.#nextFd, file);
    return this.#nextFd++;
  }

  async create(path: string): Promise<number> {
    this.#mustBeNew(path);
    this.#call('create', () => this.#rename([[basename(path), new SimFile()]]));
    return this.openToRead(path);
  }

  async write(fd: number, bytes: Uint8Array, position: number): Promise<void> {
    this.#call('write', () => this.#change(this.#file(fd), { position, bytes: Buffer.from(bytes) }));
  }

  async truncate(fd: number, length: number): Promise<void> {
    this.#call('truncate', () => this.#change(this.#file(fd), { length }));
  }

  async sync(fd: number): Promise<void> {
    this.#call('sync', () => {
      const file = this.#file(fd);
      for (const change of file.pending) file.durable = changed(file.durable, change); // and not what was lost before
      file.pending = [];
    });
  }

  async rename(from: string, to: string): Promise<void> {
    this.#named('rename', [
      [basename(from), undefined],
      [basename(to), this.names.get(basename(from))],
    ]);
  }

  async link(from: string, to: string): Promise<void> {
    this.#mustBeNew(to);
    this.#named('link', [[basename(to), this.names.get(basename(from))]]);
  }

  async unlink(path: string): Promise<void> {
    this.#call('unlink', () => this.#rename([[basename(path), undefined]]));
  }

  /** What Linux does after a failed sync: the pages stay readable, are called clean, and never reach the disk. */
  loseUnsynced(): void {
    for (const file of this.names.values()) file.pending = [];
  }

  /** The same disk as it is now, for another process to find: everything that was not synced still is not. */
  copy(): SimDisk {
    const copies = new Map<SimFile, SimFile>();
    for (const file of this.#reachable()) {
      copies.set(file, Object.assign(new SimFile(), { ...file, pending: [...file.pending] }));
    }
    const disk = new SimDisk();
    for (const [name, file] of this.names) disk.names.set(name, copies.get(file)!);
    for (const [name, file] of this.durableNames) disk.durableNames.set(name, copies.get(file)!);
    disk.pendingNames = this.pendingNames.map((naming) =>
      naming.map(([name, file]) => [name, file && copies.get(file)]),
    );
    return disk;
  }

  /** The content of a file as it reads now. */
  bytes(name: string): Buffer {
    return this.names.get(name)!.now;
  }

  /** The file is suddenly another. */
  replace(name: string, bytes: Buffer): void {
    const file = Object.assign(new SimFile(), { durable: bytes, now: bytes });
    this.names.set(name, file);
    this.durableNames.set(name, file);
  }

  /** Of what a reader finds: names and contents. */
  get fingerprint(): string {
    const hash = createHash('md5');
    for (const [name, { now }] of this.names) hash.update(`${name} ${now.length} `).update(now);
    return hash.digest('base64');
  }

  /** How many things a crash would have to decide. */
  get undecided(): number {
    return [...this.#reachable()].reduce((count, { pending }) => count + pending.length, this.pendingNames.length);
  }

  /** What is found after the power failed now. */
  afterPowerLoss(random: Random): SimDisk {
    const disk = new SimDisk();
    const contents = new Map<SimFile, SimFile>();
    for (const file of this.#reachable()) contents.set(file, settled(file, random));
    for (const [name, file] of this.durableNames) disk.names.set(name, contents.get(file)!);
    const mode = random();
    for (const naming of this.pendingNames) {
      if (mode < 0.3 || (mode < 0.7 && random() < 0.5)) continue;
      disk.#rename(naming.map(([name, file]) => [name, file && contents.get(file)]));
    }
    disk.pendingNames = [];
    disk.durableNames = new Map(disk.names);
    return disk;
  }

  #reachable(): Set<SimFile> {
    const pending = this.pendingNames.flatMap((naming) => naming.flatMap(([, file]) => file ?? []));
    return new Set([...this.names.values(), ...this.durableNames.values(), ...pending]);
  }

  #file(fd: number): SimFile {
    const file = this.#open.get(fd);
    if (!file) throw new Error(`EBADF: ${fd}`);
    return file;
  }

  #mustBeNew(path: string): void {
    if (this.names.has(basename(path))) throw Object.assign(new Error(`EEXIST: ${path}`), { code: 'EEXIST' });
  }

  #call(name: string, work: () => void): void {
    this.onCall(name);
    work();
    this.onCall(`${name} done`);
  }

  #named(call: string, naming: Naming): void {
    this.#call(call, () => this.#rename(naming));
    this.#call('sync of the directory', () => {
      this.durableNames = new Map(this.names);
      this.pendingNames = [];
    });
  }

  #change(file: SimFile, change: Change): void {
    file.now = changed(file.now, change);
    file.pending.push(change);
  }

  #rename(naming: Naming): void {
    for (const [name, file] of naming) {
      if (file) this.names.set(name, file);
      else this.names.delete(name);
    }
    this.pendingNames.push(naming);
  }
}

/** The file with each unsynced change kept, dropped, cut or zeroed. */
function settled(file: SimFile, random: Random): SimFile {
  let bytes = file.durable;
  const mode = random();
  for (const change of file.pending) {
    const fate = mode < 0.25 ? 0 : mode < 0.4 ? 1 : random();
    if (fate < 0.25) bytes = changed(bytes, change);
    else if (fate < 0.45 || 'length' in change) continue;
    else if (fate < 0.7) bytes = changed(bytes, cut(change, random));
    else bytes = changed(bytes, zeroed(change, random));
  }
  return Object.assign(new SimFile(), { durable: bytes, now: bytes });
}

type Write = Extract<Change, { position: number }>;

function cut({ position, bytes }: Write, random: Random): Write {
  return { position, bytes: bytes.subarray(0, Math.floor(random() * (bytes.length + 1))) };
}

function zeroed({ position, bytes }: Write, random: Random): Write {
  const left = Buffer.from(bytes);
  for (let start = 0; start < bytes.length; ) {
    const end = Math.min(bytes.length, (Math.floor((position + start) / SECTOR_BYTES) + 1) * SECTOR_BYTES - position);
    if (random() < 0.5) left.fill(0, start, end);
    start = end;
  }
  return { position, bytes: left };
}
