/**
 * A command's way to the running server: one POST of JSON to a socket in the data directory. The reply is JSON, `{result}`
 * or `{error}`. Where the command has output that comes in pieces, the body is that output, and the JSON is a trailer.
 */
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import * as v from 'valibot';
import { refuseOthersDirectory } from '../store/file/owner.ts';
import type { Sink } from './command.ts';
import { CommandError, EXIT } from './failures.ts';
import { VERSION } from './version.ts';

const SOCKET = 'admin.sock';
/** The length of sun_path without its closing NUL. */
const MAX_PATH_BYTES = 107;
/** A server that accepts the connection but does not answer is stopped, or still starting. */
const MAX_ANSWER_MS = 3_000;

export const callOf = v.object({ version: v.string(), command: v.string(), values: v.unknown() });

const replyOf = v.union([
  v.strictObject({ error: v.object({ exit: v.picklist(Object.values(EXIT)), message: v.string() }) }),
  v.strictObject({ result: v.optional(v.unknown()) }),
]);

export function socketPath(dir: string): string {
  const socket = path.resolve(dir, SOCKET);
  if (Buffer.byteLength(socket) <= MAX_PATH_BYTES) return socket;
  throw new Error(`${socket} is too long for a socket: at most ${MAX_PATH_BYTES} bytes`);
}

const isNobodyThere = ({ code = '' }: NodeJS.ErrnoException): boolean => /^(ENOENT|ENOTDIR|ECONNREFUSED)$/.test(code);

/** Undefined: no server listens there. */
export async function callServer(
  dir: string,
  call: { command: string; values: unknown },
  sink: Sink,
): Promise<{ result?: unknown } | undefined> {
  refuseOthersDirectory(dir, (name) => name === SOCKET); // somebody else could listen there
  const body = JSON.stringify({ version: VERSION, ...call });
  // The body waits for `100 Continue`: a server that is stopped would otherwise do the call when it goes on, after the
  // operator was told that it does not answer.
  const headers = { Expect: '100-continue', 'Content-Length': Buffer.byteLength(body) };
  const req = request({ socketPath: socketPath(dir), method: 'POST', agent: false, headers });
  let isSent = false;
  req.once('continue', () => {
    isSent = true;
    req.setTimeout(0).end(body);
  });
  req.setTimeout(MAX_ANSWER_MS, () => req.destroy(noAnswer(dir)));
  req.on('error', () => {}); // an error after the reply has no listener of its own
  const responded = once(req, 'response').catch((error) => (isSent ? ended() : whyNotReached(dir, error)));
  const [res]: IncomingMessage[] = await responded;
  if (res === undefined) return undefined;
  const reply = await readReply(res, sink).catch((error) =>
    error.code === 'ECONNRESET' ? ended() : Promise.reject(error),
  );
  const { success, output } = v.safeParse(replyOf, Array.isArray(reply) ? undefined : reply); // valibot takes a list
  if (!success) throw new Error(`${socketPath(dir)}: what answers there is no petstore server`);
  if ('error' in output) throw new CommandError(output.error.exit, output.error.message);
  return output;
}

async function readReply(res: IncomingMessage, sink: Sink): Promise<unknown> {
  if (res.headers.trailer === undefined) return parsed(await text(res));
  for await (const chunk of res) if (!(await sink(chunk))) return {}; // nobody reads the output any more
  return parsed(decodeURIComponent(res.trailers.reply ?? ''));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const noAnswer = (dir: string) =>
  new CommandError(EXIT.inUse, `${dir} is in use by a server that does not answer; it may be stopped`);

function ended(): never {
  throw new Error('the server ended before it answered: look before you repeat the command');
}

function whyNotReached(dir: string, error: NodeJS.ErrnoException): never[] {
  if (isNobodyThere(error)) return [];
  if (error instanceof CommandError) throw error;
  if (error.code === 'EAGAIN') throw noAnswer(dir); // its queue is full
  const advice = error.code === 'EACCES' ? '; run this as the user who owns the store' : '';
  throw new Error(`${dir}: the running server cannot be reached: ${error.message}${advice}`);
}
