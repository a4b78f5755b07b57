/** Runs a command to its end, and starts the servers that are measured. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';

export interface Server {
  pid: number;
  origin: string;
  stop(): Promise<void>;
}

/** Gives what the command printed. The message of a failure has what it printed on its standard error. */
export async function run([program, ...args]: string[]): Promise<string> {
  return (await promisify(execFile)(program, args)).stdout;
}

/** Resolves when the command has printed the address that it listens on. */
export async function startServer(name: string, [program, ...args]: string[]): Promise<Server> {
  const env = { ...process.env, NODE_ENV: 'production' };
  const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let lastWords = '';
  child.stderr.on('data', (text) => {
    lastWords = String(text).trim();
  });
  await once(child, 'spawn');
  let origin: string | undefined;
  for await (const line of createInterface(child.stdout)) {
    origin = /https?:\/\/[^/\s]+:\d+/.exec(line)?.[0];
    if (origin !== undefined) break;
  }
  if (origin === undefined) throw new Error(`${name} ended before it listened: ${lastWords}`);
  child.stdout.resume();
  return { pid: child.pid!, origin, stop: () => end(child) };
}

export async function end(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, 'exit');
  child.kill('SIGTERM');
  await exit;
}
