/** Work on a whole store beside serving it: verify, backup, restore. */
import { randomBytes } from 'node:crypto';
import { createReadStream, realpathSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { StateAhead } from '../ahead.ts';
import { prove, VersionError } from '../change-json.ts';
import type { Proof } from '../model.ts';
import { State } from '../state.ts';
import { currentFile, type Home, newStoreId, refuseOthers } from './directory.ts';
import { type Disk, realDisk } from './disk.ts';
import { DamagedError, encodeFile, type Header, inPieces } from './format.ts';
import { claim, type LockOptions } from './open.ts';
import { type Found, type Progress, readBackupFrom } from './read.ts';
import { becomeStore, mustAgree, readTwiceIfDamaged, recover, writeWhole } from './rewrite.ts';

/** The name of a backup that stands for standard output, or standard input. */
export const STANDARD = '-';
/** The beginning of every line of a file. */
const BEGINNING = '{"crc":"';
const READ_BYTES = 1024 * 1024;

interface ReadOptions {
  disk?: Disk;
  onProgress?: Progress;
}

/**
 * Reads and checks the whole store, and changes nothing: it needs no lock, and works on a read-only mount. `notices`:
 * the faults that the next start will mend by itself.
 */
export async function readStore(
  dir: string,
  { disk = realDisk, onProgress }: ReadOptions = {},
): Promise<{ found: Found; state: State; proof: Proof; notices: string[] }> {
  refuseOthers(disk, dir);
  const [found, state] = await readTwiceIfDamaged(async () => {
    const state = new State();
    return [await recover(disk, dir, state, { onProgress }), state] as const;
  });
  if (!found) throw new Error(`there is no store in ${dir}`);
  return { found, state, proof: prove(state), notices: found.torn ? [found.torn] : [] };
}

/** Writes the whole store as one file, which gets its name only when it is whole and durable. */
export async function backup(dir: string, target: string, options: ReadOptions = {}): Promise<Proof> {
  const { disk = realDisk } = options;
  const isInside = () => `${realpathSync(dirname(resolve(target)))}/`.startsWith(`${realpathSync(dir)}/`);
  if (target !== STANDARD && isInside()) throw new Error(`${target} is inside the data directory`);
  if (target !== STANDARD) mustBeNew(disk, target);
  const { found, state, proof } = await readStore(dir, options);
  await writeBackup(disk, target, { ...found.header, first: found.batch }, state);
  return proof;
}

export async function writeBackup(disk: Disk, target: string, header: Header, state: State): Promise<void> {
  if (target === STANDARD) return printBackup(header, state);
  mustBeNew(disk, target);
  const path = resolve(target);
  // Other users may be able to write in this directory, so the temporary name is one that they cannot guess.
  const unfinished = `${path}.${randomBytes(8).toString('hex')}.tmp`;
  try {
    await writeWhole(disk, unfinished, header, state);
    await disk.link(unfinished, path); // fails if another process has taken the name meanwhile
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') throw new Error(`${target} exists`);
    if (syscall === 'fsync') await disk.unlink(path).catch(() => {}); // its name may not be durable
    throw Object.assign(error as Error, { path: target }); // the target's disk has no room, not the store's
  } finally {
    await disk.unlink(unfinished).catch(() => {});
  }
}

/** The real disk, except that a file that is not finished when the process exits is removed. */
export function tidyDisk(): Disk {
  const create = (path: string) => {
    process.once('exit', () => rmSync(path, { force: true }));
    return realDisk.create(path);
  };
  return { ...realDisk, create };
}

/** Writes as fast as the reader reads, and no faster. */
async function printBackup(header: Header, state: State): Promise<void> {
  const written = (text: string) =>
    new Promise<void>((resolve, reject) =>
      process.stdout.write(text, (error) => (error ? reject(notPrinted(error)) : resolve())),
    );
  for (const piece of inPieces(encodeFile(header, state))) await written(piece);
}

function notPrinted(error: NodeJS.ErrnoException): Error {
  if (error.code === 'EPIPE') return new Error('the backup is not whole: its reader went away');
  return Object.assign(error, { path: 'standard output' }); // it has no room, not the store's disk
}

function mustBeNew(disk: Disk, target: string): void {
  const path = resolve(target);
  if (disk.list(dirname(path)).includes(basename(path))) throw new Error(`${target} exists`);
}

/** Fills an empty store from a backup. The new file is read back and checked. `failure`: see `tryBecomeStore`. */
export async function restore(
  backup: string,
  dir: string,
  { disk = realDisk, isAlive, onProgress }: LockOptions & ReadOptions = {},
): Promise<{ proof: Proof; failure: Error | undefined }> {
  const state = new State();
  const first = await readBackup(backup, state, onProgress);
  const lock = await claim(disk, dir, isAlive);
  try {
    const before = new State();
    const found = await recover(disk, dir, before);
    // An id that the store has given out must not be given again.
    const wasUsed = !new StateAhead(before).isEmpty() || before.counters.nextSlot > 0;
    if (wasUsed) throw new Error(`the store in ${dir} holds something, or once did; restore into a new directory`);
    // An empty store keeps its id: `LOCK` holds it, and stays as it is if the disk is full or we are killed now.
    const { store, file } = found?.header ?? { store: newStoreId(), file: 0 };
    const header = { store, file: file + 1, first: Math.max(first, (found?.batch ?? 0) + 1) };
    const failure = await tryBecomeStore({ disk, dir, fd: lock.fd }, header, state);
    return { proof: prove(state), failure };
  } finally {
    lock.release();
  }
}

/**
 * Reads a backup; `-` is standard input. Damage in it is no damage of the store. Returns the number of its last batch.
 */
export async function readBackup(file: string, state: State, onProgress?: Progress): Promise<number> {
  const name = file === STANDARD ? 'standard input' : file;
  try {
    const found = await readBackupFrom(beginsAsBackup(name, piecesIn(file, onProgress)), name, state);
    mustAgree(name, found, state);
    return found.batch;
  } catch (error) {
    if (error instanceof VersionError) throw new VersionError(`${name}: ${error.what}`, error.isOlder);
    if (!(error instanceof DamagedError)) throw error;
    const advice = 'It is the backup that is damaged; nothing was restored.';
    throw new DamagedError(name, error.offset, error.what, advice);
  }
}

/** The pieces of a backup, in any directory and of any owner. It refuses a FIFO or a device, which could block. */
async function* piecesIn(file: string, onProgress?: Progress): AsyncGenerator<Buffer> {
  if (file === STANDARD) return yield* process.stdin;
  const about = statSync(file);
  if (!about.isFile()) throw new Error(`${file} is not a file; \`-\` reads standard input`);
  let bytes = 0;
  try {
    for await (const piece of createReadStream(file, { highWaterMark: READ_BYTES })) {
      yield piece;
      onProgress?.((bytes += piece.length), about.size);
    }
  } catch (error) {
    throw Object.assign(error as Error, { path: file });
  }
}

async function* beginsAsBackup(name: string, pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let isBegun = false;
  for await (const piece of pieces) {
    if (!isBegun && !BEGINNING.startsWith(piece.toString('latin1', 0, BEGINNING.length))) throw noBackup(name);
    isBegun = true;
    yield piece;
  }
  if (!isBegun) throw noBackup(name);
}

const noBackup = (name: string) => new Error(`${name} is no backup of a store; nothing was restored`);

/** Makes a state the store. If its file is in place, but perhaps not durably, the error is returned, not thrown. */
async function tryBecomeStore(home: Home, header: Header, state: State): Promise<Error | undefined> {
  try {
    await becomeStore(home, header, state);
    return undefined;
  } catch (error) {
    if (currentFile(home.disk, home.dir) !== header.file) throw error;
    return error as Error;
  }
}
