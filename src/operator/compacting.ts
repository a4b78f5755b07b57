/** A compaction, run as a child process of the same program. The child ends with its parent, or when aborted. */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { setPriority } from 'node:os';
import { isSea } from 'node:sea';
import { text } from 'node:stream/consumers';
import { realDisk } from '../store/file/disk.ts';
import { fileName } from '../store/file/format.ts';
import { compactFile, type Extent } from '../store/file/rewrite.ts';
import { asCommandError } from './exit.ts';

/** The internal command of that child. */
export const COMPACT_CHILD = 'compact-child';
const LOWEST_PRIORITY = 19;
/** For a compaction in a database, where time-outs are seconds: at the lowest, a busy machine would starve it. */
export const LOW_PRIORITY = 5;

/** Each child writes a file of its own name: a child that was stopped, and wakes later, cannot touch a newer one's. */
export async function compactElsewhere(dir: string, { file, length }: Extent, signal: AbortSignal): Promise<string> {
  const temporaryName = `${fileName(file + 1)}.${randomBytes(8).toString('hex')}.tmp`;
  try {
    await runAgain([COMPACT_CHILD, dir, String(file), String(length), temporaryName], { signal });
    return temporaryName;
  } catch (error) {
    await realDisk.unlink(`${dir}/${temporaryName}`).catch(() => {}); // to free its room on the disk
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
    if (child.pid !== undefined) leaveTimeToOthers(child.pid, priority);
  } catch {
    // Some systems do not allow it, and a thread may have ended. Better a compaction at our own priority than none.
  }
  // If no descriptor was left, the child has no streams, contrary to the types.
  child.stdin?.on('error', () => {});
  const said = child.stderr && text(child.stderr).catch(() => '');
  const [status, signal] = await ended;
  if (status !== 0) throw new Error(`the compacting process ended with ${status ?? signal}: ${(await said).trim()}`);
}

/**
 * The child gets only spare CPU time. Its first thread comes first, since those that it starts from now on inherit its
 * priority; then all that it has started already: on a busy machine there are some.
 */
function leaveTimeToOthers(pid: number, priority: number): void {
  setPriority(pid, priority);
  const threads = `/proc/${pid}/task`;
  if (existsSync(threads)) for (const thread of readdirSync(threads)) setPriority(Number(thread), priority);
}

/** The main function of the child. */
export async function compactChild([dir, file, length, temporaryName]: string[]): Promise<void> {
  process.stdin.on('end', () => process.exit(1)).resume(); // the parent is gone
  // A terminal sends these to parent and child alike; only the parent decides when the child ends.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => {});
  await compactFile(realDisk, dir, { file: Number(file), length: Number(length) }, temporaryName).catch((error) => {
    throw asCommandError(error, dir) ?? error; // the parent reports our message
  });
}
