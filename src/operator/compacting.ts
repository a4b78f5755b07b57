/** A compaction's reading and writing, done by this program again as a child: it goes when we go, or at the signal. */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { setPriority } from 'node:os';
import { isSea } from 'node:sea';
import { text } from 'node:stream/consumers';
import { realDisk } from '../store/file/disk.ts';
import { fileName } from '../store/file/format.ts';
import { compactFile, type Extent } from '../store/file/rewrite.ts';
import { asCommandError } from './exit.ts';

/** The word by which this program calls itself for that. */
export const COMPACT_CHILD = 'compact-child';
const LOWEST_PRIORITY = 19;
/** Of one that has time-outs of seconds at a database: at the lowest, a busy machine would give it too little. */
export const LOW_PRIORITY = 5;

/** Its file has a name of its own: a child that was stopped, and wakes beside a newer one, cannot touch that one's. */
export async function compactElsewhere(dir: string, { file, length }: Extent, signal: AbortSignal): Promise<string> {
  const unnamed = `${fileName(file + 1)}.${randomBytes(8).toString('hex')}.tmp`;
  try {
    await runAgain([COMPACT_CHILD, dir, String(file), String(length), unnamed], { signal });
    return unnamed;
  } catch (error) {
    await realDisk.unlink(`${dir}/${unnamed}`).catch(() => {}); // it takes room that others need
    throw error;
  }
}

export async function runAgain(
  words: string[],
  { priority = LOWEST_PRIORITY, ...options }: { signal?: AbortSignal; env?: NodeJS.ProcessEnv; priority?: number },
) {
  const program = isSea() ? [] : [...process.execArgv, process.argv[1]];
  const child = spawn(process.execPath, [...program, ...words], {
    stdio: ['pipe', 'ignore', 'pipe'],
    killSignal: 'SIGKILL',
    ...options,
  });
  const ended = once(child, 'close');
  try {
    // It is to take only what CPU time we leave. Set at once, so that the threads it is going to start have it too.
    if (child.pid !== undefined) setPriority(child.pid, priority);
  } catch {
    // Not everywhere is it ours to set. A compaction of the same priority as ours is better than none.
  }
  // Where no descriptor was left for it, the child has no streams, whatever the types say.
  child.stdin?.on('error', () => {});
  const said = child.stderr && text(child.stderr).catch(() => '');
  const [status, signal] = await ended;
  if (status !== 0) throw new Error(`the compacting process ended with ${status ?? signal}: ${(await said).trim()}`);
}

/** What the child does. */
export async function compactChild([dir, file, length, unnamed]: string[]): Promise<void> {
  process.stdin.on('end', () => process.exit(1)).resume(); // whoever asked for it is gone
  // They come to all that were started together, and it is for whoever asked for it to end it.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => {});
  await compactFile(realDisk, dir, { file: Number(file), length: Number(length) }, unnamed).catch((error) => {
    throw asCommandError(error, dir) ?? error; // whoever asked for it tells what we say
  });
}
