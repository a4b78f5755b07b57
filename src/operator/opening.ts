/** Opens the store as this program does it, and tells its failures as exit statuses. */
import { spawn } from 'node:child_process';
import { chmodSync, existsSync, readdirSync, statSync } from 'node:fs';
import { isSea } from 'node:sea';
import type { COMPACT_CHILD } from '../config.ts';
import { runCompaction } from '../store/compaction.ts';
import { DamagedError } from '../store/damage.ts';
import { InUseError } from '../store/lock.ts';
import { FileStore, type FileStoreOptions } from '../store/store.ts';
import { CommandError, EXIT } from './exit.ts';
import type { Values } from './options.ts';
import { isServed } from './socket.ts';

const CHILD_WORDS_MAX_CHARACTERS = 2_000;

export async function openStore(dir: string, options: FileStoreOptions): Promise<FileStore> {
  makePrivate(dir);
  return tellingFailures(() =>
    FileStore.open(dir, { isAlive: () => isServed(dir), compact: compactElsewhere, ...options }),
  );
}

/** Names of callers and digests of keys are inside, and the admin socket. That of another user stays as it is. */
function makePrivate(dir: string): void {
  const stat = statSync(dir, { throwIfNoEntry: false });
  if (stat === undefined) return;
  if (!stat.isDirectory()) throw new CommandError(EXIT.failed, `${dir} is not a directory`);
  if (stat.uid === process.getuid?.() && (stat.mode & 0o077) !== 0) chmodSync(dir, 0o700);
}

export async function tellingFailures<R>(work: () => R | Promise<R>): Promise<R> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof CommandError) throw error;
    const { message } = error as Error;
    if (error instanceof DamagedError) throw new CommandError(EXIT.damaged, message);
    if (error instanceof InUseError) throw new CommandError(EXIT.inUse, message);
    throw new CommandError(EXIT.failed, message);
  }
}

/** A mistyped directory must not become a new store by being asked about. */
export function mustHoldStore(dir: string): void {
  const names = existsSync(dir) ? readdirSync(dir) : [];
  if (!names.some((name) => /^(snapshot|log)-/.test(name))) {
    throw new CommandError(EXIT.failed, `there is no store in ${dir}`);
  }
}

/** This program again, as a child that reads and writes while we serve. It goes when we go, or at the signal. */
function compactElsewhere(dir: string, generation: number, signal: AbortSignal): Promise<void> {
  const program = isSea() ? [] : [...process.execArgv, process.argv[1]];
  const child = spawn(process.execPath, [...program, 'compact-child', dir, String(generation)], {
    stdio: ['pipe', 'ignore', 'pipe'],
    signal,
    killSignal: 'SIGKILL',
  });
  let words = '';
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    // Where no descriptor was left for it, the child has no streams, whatever the types say.
    child.stdin?.on('error', () => {});
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      words = (words + text).slice(-CHILD_WORDS_MAX_CHARACTERS);
    });
    child.on('close', (status, signal) => {
      if (status === 0) resolve();
      else reject(new Error(`the compacting process ended with ${status ?? signal}: ${words.trim()}`));
    });
  });
}

export async function compactChild({ dir, generation }: Values<typeof COMPACT_CHILD.options>): Promise<void> {
  process.stdin.on('end', () => process.exit(EXIT.failed)).resume();
  await runCompaction(dir, generation);
}
