/** Runs a command to its end, and starts the servers that are measured. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';

const ERROR_TEXT_MAX_CHARACTERS = 2_000;
const START_MAX_MS = 60_000;
const STOP_MAX_MS = 15_000;

export interface Server {
  pid: number;
  origin: string;
  stop(): Promise<void>;
}

/** Gives what the command printed. */
export function run(command: string[], timeoutMs: number): Promise<string> {
  const [program, ...args] = command;
  return new Promise((resolve, reject) => {
    execFile(program, args, { timeout: timeoutMs, maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) => {
      if (!error) return resolve(stdout);
      const why = stderr.trim().slice(-ERROR_TEXT_MAX_CHARACTERS) || error.message;
      reject(new Error(`${command.join(' ').slice(0, 300)}: ${why}`));
    });
  });
}

/** Resolves when the command has printed the address that it listens on. */
export async function startServer(name: string, command: string[]): Promise<Server> {
  const [program, ...args] = command;
  const env = { ...process.env, NODE_ENV: 'production' };
  const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  try {
    const origin = await listeningAt(child, name);
    return { pid: child.pid!, origin, stop: () => end(child) };
  } catch (error) {
    await end(child);
    throw error;
  }
}

function listeningAt(child: ChildProcess, name: string): Promise<string> {
  let output = '';
  let errors = '';
  child.stderr!.on('data', (text) => {
    errors = `${errors}${text}`.slice(-ERROR_TEXT_MAX_CHARACTERS);
  });
  return new Promise((resolve, reject) => {
    const fail = (why: string) => reject(new Error(`${name} ${why}${errors && `:\n${errors.trim()}`}`));
    const timer = setTimeout(() => fail(`did not listen within ${START_MAX_MS} ms`), START_MAX_MS);
    child.once('error', (error) => fail(error.message));
    child.once('exit', (code, signal) => fail(`ended before it listened (${signal ?? code})`));
    child.stdout!.on('data', (text) => {
      output = `${output}${text}`.slice(0, ERROR_TEXT_MAX_CHARACTERS);
      const found = /https?:\/\/[^/\s]+:\d+/.exec(output);
      if (!found) return;
      clearTimeout(timer);
      resolve(found[0]);
    });
  });
}

export async function end(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, 'exit');
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MAX_MS);
  await exit;
  clearTimeout(timer);
}
