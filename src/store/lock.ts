import { spawnSync } from 'node:child_process';
import fs from 'node:fs';

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

/** `flock`: could not take the lock. */
const HELD = 1;

/** A service's PATH may be short. */
const PROGRAMS = ['flock', '/usr/bin/flock', '/bin/flock'];

/**
 * One process at a time, by flock(1): a child inherits our open LOCK file and locks it. The lock belongs to the open
 * file, so it stays when the child ends, holds while we are stopped, and is freed by the kernel however we die.
 * Where there is no such program, `isAlive` asks whether another process answers for this directory: good enough
 * against a mistake, but not against a stopped process. It is asked also with the lock in hand, for the other may be
 * one that found no such program.
 */
export async function takeLock(dir: string, isAlive: () => Promise<boolean>): Promise<Lock> {
  const fd = fs.openSync(`${dir}/LOCK`, 'a', 0o600);
  const release = () => fs.closeSync(fd);
  const child = flock(fd);
  if (child.status === HELD || (await isAlive())) {
    release();
    throw new InUseError(dir);
  }
  if (child.status === 0) return { release };
  const why = child.error ? child.error.message : `flock ended with ${child.status ?? child.signal}`;
  return { release, notice: `the store is not locked against a stopped process: ${why}` };
}

function flock(fd: number) {
  const run = (program: string) => spawnSync(program, ['-n', '-x', '3'], { stdio: ['ignore', 'ignore', 'ignore', fd] });
  const [first, ...others] = PROGRAMS;
  let child = run(first);
  for (const program of others) {
    if ((child.error as NodeJS.ErrnoException | undefined)?.code !== 'ENOENT') break;
    child = run(program);
  }
  return child;
}
