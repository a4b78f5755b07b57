/**
 * The socket in the data directory through which commands reach the running server, and what is said on it: JSON, a
 * line each. The server greets, and says how long a caller may be silent; then each line of the caller is
 * `{"call","args"}`, answered by `{"result"}` or `{"error"}`.
 */
import { once } from 'node:events';
import { closeSync, constants, openSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import path from 'node:path';
import { CommandError, EXIT } from './exit.ts';
import { linesOf } from './lines.ts';

const SOCKET_NAME = 'admin.sock';
/** A line holds a part of an import, which is the longest thing that is said. */
const LINE_MAX_BYTES = 1_048_576;
/** What fits into sun_path, with its closing NUL. */
const SOCKET_PATH_MAX_BYTES = 107;
const NOT_OURS = 'permission denied; run this as the user to whom the store belongs';

/** The socket's path as the kernel takes it. */
interface Place {
  path: string;
  close(): void;
}

/**
 * A path longer than sun_path is not made shorter by a link that somebody could swap: the open directory itself
 * is named, by our descriptor of it. Keep the place open as long as the path is used.
 */
export function socketPlace(dir: string): Place {
  const plain = path.resolve(dir, SOCKET_NAME);
  if (Buffer.byteLength(plain) <= SOCKET_PATH_MAX_BYTES) return { path: plain, close: () => {} };
  if (process.platform !== 'linux') {
    const limit = `the ${SOCKET_PATH_MAX_BYTES} bytes a socket's path may have`;
    throw new CommandError(EXIT.failed, `${plain}: longer than ${limit}`);
  }
  const fd = openSync(dir, constants.O_RDONLY | constants.O_DIRECTORY);
  return { path: `/proc/self/fd/${fd}/${SOCKET_NAME}`, close: () => closeSync(fd) };
}

/** Undefined when nobody listens there. */
export async function connectTo(dir: string): Promise<Socket | undefined> {
  let place: Place | undefined;
  try {
    place = socketPlace(dir);
    const socket = connect(place.path);
    await once(socket, 'connect');
    return socket.on('error', () => {}); // 'close' follows
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ECONNREFUSED') return undefined;
    throw unreachable(dir, error as NodeJS.ErrnoException);
  } finally {
    place?.close();
  }
}

function unreachable(dir: string, error: NodeJS.ErrnoException): CommandError {
  if (error instanceof CommandError) return error;
  if (error.code === 'EAGAIN') return unanswered(dir); // its queue is full
  if (error.code === 'EACCES') return new CommandError(EXIT.failed, `${dir}: ${NOT_OURS}`);
  if (error.code === 'ENOTDIR') return new CommandError(EXIT.failed, `${dir} is not a directory`);
  return new CommandError(EXIT.failed, `${dir}: the running server cannot be reached: ${error.message}`);
}

export function unanswered(dir: string): CommandError {
  return new CommandError(EXIT.inUse, `${dir} is in use by a server that does not answer; it may be stopped`);
}

/** Whether a process listens there, be it one that answers or not. */
export async function isServed(dir: string): Promise<boolean> {
  const socket = await connectTo(dir).catch(() => 'unreachable' as const);
  if (typeof socket === 'object') socket.destroy();
  return socket !== undefined;
}

/** What is said on the other side; it ends with the connection, or with what is longer than a line may be. */
export async function* linesFrom(socket: Socket): AsyncGenerator<string> {
  for await (const line of linesOf(socket, LINE_MAX_BYTES)) {
    if (line === undefined) return;
    yield line.toString();
  }
}

export const lineOf = (said: object): string => `${JSON.stringify(said)}\n`;
