import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/** A client that does not read what it asked for holds its connection no longer than this. */
const UNREAD_REPLY_MS = 30_000;
const LOOKED_AT_EVERY_MS = 2_000;

/** What was still to be sent when it last changed, and when that was. */
interface Unsent {
  bytes: number;
  since: number;
}

/**
 * Ends connections whose client has stopped reading. `server.timeout` would do that too, but sets a timer anew for every
 * request, which costs each of them two hundredths of its time; one look at all sockets now and then costs nothing.
 */
export function endUnreadReplies(server: Server, now: () => number, unreadMs = UNREAD_REPLY_MS): void {
  const sockets = new Map<Socket, Unsent>();
  server.on('connection', (socket: Socket) => {
    sockets.set(socket, { bytes: 0, since: 0 });
    socket.once('close', () => sockets.delete(socket));
  });
  const look = () => {
    const at = now();
    for (const [socket, unsent] of sockets) {
      if (socket.writableLength === 0 || socket.writableLength !== unsent.bytes) {
        unsent.bytes = socket.writableLength;
        unsent.since = at;
      } else if (at - unsent.since >= unreadMs) {
        socket.resetAndDestroy(); // merely closed, the kernel would keep what was not read, and go on offering it
      }
    }
  };
  const timer = setInterval(look, Math.min(LOOKED_AT_EVERY_MS, unreadMs / 2));
  timer.unref();
  server.once('close', () => clearInterval(timer));
}
