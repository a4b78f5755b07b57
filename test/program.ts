/**
 * Runs the real program as a process. From source it is bundled once for all test files, which is far quicker than
 * compiling at every start; TEST_PROGRAM names another program, such as dist/petstore, to run in its place.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { TestContext } from 'node:test';

/** Nothing is expected to take so long; a machine may be busy with other things. */
const START_MAX_MS = 120_000;
const RUN_MAX_MS = 120_000;
/** Of a command to which no server answers. */
const MAX_TRIES = 10;
const EXIT_IN_USE = 4;
const LOWEST_FREE_PORT = 20_000;
/** Or a connection that a test asks on is closed as idle while a busy machine keeps the test waiting. */
const KEEP_ALIVE_SECONDS = '600';
/** The lowest port that Linux gives out by itself. */
const EPHEMERAL_PORTS = 32_768;

export interface RunOptions {
  env?: Record<string, string>;
  cwd?: string;
  /** What the program reads from stdin. */
  input?: string;
  /** The words of what starts it, such as a tracer, or a shell with a limit. */
  before?: string[];
  /** The test has stopped the server that a command asks: it does not answer. */
  isServerStopped?: boolean;
  /** The words that start another program, in place of this one. */
  program?: string[];
}

interface Ran {
  exit: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

let entry = 'src/main.ts';
let built: Promise<string[]> | undefined;

/** From now on this program runs, and not the service alone. `file`: from the root. */
export function runInstead(file: string): void {
  entry = file;
}

/** The words that start the program. */
export function command(): Promise<string[]> {
  built ??= build();
  return built;
}

async function build(): Promise<string[]> {
  const other = process.env.TEST_PROGRAM;
  if (other !== undefined) return [path.resolve(other)];
  const shared = process.env.TEST_BUNDLES; // test/run.mjs makes it, and removes it
  const dir = shared ?? mkdtempSync(path.join(tmpdir(), 'petstore-program-'));
  if (shared === undefined) process.on('exit', () => rmSync(dir, { recursive: true, force: true }));
  const file = path.join(dir, `${entry.replace('/', '-')}.cjs`);
  if (!existsSync(file)) {
    const { bundle } = await import('../scripts/bundle.ts');
    const own = path.join(dir, `${process.pid}.cjs`); // another file may be at it too
    await bundle({ entry, outfile: own, commit: 'test' });
    renameSync(own, file);
  }
  return [process.execPath, file];
}

/**
 * Runs a command to its end. A busy machine may keep a server from answering for longer than a command waits, which then
 * has done nothing: it is run again.
 */
export async function program(args: string[], options: RunOptions = {}): Promise<Ran> {
  for (let tries = 1; ; tries++) {
    const ran = await runOnce(args, options);
    const isUnanswered = ran.exit === EXIT_IN_USE && ran.stderr.includes('in use by a server that does not answer');
    if (!isUnanswered || options.isServerStopped || tries === MAX_TRIES) return ran;
  }
}

async function runOnce(args: string[], options: RunOptions): Promise<Ran> {
  const child = await start(args, options);
  const timer = setTimeout(() => child.process.kill('SIGKILL'), RUN_MAX_MS);
  child.process.stdin!.end(options.input);
  return child.ended.finally(() => clearTimeout(timer));
}

export interface Serving {
  /** Ends in /v1. */
  url: string;
  /** What `--first-key` printed; empty without it, or where there was a key. */
  key: string;
  process: ChildProcess;
  /** What was printed so far. */
  stdout(): string;
  stderr(): string;
  /** SIGTERM, and how it ended. */
  stop(): Promise<Ran>;
  /** SIGKILL, and wait until it is gone. */
  kill(): Promise<Ran>;
  ended: Promise<Ran>;
}

/** Starts a server on a free port. Rejects with what it said if it ends before it listens. */
export async function serveProgram(args: string[], options: RunOptions = {}): Promise<Serving> {
  const env = { PETSTORE_KEEP_ALIVE: KEEP_ALIVE_SECONDS, ...options.env };
  const child = await start(['serve', '--port', '0', ...args], { ...options, env });
  const end = (signal: NodeJS.Signals) => () => {
    child.process.kill(signal);
    return child.ended;
  };
  const kill = end('SIGKILL');
  const urlOf = (stdout: string) => /^petstore listening on (\S+)\n/.exec(stdout)?.[1];
  const timer = setTimeout(kill, START_MAX_MS);
  const isListening = new Promise<void>((resolve) => {
    child.process.stdout!.on('data', () => urlOf(child.stdout()) && resolve());
  });
  await Promise.race([isListening, child.ended]);
  clearTimeout(timer);
  const url = urlOf(child.stdout());
  if (url === undefined) throw new Error(`it ended before it listened\n${child.stdout()}${child.stderr()}`);
  return { ...child, url, key: /^ps_\w+$/m.exec(child.stdout())?.[0] ?? '', stop: end('SIGTERM'), kill };
}

async function start(args: string[], { env, cwd = tmpdir(), before = [], program }: RunOptions) {
  const [file, ...words] = [...before, ...(program ?? (await command())), ...args];
  const child: ChildProcess = spawn(file, words, { cwd, env: { PATH: process.env.PATH, HOME: tmpdir(), ...env } });
  const output = { stdout: '', stderr: '' };
  child.stdin!.on('error', () => {});
  child.stdout!.setEncoding('utf8').on('data', (text: string) => (output.stdout += text));
  child.stderr!.setEncoding('utf8').on('data', (text: string) => (output.stderr += text));
  const ended = once(child, 'close').then(([exit, signal]): Ran => ({ exit, signal, ...output }));
  return { process: child, ended, stdout: () => output.stdout, stderr: () => output.stderr };
}

/**
 * For what cannot be told to pick a port and say which. It is none of those that a kernel gives out by itself: such a
 * port could be that of another connection before it is listened at. Nor does another test get it: until this process
 * ends, a UDP socket of that number, which nobody else wants, says that it is given.
 */
export async function freePort(): Promise<number> {
  const port = LOWEST_FREE_PORT + randomInt(EPHEMERAL_PORTS - LOWEST_FREE_PORT);
  const [given, server] = [createSocket('udp4').unref(), createServer()];
  const isGiven = await new Promise<boolean>((resolve) => {
    given
      .once('error', () => resolve(true))
      .bind({ port, address: '127.0.0.1', exclusive: true }, () => resolve(false));
  });
  if (isGiven) return freePort();
  const isFree = await new Promise<boolean>((resolve) => {
    server.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true));
  });
  if (!isFree) return freePort();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/**
 * The environment of a program for which no time passes, by the clock on which it decides, until there is this file. The
 * single binary takes no such options: it has as long as it has.
 */
export function standingStillUntil(file: string): Record<string, string> {
  const preload = `import { existsSync } from 'node:fs';
    const now = performance.now.bind(performance);
    performance.now = () => (existsSync(${JSON.stringify(file)}) ? now() : 0);`;
  writeFileSync(`${file}.mjs`, preload);
  return { NODE_OPTIONS: `--import ${file}.mjs` };
}

const NO_TIMEOUT = "import{ClientRequest}from'node:http';ClientRequest.prototype.setTimeout=function(){return/**/this}";
/** The environment of a command that waits for its server however long that takes, in place of three seconds. */
export const PATIENT = { NODE_OPTIONS: `--import=data:text/javascript,${NO_TIMEOUT}` };

/** A directory that goes with the test. */
export async function temporary(t: TestContext): Promise<string> {
  const dir = await mkdtemp(path.join(tmpdir(), 'petstore-test-'));
  t.after(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

/** A server that is killed, if it still runs, when the test ends. */
export async function serving(t: TestContext, args: string[], options: RunOptions = {}): Promise<Serving> {
  const server = await serveProgram(args, options);
  t.after(server.kill);
  return server;
}

/** Why strace cannot be used here; undefined where it can. */
export function whyNoStrace(): string | undefined {
  const { error, status, stderr } = spawnSync('strace', ['-f', '-e', 'trace=none', 'true'], { encoding: 'utf8' });
  if (error) return 'strace is not installed';
  return status === 0 ? undefined : `strace may not trace here: ${stderr.trim().split('\n')[0]}`;
}

/**
 * Runs a command with a system call of it (on `only` one file) failed or killed; `wasHit`: that was met. One thread does
 * all file work, so that `when` counts it all.
 */
export async function injected(injection: string, args: string[], { cwd, only }: { cwd: string; only?: string }) {
  const trace = path.join(cwd, 'trace');
  // The filter spares all other calls a stop; but with it strace 6.1 loses signals that are not to come at the first call.
  const filter = injection.includes(':error=') ? ['--seccomp-bpf'] : [];
  const inject = ['-e', `trace=${injection.split(':')[0]}`, '-e', `inject=${injection}`, ...(only ? ['-P', only] : [])];
  const before = ['strace', '-f', ...filter, '-qq', '-o', trace, ...inject];
  const ran = await program(args, { cwd, before, env: { UV_THREADPOOL_SIZE: '1' } });
  return { ...ran, wasHit: /INJECTED|killed by SIGKILL/.test(readFileSync(trace, 'utf8')) };
}
