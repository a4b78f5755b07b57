/** What the checker does with a program: starts it on a directory of its own, sends requests, ends it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

export const { positionals: named, values: options } = parseArgs({
  allowPositionals: true,
  options: { full: { type: 'boolean', default: false }, of: { type: 'string' } },
});
const ours = fileURLToPath(new URL(options.full ? '../../src/main.ts' : 'petstore.ts', import.meta.url));
/** The program that is tried. */
export const source = options.of === undefined ? ours : resolve(options.of);
const command = [process.execPath, ...process.execArgv];
const words = [source, ...(options.full ? ['serve', '--first-key', 'free'] : [])];
const MAX_START_MS = 30_000;
const MAX_REPLY_MS = 15_000;
const MAX_STOP_MS = 15_000;

export interface Seen {
  isKept: boolean;
  saw: string;
}
export type Break = () => Promise<Seen>;
export const seen = (isKept: boolean, saw: string): Seen => ({ isKept, saw });

/** Thrown where a program does what no mend does; `saw` says what. */
export class Broken extends Error {}
export function must(isKept: boolean, saw: string): asserts isKept {
  if (!isKept) throw new Broken(saw);
}

/** These are killed and removed before this process ends. */
const processes: ChildProcess[] = [];
const directories: string[] = [];

export async function removeAll(): Promise<void> {
  for (const child of processes) child.kill('SIGKILL');
  await Promise.all(processes.map((child) => child.exitCode ?? child.signalCode ?? once(child, 'close')));
  for (const dir of directories) rmSync(dir, { recursive: true, force: true });
}

export function directory(): string {
  directories.push(mkdtempSync(join(tmpdir(), 'petstore-break-')));
  return directories.at(-1)!;
}

export interface StartOptions {
  /** The key that an earlier start has printed. */
  key?: string;
  /** A module that is loaded first: it changes the world that the program finds. */
  first?: string;
  env?: Record<string, string>;
  /** The words before the program's own, such as a shell with a limit. */
  before?: string[];
}
export const moduleOf = (text: string) => `data:text/javascript,${encodeURIComponent(text)}`;

export type Program = Awaited<ReturnType<typeof start>>;

/** Starts the program on a directory and waits until it listens. Throws where it ends before that. */
export async function start(dir: string, { key, first, env = {}, before = [] }: StartOptions = {}) {
  const loads = first === undefined ? [] : ['--import', first];
  const [file, ...args] = [...before, ...command, ...loads, ...words, '--port', '0', '--data', dir];
  const child = spawn(file, args, { env: { ...process.env, ...env } });
  processes.push(child);
  const ended = once(child, 'close').then(() => {});
  let [stdout, stderr] = ['', ''];
  child.stderr.on('data', (bytes) => (stderr += bytes));
  let timer: NodeJS.Timeout | undefined;
  await new Promise<void>((resolve, reject) => {
    const fail = (why: string) => reject(new Broken(`it does not start: ${why}`));
    timer = setTimeout(() => fail(`after ${MAX_START_MS / 1000} s it does not listen`), MAX_START_MS);
    child.stdout.on('data', (bytes) => {
      stdout += bytes;
      if (/^petstore listening/.test(stdout) && (key ?? /^curl .*\n/m.exec(stdout)) !== null) resolve();
    });
    ended.then(() =>
      fail(/\w*Error(?: \[\w+\])?: .*|damaged.*/.exec(stderr)?.[0] ?? (stderr || 'it ends without a word')),
    );
  }).finally(() => clearTimeout(timer));
  const url = /http\S+/.exec(stdout)![0];
  const bearer = `Bearer ${key ?? /^ps_\w+$/m.exec(stdout)![0]}`;
  const end = (signal: NodeJS.Signals) => async () => {
    child.kill(signal);
    const timer = setTimeout(() => child.kill('SIGKILL'), MAX_STOP_MS);
    await ended;
    clearTimeout(timer);
    must(
      signal === 'SIGKILL' || child.signalCode !== 'SIGKILL',
      `${MAX_STOP_MS / 1000} s after ${signal} it still runs`,
    );
  };
  const ask = async (line: string, text?: string, more: Record<string, string> = {}) => {
    const [method, path] = line.split(' ');
    const headers = { authorization: bearer, ...(text && { 'content-type': 'application/json' }), ...more };
    return await exchange(url.replace('/v1', '') + path, method, headers, text).catch((error) => {
      throw new Broken(`${line} gets no reply: ${error.message}`);
    });
  };
  const raw = (line: string, more = '') => `${line} HTTP/1.1\r\nHost: x\r\nAuthorization: ${bearer}\r\n${more}\r\n`;
  const port = Number(new URL(url).port);
  return {
    child,
    port,
    request: ask,
    raw,
    key: bearer.slice(7),
    stderr: () => stderr,
    kill: end('SIGKILL'),
    stop: end('SIGTERM'),
  };
}

/** A request on a connection of its own. */
async function exchange(url: string, method: string, headers: Record<string, string>, text = '') {
  const sent = request(url, { method, headers, agent: false, signal: AbortSignal.timeout(MAX_REPLY_MS) }).end(text);
  const [reply]: [IncomingMessage] = await (once(sent, 'response') as Promise<[IncomingMessage]>);
  const bytes = Buffer.concat(await reply.toArray());
  return { status: reply.statusCode!, headers: new Headers(reply.headers as Record<string, string>), text: `${bytes}` };
}

/** Runs a command of the full service, and resolves with what it prints. The small edition has none, and exits. */
export async function operate(...typed: string[]): Promise<string> {
  const [file, ...args] = [...command, source, ...typed];
  const child = spawn(file, args);
  let stdout = '';
  child.stdout.on('data', (bytes) => (stdout += bytes));
  await once(child, 'close');
  return stdout;
}

/** Makes a second key for a server that has ended. The small edition takes the line of one that it made elsewhere. */
export async function secondKey(dir: string): Promise<string> {
  if (options.full) return /ps_\w+/.exec(await operate('keys', 'create', '--plan', 'free', '--data', dir))![0];
  const elsewhere = directory();
  const { key, kill } = await start(elsewhere);
  await kill();
  const lines = readFileSync(dataFile(elsewhere), 'utf8').split(/(?<=\n)/);
  appendFileSync(dataFile(dir), lines.find((line) => line.includes('"digest"'))!);
  return key;
}

/** The file that the program keeps its changes in. */
export function dataFile(dir: string): string {
  const found = readdirSync(dir).filter((name) => /\.(log|jsonl)$/.test(name));
  const name = found.includes('petstore.log') ? 'petstore.log' : found.sort().at(-1);
  must(name !== undefined, 'there is no log in the directory');
  return join(dir, name);
}

/** The silence after which `send` gives up. The full service replies or closes before that. */
const MAX_QUIET_MS = options.full ? 30_000 : 1_000;

/** Sends `bytes` and resolves with what came: `replies` replies, or fewer if the connection ends or falls silent. */
export function send(
  port: number,
  bytes: string,
  replies: number,
  later?: (socket: Socket) => Promise<void>,
): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    let came = '';
    const done = () => socket.destroy() && resolve(came);
    socket.on('data', (data) => (came += data) && bodiesIn(came) === replies && done());
    socket.on('close', done).on('error', () => {});
    socket.write(bytes, () => {
      const quiet = () => socket.setTimeout(MAX_QUIET_MS, done);
      if (later === undefined) quiet();
      else later(socket).then(quiet);
    });
  });
}
const bodiesIn = (came: string) => came.match(/\r\n\r\n[[{].*[\]}](?=HTTP|$)/g)?.length ?? 0;
