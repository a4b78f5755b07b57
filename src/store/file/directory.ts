/**
 * Finds the file in a data directory that is the store. `LOCK` names the store and the lowest file number that is
 * accepted. So neither a lost file nor an old copy goes unnoticed, and a directory that once held a store is never
 * taken for an empty one.
 */
import { randomBytes } from 'node:crypto';
import { shellWord } from '../../quoting.ts';
import { type Disk, isNoRoom } from './disk.ts';
import { DamagedError, fileName, type Header } from './format.ts';
import { LOCK, type Mark, readMark, writeMark } from './lock.ts';

/** `store-000007.jsonl`, with `.tmp` while it is written. */
const OURS = /^store-(\d{6,15})\.jsonl((?:\.[0-9a-f]{16})?\.tmp|\.damaged(?:-\d+)?)?$/;
/** Names that are ours or almost so; the files of earlier versions were called `snapshot-…` and `log-…`. */
const LIKE_OURS = /^(store|snapshot|log)-.*\.jsonl/;
/**
 * Names that may stand in a directory without a store: the rest of an interrupted start, `lost+found` of a mounted
 * disk, the seed in `data/`.
 */
const NOBODYS = [LOCK, 'admin.sock', 'lost+found', 'seed.json'];
const MOVE_AWAY = 'Move it to another directory.';

export const newStoreId = (): string => randomBytes(8).toString('hex');

/** Throws if another user could write there, and so replace our files. */
export function refuseOthers(disk: Disk, dir: string): void {
  disk.mustBeOurs(dir, (name) => name === LOCK || name === 'admin.sock' || LIKE_OURS.test(name));
}

/** True if there is a store, or was one. */
export function holdsStore(disk: Disk, dir: string): boolean {
  return readMark(disk, dir) !== undefined || disk.list(dir).some((name) => LIKE_OURS.test(name));
}

/** Throws if the directory holds other files and no store: a mistyped directory must not become a store. */
export function refuseForeign(disk: Disk, dir: string): void {
  if (holdsStore(disk, dir) || disk.list(dir).every((name) => NOBODYS.includes(name))) return;
  throw new Error(`${dir} holds other files and no store; it was left as it is. Name another directory.`);
}

/** The number of the file that is the store; undefined: there never was one. */
export function currentFile(disk: Disk, dir: string): number | undefined {
  const mark = readMark(disk, dir); // read first: a running server may rename a new file meanwhile
  const files = filesIn(disk, dir);
  const file = files.at(-1);
  if (mark === undefined || (file !== undefined && file >= mark.lowest)) return file;
  const missing = `${dir}/${fileName(Math.max(mark.lowest, 1))}`;
  const what = file === undefined ? 'the file is missing' : `the file is missing, and ${fileName(file)} is older`;
  const left = [LOCK, ...files.map(fileName)].map((name) => shellWord(`${dir}/${name}`)).join(' ');
  const copied = 'A copy that was made while a server ran may lack it: `petstore backup` makes one that is whole.';
  const advice = `Bring it back; or, to begin anew or restore a backup here, type \`rm ${left}\`. ${copied}`;
  throw new DamagedError(missing, 0, what, advice);
}

/** The numbers of the files that may be the store, ascending. Throws if a name is almost one of ours. */
function filesIn(disk: Disk, dir: string): number[] {
  const files: number[] = [];
  for (const name of disk.list(dir).sort()) {
    const [, number, ending] = OURS.exec(name) ?? [];
    if (name.startsWith(fileName(Number(number)))) {
      if (ending === undefined) files.push(Number(number));
    } else if (LIKE_OURS.test(name)) {
      throw new DamagedError(`${dir}/${name}`, 0, 'no file of this format has such a name', MOVE_AWAY);
    }
  }
  return files.sort((a, b) => a - b);
}

/** Throws if the header names another file or another store. */
export function checkHeader(dir: string, number: number, { store, file }: Header, mark: Mark | undefined): void {
  const refused = (what: string) => new DamagedError(`${dir}/${fileName(number)}`, 0, what, MOVE_AWAY);
  if (file !== number) throw refused(`the file says that it is ${fileName(file)}`);
  if (mark?.store && mark.store !== store) throw refused('the file belongs to another store');
}

/** A data directory whose lock we hold. `fd`: that of `LOCK`. */
export interface Home {
  disk: Disk;
  dir: string;
  fd: number;
}

const ELSEWHERE = 'ELSEWHERE';
export const isElsewhere = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === ELSEWHERE;

/**
 * Throws if our `LOCK` is not in the directory: then the directory was moved, removed or replaced, and a name that we
 * give or remove there could be one of another store.
 */
export function mustBeHome({ disk, dir, fd }: Home): void {
  const what = `${dir} is not the directory that was opened, or LOCK in it is another one; nothing was changed there`;
  if (!disk.isAt(fd, `${dir}/${LOCK}`)) throw Object.assign(new Error(what), { code: ELSEWHERE });
}

/**
 * Writes `LOCK`, so that no older file is accepted; only then removes older files and the rest of an interrupted start.
 * A `.damaged` file stays. Without room for `LOCK`, or without a descriptor for the directory, all files
 * stay, and the next start or compaction tries again. Returns true if `LOCK` is written and durable.
 */
export async function dropOthers({ disk, dir, fd }: Home, mark: Mark): Promise<boolean> {
  let names: string[];
  try {
    names = disk.list(dir);
    await writeMark(disk, fd, mark).then(() => disk.sync(fd));
  } catch (error) {
    if (isNoRoom(error) || (error as NodeJS.ErrnoException).syscall === 'scandir') return false;
    throw error;
  }
  for (const name of names) {
    const [, number, ending] = OURS.exec(name) ?? [];
    if (number === undefined || ending?.startsWith('.damaged') || name === fileName(mark.lowest)) continue;
    await disk.unlink(`${dir}/${name}`).catch(() => {}); // the file does not count, and the next start tries again
  }
  return true;
}
