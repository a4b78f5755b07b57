import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { createServer, type Server } from 'node:net';

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

/**
 * One process at a time, by flock(1): a child inherits our open LOCK file and locks it. The lock belongs to the open
 * file, so it stays when the child ends, holds while we are stopped, and is freed by the kernel however we die.
 * Where there is no such program, a name is taken that one process can have, and `isAlive` asks whether another process
 * answers for this directory. It is asked also with the lock in hand, for the other may be one that found no such
 * program.
 */
export async function takeLock(dir: string, isAlive = async () => false): Promise<Lock> {
  const fd = fs.openSync(`${dir}/LOCK`, 'a', 0o600);
  const { status, signal, error } = flock(fd);
  const name = status === 0 || status === HELD ? undefined : await takeName(dir);
  const release = () => {
    fs.closeSync(fd);
    name?.server?.close();
  };
  if (status === HELD || name?.isTaken || (await isAlive())) {
    release();
    throw new InUseError(dir);
  }
  if (status === 0) return { release };
  const other = name?.server ? 'a process in another container' : 'a stopped process';
  const why = error ? error.message : `flock ended with ${status ?? signal}`;
  return { release, notice: `the store is not locked against ${other}: ${why}` };
}

function flock(fd: number) {
  const path = [process.env.PATH, '/usr/bin', '/bin'].filter(Boolean).join(':'); // a service's may be short
  const env = { ...process.env, PATH: path };
  return spawnSync('flock', ['-n', '-x', '3'], { env, stdio: ['ignore', 'ignore', 'ignore', fd] });
}

/** Linux has names of sockets outside all directories: freed as a lock is, but of one container (network) alone. */
function takeName(dir: string): Promise<{ server?: Server; isTaken?: boolean }> {
  if (process.platform !== 'linux') return Promise.resolve({});
  const { dev, ino } = fs.statSync(dir, { bigint: true });
  return new Promise((resolve) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', (error: NodeJS.ErrnoException) => resolve({ isTaken: error.code === 'EADDRINUSE' }));
    server.listen(`\0petstore-${dev}-${ino}`, () => resolve({ server: server.unref() }));
  });
}
