/** The server's end of the admin socket. */
import { chmodSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import * as v from 'valibot';
import { isQuiet, runCall, undoUnfinished } from './calls.ts';
import type { Context } from './context.ts';
import { CommandError, EXIT } from './exit.ts';
import { listen } from './listen.ts';
import type { Log } from './logging.ts';
import { lineOf, onLines, removeStale, sendLine, socketPlace } from './socket.ts';

const CALLERS_MAX = 16;
const BUSY = `the server is busy with ${CALLERS_MAX} other commands; try again when one of them has ended`;
/** At the end, calls under way are finished if that takes no longer. */
const LAST_CALLS_MAX_MS = 2_000;

const request = v.object({ call: v.string(), args: v.unknown() });

interface Admin {
  /** Hears nobody new, finishes the calls under way, hangs up, and takes the socket away. */
  close(): Promise<void>;
}

/** Only for whoever holds the lock of the store: a socket that is there already is a dead one. */
export async function openAdmin(context: Omit<Context, 'unfinished'>, version: string, log: Log): Promise<Admin> {
  const place = socketPlace(context.dir);
  removeStale(place);
  /** Each with what tells when its calls so far are done. */
  const callers = new Map<Socket, () => Promise<void>>();
  const server = createServer((socket) => {
    socket.on('error', () => {}); // 'close' follows
    socket.on('close', () => callers.delete(socket));
    if (callers.size === CALLERS_MAX) {
      socket.end(lineOf({ error: { exit: EXIT.failed, message: BUSY } }), () => socket.destroy());
      return;
    }
    sendLine(socket, { petstore: version, environment: context.environment });
    callers.set(socket, hear(socket, { ...context, unfinished: new Map() }, log));
  });
  await listen(server, { path: place.path }, log);
  chmodSync(place.path, 0o600);
  return {
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      const calls = Promise.all(Array.from(callers.values(), (done) => done()));
      await Promise.race([calls, wait(LAST_CALLS_MAX_MS, undefined, { ref: false })]);
      for (const socket of callers.keys()) socket.destroy();
      await closed;
      place.close();
    },
  };
}

/** One call at a time, in the order they come. */
function hear(socket: Socket, context: Context, log: Log): () => Promise<void> {
  let last: Promise<void> = Promise.resolve();
  socket.on('close', () => {
    last = last.then(() => undoUnfinished(context));
  });
  const onLine = (line: string) => {
    socket.pause();
    last = last.then(() => runLine(socket, context, line, log)).then(() => void socket.resume());
  };
  onLines(socket, onLine, () => socket.destroy());
  return () => last;
}

async function runLine(socket: Socket, context: Context, line: string, log: Log): Promise<void> {
  try {
    const { call, args } = v.parse(request, JSON.parse(line));
    const result = await runCall(context, call, args);
    if (!isQuiet(call)) log.info('operator', { call, id: idOf(result) ?? idOf(args) });
    sendLine(socket, { result });
  } catch (error) {
    const exit = error instanceof CommandError ? error.exit : EXIT.failed;
    sendLine(socket, { error: { exit, message: (error as Error).message } });
  }
}

const idOf = (about: unknown): unknown => (about as { id?: unknown } | undefined)?.id;
