/**
 * A data directory is its owner's alone. Another user who can write in it could put a link in place of a file that we
 * write, or a socket of his own in place of the server's: so every command refuses such a directory.
 */
import fs from 'node:fs';
import { shellWord } from '../../quoting.ts';

const FOR_GROUP = 0o020;
const FOR_OTHERS = 0o002;

/**
 * Throws if the path belongs to another user, or if others could change it. `toMend`: the advice to make it ours alone.
 */
function refuseOthers(path: string, { uid, gid, mode }: fs.Stats, toMend: string): void {
  const us = process.geteuid?.();
  if (us === undefined) return; // no owners here
  if (uid !== us) {
    const advice = `Run this as that user, such as by \`sudo -u '#${uid}' …\`, or name a directory of your own.`;
    throw new Error(`${path} belongs to another user (uid ${uid}, and this runs as ${us}). ${advice}`);
  }
  // Many users have a private group (with their own number), which may write their files.
  const isGroupOurs = gid === uid && uid !== 0;
  if ((mode & (isGroupOurs ? FOR_OTHERS : FOR_OTHERS | FOR_GROUP)) !== 0) {
    throw new Error(`${path} can be written by other users. ${toMend}`);
  }
}

/** Checks the directory, a link that leads there, and each file or socket in it that we use (`isKept`). */
export function refuseOthersDirectory(dir: string, isKept: (name: string) => boolean): void {
  const here = fs.lstatSync(dir, { throwIfNoEntry: false });
  if (here === undefined) return;
  const inside = shellWord(`${dir}/petstore`);
  const advice = `Name a directory inside it, such as ${inside}, which only you can write; or, if nobody else uses this one`;
  const chmod = `${advice}, type \`chmod 700 ${shellWord(dir)}\`.`;
  // The owner of a link can make it lead elsewhere. The mode of a link means nothing.
  if (here.isSymbolicLink() && here.uid !== 0) refuseOthers(dir, Object.assign(here, { mode: 0 }), chmod);
  const there = fs.statSync(dir, { throwIfNoEntry: false });
  if (there === undefined) return;
  if (there.isDirectory()) refuseOthers(dir, there, chmod);
  for (const name of there.isDirectory() ? fs.readdirSync(dir).filter(isKept) : []) {
    const path = `${dir}/${name}`;
    const stat = fs.lstatSync(path, { throwIfNoEntry: false });
    if (stat?.isSymbolicLink()) throw linkError(path);
    if (stat) refuseOthers(path, stat, chmodFile(path));
  }
}

const linkError = (path: string) => new Error(`${path} is a link: the files of a store must lie in its directory`);
const chmodFile = (path: string): string => `See whether it was changed, and type \`chmod 600 ${shellWord(path)}\`.`;

/** Opens a file of a data directory: no link is followed, and the open file is checked, not its name (TOCTOU). */
export function openOurs(path: string, flags: number, mode: number): number {
  const { O_NOFOLLOW = 0, O_NONBLOCK = 0 } = fs.constants; // a FIFO or a device must keep nobody waiting
  let fd: number;
  try {
    fd = fs.openSync(path, flags | O_NOFOLLOW | O_NONBLOCK, mode);
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === 'ELOOP' ? linkError(path) : error;
  }
  try {
    const stat = fs.fstatSync(fd);
    if (!stat.isFile()) throw new Error(`${path} is not a file`);
    refuseOthers(path, stat, chmodFile(path));
    return fd;
  } catch (error) {
    fs.closeSync(fd);
    throw error;
  }
}
