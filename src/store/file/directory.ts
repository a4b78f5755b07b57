/**
 * Which file of a data directory is the store. `LOCK` also says which store it is, and the lowest number of file that
 * may count: so neither a file that is gone nor a copy of last month's is taken for the store, and a directory that
 * ever held one never becomes an empty one by itself.
 */
import { randomBytes } from 'node:crypto';
import { shellWord } from '../../quoting.ts';
import { type Disk, isNoRoom } from './disk.ts';
import { DamagedError, fileName, type Header } from './format.ts';
import { LOCK, type Mark, readMark, writeMark } from './lock.ts';

/** `store-000007.jsonl`; while it is written it ends with `.tmp`, and what a repair has kept beside with `.damaged`. */
const OURS = /^store-(\d{6,15})\.jsonl((?:\.[0-9a-f]{16})?\.tmp|\.damaged(?:-\d+)?)?$/;
const LIKE_OURS = /^(store|snapshot|log)-.*\.jsonl/;
/** No store and no one else's: what a start that was cut off leaves, a file system of its own, the seed in `data/`. */
const NOBODYS = [LOCK, 'admin.sock', 'lost+found', 'seed.json'];
const MOVE_AWAY = 'Move it to another directory.';

export const newStoreId = (): string => randomBytes(8).toString('hex');

/** Whoever else can write there could put anything in the place of our files. */
export function refuseOthers(disk: Disk, dir: string): void {
  disk.mustBeOurs(dir, (name) => name === LOCK || name === 'admin.sock' || LIKE_OURS.test(name));
}

/** Whether there is a store, or was one. */
export function holdsStore(disk: Disk, dir: string): boolean {
  return readMark(disk, dir) !== undefined || disk.list(dir).some((name) => LIKE_OURS.test(name));
}

/** A mistyped directory must not become a store. It is left as it is. */
export function refuseForeign(disk: Disk, dir: string): void {
  if (holdsStore(disk, dir) || disk.list(dir).every((name) => NOBODYS.includes(name))) return;
  throw new Error(`${dir} holds other files and no store; it was left as it is. Name another directory.`);
}

/** The number of the file that is the store; undefined where there never was one. */
export function currentFile(disk: Disk, dir: string): number | undefined {
  const mark = readMark(disk, dir); // first: a server beside us may be giving a new file its name
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

/** The numbers of the files that may be the store, ascending. Refuses what looks like one, but has another name. */
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

/** Throws where the file says that it is another one. */
export function checkHeader(dir: string, number: number, { store, file }: Header, mark: Mark | undefined): void {
  const refused = (what: string) => new DamagedError(`${dir}/${fileName(number)}`, 0, what, MOVE_AWAY);
  if (file !== number) throw refused(`the file says that it is ${fileName(file)}`);
  if (mark?.store && mark.store !== store) throw refused('the file belongs to another store');
}

/** A second name of a damaged file. Gives its path. */
export async function keepBeside(disk: Disk, dir: string, name: string): Promise<string> {
  const names = disk.list(dir);
  let free = `${name}.damaged`;
  for (let number = 2; names.includes(free); number++) free = `${name}.damaged-${number}`;
  await disk.link(`${dir}/${name}`, `${dir}/${free}`);
  return `${dir}/${free}`;
}

/** A data directory of which we hold the lock. `fd`: that of `LOCK`. */
export interface Home {
  disk: Disk;
  dir: string;
  fd: number;
}

/**
 * First `LOCK` says that no older file counts; only then they go, and what a start that was cut off has left. What a
 * repair has kept beside stays. Without room for it, or a descriptor, all stay: the next start or compaction tries
 * again. Gives whether `LOCK` says it.
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
    await disk.unlink(`${dir}/${name}`).catch(() => {}); // it does not count, and the next start tries again
  }
  return true;
}
