/** Opens the store as this program does it: behind its lock, for its owner alone, compacted in a process of its own. */
import { spawn } from 'node:child_process';
import { chmodSync, readdirSync, type Stats, statSync } from 'node:fs';
import { setPriority } from 'node:os';
import { isSea } from 'node:sea';
import { realDisk } from '../store/disk.ts';
import { compactFiles } from '../store/generation.ts';
import { FileStore, type FileStoreOptions } from '../store/store.ts';
import { asCommandError, CommandError, EXIT } from './exit.ts';
import { isServed } from './socket.ts';

const LOWEST_PRIORITY = 19;
const CHILD_WORDS_MAX_CHARACTERS = 2_000;
const WRITE_BY_ANYBODY = 0o002;
/** Of a start that was cut off, or of a file system of its own. */
const NOBODYS = ['LOCK', 'admin.sock', 'lost+found'];

export async function openStore(dir: string, options: FileStoreOptions): Promise<FileStore> {
  const isAlive = () => isServed(dir);
  return tellingFailures(() => {
    makePrivate(dir);
    return FileStore.open(dir, { isAlive, compact: compactElsewhere, ...options });
  }, dir);
}

/** Names of callers and digests of keys are inside, and the admin socket. That of another user stays as it is. */
function makePrivate(dir: string): void {
  const stat = statOf(dir);
  if (stat === undefined || (stat.mode & 0o077) === 0) return;
  const names = readdirSync(dir).filter((name) => !NOBODYS.includes(name));
  if ((stat.mode & WRITE_BY_ANYBODY) !== 0 && names.length > 0 && !names.some(isOfStore)) {
    const why = `anybody may write to ${dir}, and it holds other files but no store; it was left as it is`;
    throw new CommandError(EXIT.failed, `${why}. Name another, or make it private yourself (chmod 700)`);
  }
  if (stat.uid === process.getuid?.()) chmodSync(dir, 0o700);
}

export async function tellingFailures<R>(work: () => R | Promise<R>, place?: string): Promise<R> {
  try {
    return await work();
  } catch (error) {
    throw asCommandError(error, place);
  }
}

/** A mistyped directory must not become a new store by being asked about. */
export function mustHoldStore(dir: string): void {
  const names = statOf(dir) === undefined ? [] : readdirSync(dir);
  if (!names.some(isOfStore)) throw new CommandError(EXIT.failed, `there is no store in ${dir}`);
}

const isOfStore = (name: string) => /^(snapshot|log)-\d+\.jsonl/.test(name);

function statOf(dir: string): Stats | undefined {
  const stat = statSync(dir, { throwIfNoEntry: false });
  if (stat?.isDirectory() === false) throw new CommandError(EXIT.failed, `${dir} is not a directory`);
  return stat;
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
    if (child.pid !== undefined) lowerPriority(child.pid);
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

/** Its CPU time is what we do not need: set at once, so that the threads it is going to start have it too. */
function lowerPriority(pid: number): void {
  try {
    setPriority(pid, LOWEST_PRIORITY);
  } catch {
    // Not everywhere is it ours to set. A compaction of the same priority as ours is better than none.
  }
}

export async function compactChild({ dir, generation }: { dir: string; generation: number }): Promise<void> {
  process.stdin.on('end', () => process.exit(EXIT.failed)).resume();
  await tellingFailures(() => compactFiles(realDisk, dir, generation), dir);
}
