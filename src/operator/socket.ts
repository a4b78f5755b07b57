/**
 * Administration of a running server: HTTP on a socket in the data directory, for its owner alone. The path is the words of
 * a command, the query its parameters; the body is what it reads. The reply is JSON, or the bytes of a backup or an export:
 * `curl --unix-socket data/admin.sock http://x/keys/list`. What fails is `{"error","exit"}`.
 */
import { once } from 'node:events';
import { chmodSync, existsSync, unlinkSync } from 'node:fs';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { connect, type Server } from 'node:net';
import { resolve } from 'node:path';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { onceAMinute, systemClock } from '../clock.ts';
import { InUseError, type Log } from '../store/engine.ts';
import { SOCKET } from '../store/file/directory.ts';
import { refuseOthersDirectory } from '../store/file/owner.ts';
import type { Context, Input, Tools } from './commands.ts';
import { perform, suggestion, type Texts } from './options.ts';
import { asCommandError, CommandError, EXIT, isBody, usage, VERSION } from './program.ts';

/** The type of a reply that comes in pieces. */
const BYTES = 'application/octet-stream';
/** The length of sun_path without its closing NUL. */
const MAX_PATH_BYTES = 107;
const MAX_CALLERS = 64;
/** A server that accepts the connection but does not answer is stopped, or still starting. */
const MAX_ANSWER_MS = 3_000;
/** When the server stops, calls under way are finished if that takes no longer. */
const MAX_LAST_CALLS_MS = 2_000;

/** The path of the socket. Throws if somebody else could listen there. */
function socketIn(dir: string): string {
  const socket = resolve(dir, SOCKET);
  if (Buffer.byteLength(socket) > MAX_PATH_BYTES) {
    throw new Error(`${socket} is too long for a socket: at most ${MAX_PATH_BYTES} bytes`);
  }
  refuseOthersDirectory(dir, (name) => name === SOCKET);
  return socket;
}

/** Throws if a server listens there, also one that is stopped: it keeps others out where flock is missing. */
export async function refuseSecond(dir: string): Promise<void> {
  const socket = connect(socketIn(dir));
  const isHeld = await once(socket, 'connect').then(
    () => true,
    ({ code }) => code === 'EAGAIN', // its queue is full
  );
  socket.destroy();
  if (isHeld) throw new InUseError(`${dir} is in use by another process`);
}

/** An error of a server that listens is one connection that was not accepted, for want of memory or descriptors. */
export function goOn(server: Server, log: Log): void {
  const mayLog = onceAMinute(systemClock.now);
  server.on('error', (error) => mayLog() && log.error('a connection was not accepted', { error }));
}

type Serving = Pick<Tools, 'commands'> & { readonly context: Context; readonly log: Log };

/** Returns the function that closes it. The caller has the store: a socket that nobody listens on was left by a kill. */
export async function openSocket(dir: string, serving: Serving): Promise<() => Promise<void>> {
  await refuseSecond(dir);
  const path = socketIn(dir);
  if (existsSync(path)) unlinkSync(path);
  const server = createServer((req, res) => void answer(req, res, serving));
  server.requestTimeout = 0; // an import takes as long as it takes
  server.maxConnections = MAX_CALLERS; // the newest beyond them is closed
  await once(server.listen(path), 'listening');
  goOn(server, serving.log);
  chmodSync(path, 0o600);
  return async () => {
    setTimeout(() => server.closeAllConnections(), MAX_LAST_CALLS_MS).unref();
    await new Promise((resolve) => server.close(resolve));
  };
}

async function answer(req: IncomingMessage, res: ServerResponse, { commands, context, log }: Serving): Promise<void> {
  const { pathname, searchParams } = new URL(`http://x${req.url}`);
  const name = pathname.slice(1).replaceAll('/', ' ');
  const send = (status: number, value: unknown) => {
    res.writeHead(status, { 'Content-Type': 'application/json' }).end(`${JSON.stringify(value, null, 2)}\n`);
  };
  res.setHeader('Connection', 'close');
  try {
    const command = commands.find((one) => one.name === name);
    if (command?.work === undefined) {
      const known = commands.flatMap(({ name, work }) => (work ? `/${name.replaceAll(' ', '/')}` : []));
      throw usage(`the running server (version ${VERSION}) has no ${pathname}${suggestion(pathname, known)}`);
    }
    const isRead = command.access === 'read';
    if (req.method !== 'POST' && !(isRead && req.method === 'GET')) throw usage(`${pathname} takes POST`);
    // Also an empty body comes only from a caller who still waits.
    if (!command.hasInput && (await text(req)) !== '') throw usage(`${pathname} reads no body: use the query`);
    const result = await perform(command, context, Object.fromEntries(searchParams), req);
    const { id }: { id?: string } = Object(result);
    if (!isRead) log.info('command', { command: name, id });
    if (!isBody(result)) return send(200, result);
    res.setHeader('Content-Type', BYTES);
    await pipeline(result, res);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_STREAM_PREMATURE_CLOSE') return; // nobody reads it any more
    const known = asCommandError(error, 'the store');
    log[known ? 'warn' : 'error']('command', { command: name, error: known?.message ?? error });
    const { exit, message } = known ?? { exit: EXIT.failed, message: 'a bug in the server; its log says more' };
    if (res.headersSent) res.destroy();
    else send(exit === EXIT.usage ? 400 : 500, { error: message, exit });
  }
}

const INCOMPLETE = { message: 'the reply of the server is not complete: its log may say why' };

/** Undefined: no server listens there. */
export async function askServer(dir: string, command: string, texts: Texts, input: Input): Promise<unknown> {
  // The body, also an empty one, waits for `100 Continue`: a server that is stopped would otherwise do the command when
  // it goes on, after the operator was told that it does not answer.
  const headers = { Expect: '100-continue', 'Transfer-Encoding': 'chunked' };
  const path = `/${command.replaceAll(' ', '/')}?${new URLSearchParams(texts as Record<string, string>)}`;
  const req = request({ socketPath: socketIn(dir), path, method: 'POST', agent: false, headers });
  const silent = new InUseError(`${dir} is in use by a server that does not answer, and may be stopped`);
  let isSent = false;
  req.once('continue', () => {
    isSent = true;
    Readable.from(input).pipe(req.setTimeout(0));
  });
  req.setTimeout(MAX_ANSWER_MS, () => req.destroy(silent));
  req.on('error', () => {}); // an error after the reply has no listener of its own
  try {
    const [res]: IncomingMessage[] = await once(req, 'response');
    if (res.headers['content-type'] === BYTES) return res.on('error', (error) => Object.assign(error, INCOMPLETE));
    const reply = JSON.parse(await text(res));
    if (res.statusCode === 200) return reply;
    throw new CommandError(reply.exit, reply.error);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    if (/^(ENOENT|ENOTDIR|ECONNREFUSED)$/.test(code)) return undefined;
    if (code === 'EAGAIN') throw silent; // its queue is full
    if (isSent) throw new Error('the server ended before it answered: look before you repeat the command');
    throw new Error(`${dir}: the running server cannot be reached: ${message}`);
  }
}
