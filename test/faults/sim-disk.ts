/**
 * A disk in memory that knows what is durable and what is not, so that every crash can be tried. What was written since
 * the last sync may be kept, dropped, cut or read as zeros, sector by sector; what was done to names since the last sync
 * of the directory may be kept or not, each for itself. It is slow at random, becomes full, and fails on demand.
 */
import { createHash } from 'node:crypto';
import { basename } from 'node:path';
import type { Disk } from '../../src/store/file/disk.ts';
import { below, type Random } from '../random.ts';

/** The one directory that there is. */
export const DIR = '/sim';
const DIR_FD = 3;
const SECTOR_BYTES = 512;
const MAX_DELAY_TURNS = 3;

type Change = { position: number; bytes: Buffer } | { length: number };
/** A change of names: an entry set, or removed. A rename is both at once. */
type Naming = [name: string, file: SimFile | undefined][];

class SimFile {
  now: Buffer = Buffer.alloc(0);
  durable: Buffer = Buffer.alloc(0);
  /** Since the last sync. Of a sync that failed they are forgotten: the kernel takes the pages for clean. */
  pending: Change[] = [];

  copy(): SimFile {
    return Object.assign(new SimFile(), { now: this.now, durable: this.durable, pending: [...this.pending] });
  }
}

export const codeError = (code: string): Error => Object.assign(new Error(`${code}: simulated`), { code });

export class SimDisk implements Disk {
  names = new Map<string, SimFile>();
  #durableNames = new Map<string, SimFile>();
  #pendingNames: Naming[] = [];
  readonly #open = new Map<number, { file: SimFile; name: string }>();
  #nextFd = DIR_FD + 1;
  /** How many more bytes fit on the disk. */
  room = Number.POSITIVE_INFINITY;
  /** How slow calls are. Without it they take one turn of the event loop. */
  slowness: Random | undefined;
  /**
   * Called before each call that changes something, and after it (`done`): may throw in its place. `sync store`: of the
   * current file; `sync new`: of the one that is to take its place; and so on.
   */
  onCall: (call: string) => void | Promise<void> = () => {};
  /** True for a call, with the one before it, that does nothing: as if the program had forgotten it. */
  forgets: (call: string, before: string) => boolean = () => false;
  #before = '';

  list = (): string[] => [...this.names.keys()];
  mustBeOurs = (): void => {};
  makeDirectory = async (): Promise<void> => {};
  makePrivate = (): void => {};
  close = (fd: number): void => void this.#open.delete(fd);
  size = (fd: number): number => this.#file(fd).now.length;

  read = async (fd: number, into: Uint8Array, position: number): Promise<number> => {
    return this.#file(fd).now.copy(into, 0, position);
  };

  openToRead = (path: string): number | undefined => {
    return this.names.has(basename(path)) ? this.openToWrite(path) : undefined;
  };

  openToWrite = (path: string): number => {
    const name = basename(path);
    const file = this.names.get(name);
    if (!file) throw codeError('ENOENT');
    this.#open.set(this.#nextFd, { file, name });
    return this.#nextFd++;
  };

  lock(path: string) {
    if (!this.names.has(basename(path))) this.#rename([[basename(path), new SimFile()]]);
    const fd = this.openToWrite(path);
    return { fd, state: 'ours' as const };
  }

  unlock = (fd: number): void => this.close(fd);

  async create(path: string): Promise<number> {
    await this.#call('create', () => {
      const file = this.names.get(basename(path));
      if (file) this.#change(file, { length: 0 });
      else this.#rename([[basename(path), new SimFile()]]);
    });
    return this.openToWrite(path);
  }

  async write(fd: number, bytes: Uint8Array, position: number): Promise<void> {
    const file = this.#file(fd);
    const isAgain = position + bytes.length <= file.now.length && this.#kindOf(fd) === 'store';
    await this.#call(`${isAgain ? 'rewrite' : 'write'} ${this.#kindOf(fd)}`, () => {
      const fits = Math.min(bytes.length, Math.max(0, this.room + file.now.length - position));
      this.room -= Math.max(0, position + fits - file.now.length);
      this.#change(file, { position, bytes: Buffer.from(bytes.subarray(0, fits)) });
      if (fits < bytes.length) throw codeError('ENOSPC');
    });
  }

  async truncate(fd: number, length: number): Promise<void> {
    const file = this.#file(fd);
    await this.#call('truncate', () => {
      this.room += file.now.length - length;
      this.#change(file, { length });
    });
  }

  async sync(fd: number): Promise<void> {
    const file = this.#file(fd);
    const { pending } = file;
    await this.#call(`sync ${this.#kindOf(fd)}`, () => {
      for (const change of pending) file.durable = changed(file.durable, change);
      file.pending = file.pending.slice(pending.length);
    });
  }

  async rename(from: string, to: string): Promise<void> {
    await this.#call('rename', () => {
      const file = this.names.get(basename(from))!;
      this.room += this.names.get(basename(to))?.now.length ?? 0;
      this.#rename([
        [basename(from), undefined],
        [basename(to), file],
      ]);
      for (const open of this.#open.values()) if (open.file === file) open.name = basename(to);
    });
  }

  async unlink(path: string): Promise<void> {
    const file = this.names.get(basename(path));
    if (!file) throw codeError('ENOENT');
    await this.#call('unlink', () => {
      this.room += file.now.length;
      this.#rename([[basename(path), undefined]]);
    });
  }

  openDirectory = (path: string): number => {
    if (path !== DIR) throw codeError('ENOTDIR');
    return DIR_FD;
  };

  syncDirectory = (path: string): Promise<void> => this.syncNames(this.openDirectory(path));

  async syncNames(fd: number): Promise<void> {
    if (fd !== DIR_FD) throw codeError('EBADF');
    await this.#call('sync directory', () => {
      this.#durableNames = new Map(this.names);
      this.#pendingNames = [];
    });
  }

  /** The pages of syncs that failed are clean: only what is written again becomes durable. */
  loseUnsynced(): void {
    for (const file of this.names.values()) file.pending = [];
  }

  /** True if every crash leaves the same. */
  get isSettled(): boolean {
    return this.#pendingNames.length === 0 && [...this.names.values()].every(({ now, durable }) => now === durable);
  }

  /** Of all that a start reads. */
  get fingerprint(): string {
    const hash = createHash('sha1');
    for (const name of this.list().sort()) hash.update(name).update(this.names.get(name)!.now);
    return hash.digest('hex');
  }

  /** The same disk, at this moment; without what has it open. */
  copy(): SimDisk {
    const disk = new SimDisk();
    const copies = new Map<SimFile, SimFile>();
    const copied = (file: SimFile): SimFile => {
      if (!copies.has(file)) copies.set(file, file.copy());
      return copies.get(file)!;
    };
    for (const [name, file] of this.names) disk.names.set(name, copied(file));
    for (const [name, file] of this.#durableNames) disk.#durableNames.set(name, copied(file));
    disk.#pendingNames = this.#pendingNames.map((naming) => naming.map(([name, file]) => [name, file && copied(file)]));
    disk.forgets = this.forgets;
    return disk;
  }

  /** The disk as it may be after a power failure now. */
  afterPowerFailure(random: Random): SimDisk {
    const disk = new SimDisk();
    const names = new Map(this.#durableNames);
    for (const naming of this.#pendingNames) {
      if (random() < 0.5) continue;
      for (const [name, file] of naming) file ? names.set(name, file) : names.delete(name);
    }
    for (const [name, file] of names) {
      const left = new SimFile();
      left.now = left.durable = afterPowerFailure(file, random);
      disk.names.set(name, left);
    }
    disk.#durableNames = new Map(disk.names);
    disk.forgets = this.forgets;
    return disk;
  }

  /** Sets a file as it is, durably. */
  put(name: string, bytes: Buffer): void {
    const file = Object.assign(new SimFile(), { now: bytes, durable: bytes });
    this.names.set(name, file);
    this.#durableNames.set(name, file);
  }

  bytes(name: string): Buffer {
    return this.names.get(name)!.now;
  }

  #file(fd: number): SimFile {
    return this.#open.get(fd)!.file;
  }

  #kindOf(fd: number): string {
    const { name } = this.#open.get(fd)!;
    return name === 'LOCK' ? name : name.endsWith('.tmp') ? 'new' : 'store';
  }

  #change(file: SimFile, change: Change): void {
    file.now = changed(file.now, change);
    file.pending.push(change);
  }

  #rename(naming: Naming): void {
    for (const [name, file] of naming) file ? this.names.set(name, file) : this.names.delete(name);
    this.#pendingNames.push(naming);
  }

  /** As late as a real call, and not always as late: others go on meanwhile. */
  async #call(call: string, effect: () => void): Promise<void> {
    const turns = this.slowness ? below(this.slowness, MAX_DELAY_TURNS + 1) : 1;
    for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
    await this.onCall(call);
    const isForgotten = this.forgets(call, this.#before);
    this.#before = call;
    if (!isForgotten) effect();
    await this.onCall(`${call} done`);
  }
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

/** Each sector that was written since the last sync: written or not; and the file as long as before, or longer. */
function afterPowerFailure({ durable, pending }: SimFile, random: Random): Buffer {
  let left = durable;
  for (const change of pending) {
    if ('length' in change) {
      if (random() < 0.5) left = changed(left, change);
      continue;
    }
    const { position, bytes } = change;
    const mostlyWritten = random();
    for (let at = position; at < position + bytes.length; ) {
      const end = Math.min(position + bytes.length, (Math.floor(at / SECTOR_BYTES) + 1) * SECTOR_BYTES);
      if (random() < mostlyWritten)
        left = changed(left, { position: at, bytes: bytes.subarray(at - position, end - position) });
      at = end;
    }
    // The length is written apart from the content: what it covers and nobody wrote reads as zeros.
    if (random() < 0.3) left = changed(left, { length: Math.max(left.length, position + bytes.length) });
  }
  const isCut = left.length > durable.length && random() < 0.3;
  if (isCut) left = changed(left, { length: durable.length + below(random, left.length - durable.length) });
  return left;
}
