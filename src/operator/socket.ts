/**
 * The socket in the data directory through which commands reach the running server, and what is said on it: JSON, a
 * line each. The server greets; then each line of the caller is `{"call","args"}`, answered by `{"result"}` or
 * `{"error"}`.
 */
import { closeSync, constants, openSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import path from 'node:path';
import { CommandError, EXIT } from './exit.ts';

const SOCKET_NAME = 'admin.sock';
/** A line holds a part of an import, which is the longest thing that is said. */
export const LINE_MAX_BYTES = 1_048_576;
/** What fits into sun_path, with its closing NUL. */
const SOCKET_PATH_MAX_BYTES = 107;

interface Greeting {
  petstore: string;
  environment: string;
}

type Answer = { result: unknown } | { error: { exit: number; message: string } };

/** The socket's path as the kernel takes it. */
export interface Place {
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
    throw new CommandError(
      EXIT.failed,
      `${plain}: longer than the ${SOCKET_PATH_MAX_BYTES} bytes a socket's path may have`,
    );
  }
  const fd = openSync(dir, constants.O_RDONLY | constants.O_DIRECTORY);
  return { path: `/proc/self/fd/${fd}/${SOCKET_NAME}`, close: () => closeSync(fd) };
}

/** After a kill the socket is left behind. Only for whoever holds the lock of the store. */
export function removeStale(place: Place): void {
  rmSync(place.path, { force: true });
}

/** Undefined when nobody listens there. */
export function connectTo(dir: string): Promise<Socket | undefined> {
  return new Promise((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT' || error.code === 'ECONNREFUSED') resolve(undefined);
      else reject(unreachable(dir, error));
    };
    let place: Place;
    try {
      place = socketPlace(dir);
    } catch (error) {
      return failed(error as NodeJS.ErrnoException);
    }
    const socket = connect(place.path);
    const notConnected = (error: NodeJS.ErrnoException) => {
      place.close();
      failed(error);
    };
    socket.once('error', notConnected);
    socket.once('connect', () => {
      socket.off('error', notConnected).on('error', () => {}); // 'close' follows
      place.close();
      resolve(socket);
    });
  });
}

function unreachable(dir: string, error: NodeJS.ErrnoException): CommandError {
  if (error instanceof CommandError) return error;
  if (error.code === 'EAGAIN') return unanswered(dir); // its queue is full
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

/** Calls back with each whole line; a line that never ends is `tooLong`. */
export function onLines(socket: Socket, onLine: (line: string) => void, tooLong: () => void): void {
  let parts: Buffer[] = [];
  let bytes = 0;
  socket.on('data', (chunk: Buffer) => {
    for (let start = 0; start < chunk.length; ) {
      const end = chunk.indexOf(10, start);
      const part = chunk.subarray(start, end === -1 ? chunk.length : end);
      bytes += part.length;
      if (bytes > LINE_MAX_BYTES) {
        tooLong();
        return;
      }
      parts.push(part);
      start += part.length + 1;
      if (end === -1) return;
      const line = Buffer.concat(parts).toString();
      parts = [];
      bytes = 0;
      onLine(line);
    }
  });
}

type Said = Greeting | Answer | { call: string; args: unknown };

export const lineOf = (said: Said): string => `${JSON.stringify(said)}\n`;

export function sendLine(socket: Socket, said: Said): void {
  socket.write(lineOf(said));
}
