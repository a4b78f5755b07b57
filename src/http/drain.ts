import type { Server } from 'node:http';
import { Server as NetServer } from 'node:net';
import { setImmediate as immediate } from 'node:timers/promises';
import type { Connections } from './connection.ts';

/**
 * Connections that seem idle are left open this long: a request may already be on its way, and closing under
 * it would cost its sender the reply. Until then whoever asks gets a refusal, and `Connection: close` with it.
 */
const IDLE_GRACE_MS = 300;
const POLL_MS = 20;

/** Ends a server: no new connections, what is under way is finished, at most `maxMs` in all. */
export async function drain(server: Server, connections: Connections, maxMs: number): Promise<void> {
  await immediate(); // whoever has connected by now is accepted first: closing would reset the connection
  const closed = new Promise<void>((resolve) => {
    // node:http's own close() cuts idle connections at once; net's only stops listening.
    NetServer.prototype.close.call(server, () => resolve());
  });
  const idle = setTimeout(
    () => {
      // A connection becomes idle when its last reply is done, so this is asked again until none is left.
      const poll = setInterval(() => server.closeIdleConnections(), POLL_MS);
      closed.then(() => clearInterval(poll));
    },
    Math.min(IDLE_GRACE_MS, maxMs),
  );
  const end = setTimeout(() => connections.end(), maxMs);
  await closed;
  clearTimeout(idle);
  clearTimeout(end);
}
