import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { LOCK } from './directory.ts';

/** Another process has the store open. */
export class InUseError extends Error {
  constructor(dir: string) {
    super(`${dir} is in use by another petstore`);
  }
}

export interface Lock {
  release(): void;
  /** What the operator should know of how it was taken. */
  notice?: string;
}

/**
 * One process at a time, by flock(1): a child inherits our open LOCK file and locks it. The lock belongs to the open
 * file, so it stays when the child ends, holds while we are stopped, and is freed by the kernel however we die. Where
 * there is no such program, `isAlive` asks whether another process answers for this directory. It is asked also with
 * the lock in hand, for the other may be one that found no such program.
 */
export async function takeLock(dir: string, isAlive = async () => false): Promise<Lock> {
  const path = `${dir}/${LOCK}`;
  if (fs.lstatSync(path, { throwIfNoEntry: false })?.isFile() === false) throw new Error(`${path} is not a file`);
  const fd = fs.openSync(path, 'a', 0o600);
  const release = () => fs.closeSync(fd);
  const { status, signal, error } = flock(fd);
  const isHeld = status === 1;
  if (isHeld || (await isAlive())) {
    release();
    throw new InUseError(dir);
  }
  if (status === 0) return { release };
  const why = error ? error.message : `flock ended with ${status ?? signal}`;
  return { release, notice: `the store is not locked against a process that does not answer: ${why}` };
}

function flock(fd: number) {
  const path = [process.env.PATH, '/usr/bin', '/bin'].filter(Boolean).join(':'); // a service's may be short
  const env = { ...process.env, PATH: path };
  return spawnSync('flock', ['-n', '-x', '3'], { env, stdio: ['ignore', 'ignore', 'ignore', fd] });
}
