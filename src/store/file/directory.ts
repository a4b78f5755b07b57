/**
 * Which file of a data directory is the store. `LOCK` also says which store it is, and the lowest number of file that
 * may count: so neither a file that is gone nor a copy of last month's is taken for the store, and a directory that
 * ever held one never becomes an empty one by itself.
 */
import { randomBytes } from 'node:crypto';
import { shellWord } from '../../shell.ts';
import type { Disk } from './disk.ts';
import { DamagedError, fileName, type Header, isSealed, seal } from './format.ts';

export const LOCK = 'LOCK';
/** What `LOCK` says stands in one of two sectors, in turn, so that a crash leaves the other one. */
const SECTOR_BYTES = 512;

interface Mark {
  store: string;
  lowest: number;
}

/** `store-000007.jsonl`; while it is written it ends with `.tmp`, and what a repair has kept beside with `.damaged`. */
const OURS = /^store-(\d{6,15})\.jsonl(\.tmp|\.damaged(-\d+)?)?$/;
const LIKE_OURS = /^(store|snapshot|log)-.*\.jsonl/;
const FORMAT_1 = /^(snapshot|log)-\d{6,15}\.jsonl$/;

/** The numbers of the files that may be the store, ascending. Refuses what looks like one, but has another name. */
function filesIn(disk: Disk, dir: string): number[] {
  const files: number[] = [];
  for (const name of disk.list(dir).sort()) {
    const path = `${dir}/${name}`;
    if (FORMAT_1.test(name)) {
      throw new DamagedError(path, 0, 'this is a file of format 1, which no released version wrote', MOVE_AWAY);
    }
    const [, number, ending] = OURS.exec(name) ?? [];
    const isOurs = number !== undefined && name.startsWith(fileName(Number(number)));
    if (!isOurs && LIKE_OURS.test(name)) throw new DamagedError(path, 0, 'no petstore gave this name', MOVE_AWAY);
    if (isOurs && ending === undefined) files.push(Number(number));
  }
  return files.sort((a, b) => a - b);
}

const MOVE_AWAY = 'Move it to another directory.';

/** Whether there is a store, or was one. */
export function holdsStore(disk: Disk, dir: string): boolean {
  const names = disk.list(dir);
  return names.some((name) => LIKE_OURS.test(name)) || (names.includes(LOCK) && disk.size(`${dir}/${LOCK}`) > 0);
}

/** The number of the file that is the store; undefined where there never was one. */
export function currentFile(disk: Disk, dir: string): number | undefined {
  const file = filesIn(disk, dir).at(-1);
  const mark = readMark(disk, dir);
  if (file !== undefined && file >= (mark?.lowest ?? 0)) return file;
  if (mark === undefined) return undefined;
  const path = `${dir}/${fileName(Math.max(mark.lowest, 1))}`;
  const what = file === undefined ? 'the file is missing' : `the file is missing, and ${fileName(file)} is older`;
  const left = [LOCK, ...filesIn(disk, dir).map(fileName)];
  const remove = `rm ${left.map((name) => shellWord(`${dir}/${name}`)).join(' ')}`;
  throw new DamagedError(
    path,
    0,
    what,
    `Bring it back; or, to begin anew or restore a backup here, type \`${remove}\`.`,
  );
}

/** Throws where the file says that it is another one. */
export function checkHeader(disk: Disk, dir: string, file: number, header: Header): void {
  const path = `${dir}/${fileName(file)}`;
  if (header.file !== file)
    throw new DamagedError(path, 0, `the file says that it is ${fileName(header.file)}`, MOVE_AWAY);
  const store = readMark(disk, dir)?.store;
  if (store && store !== header.store) throw new DamagedError(path, 0, 'the file belongs to another store', MOVE_AWAY);
}

export const newStoreId = (): string => randomBytes(8).toString('hex');

/** From now on no file below this one counts. */
export async function writeMark(disk: Disk, dir: string, { store, lowest }: Mark): Promise<void> {
  const path = `${dir}/${LOCK}`;
  const fd = await (disk.list(dir).includes(LOCK) ? disk.openToWrite(path) : disk.create(path));
  try {
    const line = seal(`"store":"${store}","lowest":${lowest}}`).trimEnd();
    await disk.write(fd, Buffer.from(`${line.padEnd(SECTOR_BYTES - 1)}\n`), (lowest % 2) * SECTOR_BYTES);
    await disk.sync(fd);
  } finally {
    disk.close(fd);
  }
}

/** A durable copy of a damaged file; its name is durable with the next one's. Gives its path. */
export async function keepBeside(disk: Disk, dir: string, name: string): Promise<string> {
  const names = disk.list(dir);
  let free = `${name}.damaged`;
  for (let number = 2; names.includes(free); number++) free = `${name}.damaged-${number}`;
  const path = `${dir}/${free}`;
  try {
    await disk.copyFile(`${dir}/${name}`, path);
    const fd = await disk.openToWrite(path);
    await disk.sync(fd).finally(() => disk.close(fd));
    return path;
  } catch (error) {
    await disk.unlink(path).catch(() => {}); // half a copy tells nothing
    throw error;
  }
}

/** Also what a start that was cut off has left. What a repair has kept beside stays. */
export async function removeOthers(disk: Disk, dir: string, current: number): Promise<void> {
  for (const name of disk.list(dir)) {
    const [, number, ending] = OURS.exec(name) ?? [];
    if (number === undefined || ending?.startsWith('.damaged') || name === fileName(current)) continue;
    await disk.unlink(`${dir}/${name}`).catch(() => {}); // it does not count, and the next start tries again
  }
}

/** Where it cannot be read at all, it tells of some store that was there. */
function readMark(disk: Disk, dir: string): Mark | undefined {
  const path = `${dir}/${LOCK}`;
  if (!disk.list(dir).includes(LOCK) || disk.size(path) === 0) return undefined;
  const bytes = Buffer.alloc(2 * SECTOR_BYTES);
  const fd = disk.openToRead(path);
  disk.read(fd, bytes, 0);
  disk.close(fd);
  const marks = [0, SECTOR_BYTES].flatMap((from): Mark[] => {
    const sector = bytes.toString('latin1', from, from + SECTOR_BYTES).trimEnd();
    return isSealed(Buffer.from(sector)) ? [JSON.parse(sector)] : [];
  });
  return marks.sort((a, b) => a.lowest - b.lowest).at(-1) ?? { store: '', lowest: 0 };
}
