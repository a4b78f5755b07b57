/** Starts and stops the processes that are measured. */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Bench } from './bench.ts';
import { pinned } from './machine.ts';

const START_MAX_MS = 60_000;
const STOP_MAX_MS = 15_000;
const ERROR_TEXT_MAX_CHARACTERS = 2_000;

export interface Server {
  pid: number;
  origin: string;
  /** From the moment it was spawned until it said where it listens. */
  startMs: number;
  stop(): Promise<void>;
}

/** Runs a command, on the server's core or on all, and waits until it prints the address it listens on. */
export async function startServer(bench: Bench, name: string, command: string[], isPinned = true): Promise<Server> {
  const [program, ...args] = pinned(isPinned ? bench.cores?.server : undefined, command);
  const began = performance.now();
  const env = { ...process.env, NODE_ENV: 'production' };
  const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const stop = () => end(child);
  bench.atEnd(stop);
  const origin = await listeningAt(child, name);
  return {
    pid: child.pid!,
    origin,
    startMs: performance.now() - began,
    stop: async () => {
      await stop();
      bench.forget(stop);
    },
  };
}

function listeningAt(child: ChildProcess, name: string): Promise<string> {
  let said = '';
  let complained = '';
  child.stderr!.on('data', (text) => {
    complained = `${complained}${text}`.slice(-ERROR_TEXT_MAX_CHARACTERS);
  });
  return new Promise((resolve, reject) => {
    const fail = (why: string) => reject(new Error(`${name} ${why}${complained && `:\n${complained.trim()}`}`));
    const timer = setTimeout(() => fail(`did not listen within ${START_MAX_MS} ms`), START_MAX_MS);
    child.once('error', (error) => fail(error.message));
    child.once('exit', (code, signal) => fail(`ended before it listened (${signal ?? code})`));
    child.stdout!.on('data', function look(text: Buffer) {
      said += text;
      const found = /https?:\/\/[^/\s]+:\d+/.exec(said);
      if (!found) return;
      clearTimeout(timer);
      child.stdout!.off('data', look).resume();
      resolve(found[0]);
    });
  });
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MAX_MS);
  await gone;
  clearTimeout(timer);
}
