/** The server's end of the admin socket. */
import { chmodSync, rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import * as v from 'valibot';
import { QUIET, runCall, undoUnfinished } from './calls.ts';
import type { Context } from './context.ts';
import { asCommandError, CommandError, EXIT } from './exit.ts';
import { listen } from './listen.ts';
import type { Log } from './logging.ts';
import { lineOf, linesFrom, socketPlace } from './socket.ts';

const CALLERS_MAX = 16;
const BUSY = `the server is busy with ${CALLERS_MAX} other commands; try again when one of them has ended`;
/** A command that lives says something more often. One that is stopped must not hold for ever what it has begun. */
const SILENCE_MAX_MS = 30_000;
/** At the end, calls under way are finished if that takes no longer. */
const LAST_CALLS_MAX_MS = 2_000;

const request = v.object({ call: v.string(), args: v.unknown() });

interface Admin {
  /** Hears nobody new, finishes the calls under way, hangs up, and takes the socket away. */
  close(): Promise<void>;
}

/** Only for whoever holds the lock of the store: a socket that is there already was left behind by a kill. */
export async function openAdmin(
  context: Omit<Context, 'unfinished'>,
  version: string,
  log: Log,
  silenceMaxMs = SILENCE_MAX_MS,
): Promise<Admin> {
  const place = socketPlace(context.dir);
  try {
    rmSync(place.path, { force: true });
  } catch {
    const why = 'is in the place of the socket for commands and cannot be removed; take it away by hand';
    throw new CommandError(EXIT.failed, `${place.path} ${why}`);
  }
  /** Each with its last call. A place is kept until that has ended, even if the caller is gone. */
  const callers = new Map<Socket, Promise<void> | undefined>();
  const server = createServer((socket) => {
    socket.on('error', () => {}); // 'close' follows
    if (callers.size === CALLERS_MAX) {
      socket.end(lineOf({ error: { exit: EXIT.failed, message: BUSY } }), () => socket.destroy());
      return;
    }
    callers.set(socket, undefined);
    socket.write(lineOf({ petstore: version, environment: context.environment, silenceMaxMs }));
    const onCall = (call: Promise<void>) => callers.set(socket, call);
    const own = { ...context, unfinished: new Map() };
    void hear(socket, own, { log, silenceMaxMs, onCall }).finally(() => callers.delete(socket));
  });
  await listen(server, { path: place.path }, log);
  chmodSync(place.path, 0o600);
  return {
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      await Promise.race([Promise.all(callers.values()), wait(LAST_CALLS_MAX_MS, undefined, { ref: false })]);
      for (const socket of callers.keys()) socket.destroy();
      await closed;
      place.close();
    },
  };
}

interface Hearing {
  log: Log;
  silenceMaxMs: number;
  onCall: (call: Promise<void>) => void;
}

/** One call at a time, in the order they come, until the caller hangs up, or is silent for too long between two. */
async function hear(socket: Socket, context: Context, { log, silenceMaxMs, onCall }: Hearing): Promise<void> {
  const lines = linesFrom(socket);
  const hangUp = () => {
    log.warn('a command was silent for too long', { undone: context.unfinished.size });
    socket.destroy();
  };
  const nextLine = () => {
    let isHeard = false;
    // Two turns more: if it was we who stood still, what has come meanwhile is read first.
    const timer = setTimeout(() => setImmediate(() => setImmediate(() => isHeard || hangUp())), silenceMaxMs);
    return lines.next().finally(() => {
      isHeard = true;
      clearTimeout(timer);
    });
  };
  try {
    // On a connection that is closed there may be lines left that were read before.
    for (let line = await nextLine(); !line.done && !socket.destroyed; line = await nextLine()) {
      const call = runLine(socket, context, line.value, log);
      onCall(call);
      await call;
    }
  } catch {
    // The connection broke.
  }
  await undoUnfinished(context);
}

async function runLine(socket: Socket, context: Context, line: string, log: Log): Promise<void> {
  let asked: v.InferOutput<typeof request> | undefined;
  try {
    asked = v.parse(request, JSON.parse(line));
    const { call, args } = asked;
    const result = await runCall(context, call, args);
    if (!QUIET.has(call)) log.info('operator', { call, id: idOf(result) ?? idOf(args) });
    socket.write(lineOf({ result }));
  } catch (error) {
    const { exit, message } = asCommandError(error);
    if (asked !== undefined) log.warn('operator', { call: asked.call, id: idOf(asked.args), error: message });
    socket.write(lineOf({ error: { exit, message } }));
  }
}

const idOf = (about: unknown): unknown => (about as { id?: unknown } | undefined)?.id;
