/** How a connection ends: once its last reply is decided, no request behind that one is processed (RFC 9112, 9.6). */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

const MAX_IGNORED_REQUESTS = 100;

const IGNORED = Symbol('ignored');
const NEWEST = Symbol('newest');

/** Properties of the socket and no WeakMaps, since every request asks for them. */
interface Connection extends Socket {
  /** How many requests came behind the last that is answered; undefined until that one is known. */
  [IGNORED]?: number;
  /** The newest response that had to wait behind another. */
  [NEWEST]?: ServerResponse;
}

/** Whether a request is to be answered: not if it came behind the last of its connection. */
export function isWanted(req: IncomingMessage, res: ServerResponse): boolean {
  const socket: Connection = req.socket;
  if (socket[IGNORED] !== undefined) {
    ignoreOneMore(socket, socket[IGNORED] + 1);
    return false;
  }
  if (res.socket === null) socket[NEWEST] = res;
  // What follows in the same packet node:http drops as another protocol's; what comes later it would read as requests.
  if (req.headers.upgrade !== undefined) endWith(res);
  return true;
}

/** A flood ends the connection at once; while replies are still to be sent, it is not read. */
function ignoreOneMore(socket: Connection, count: number): void {
  socket[IGNORED] = count;
  if (count <= MAX_IGNORED_REQUESTS) return;
  if (socket.writableEnded) socket.destroy();
  else socket.pause();
}

/** From now on requests of this connection are ignored. */
export function ignoreFurther(socket: Connection): void {
  socket[IGNORED] ??= 0;
}

/** Makes this reply, whatever it will be, the last of its connection. */
function endWith(res: ServerResponse): void {
  res.shouldKeepAlive = false; // node:http then writes `Connection: close`
  ignoreFurther(res.req.socket);
}

/** As `endWith`, but not where a later request was taken already: its reply would never be sent. */
export function endWithNewest(res: ServerResponse): void {
  const newest = (res.req.socket as Connection)[NEWEST];
  if (newest === undefined || newest === res || newest.writableFinished) endWith(res);
}
