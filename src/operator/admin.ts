/** The server's end of the admin socket: HTTP, a command a request, from the table of commands. */
import { once } from 'node:events';
import { chmodSync, renameSync, rmSync, statSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { finished } from 'node:stream';
import * as v from 'valibot';
import type { Log } from '../engine.ts';
import { StoreError } from '../store/model.ts';
import { read } from './arguments.ts';
import type { Calls, Context } from './command.ts';
import { asCommandError, CommandError, EXIT } from './exit.ts';
import { linesOf, MAX_INPUT_LINE_BYTES } from './lines.ts';
import type { Said } from './reach.ts';
import { adminSocket, letIn, listen } from './sockets.ts';

const MAX_CALLERS = 64;
/** At the end, calls under way are finished if that takes no longer. */
const MAX_LAST_CALLS_MS = 2_000;

interface Serving {
  context: Context;
  calls: Calls;
  log: Log;
}

/** The caller must hold the lock of the store: a socket that is there already was left behind by a kill. */
export async function openAdmin(dir: string, serving: Serving): Promise<{ close(): Promise<void> }> {
  const path = adminSocket(dir);
  try {
    rmSync(path, { force: true });
  } catch {
    throw new Error(`${path} is in the place of the socket for commands: remove it by hand`);
  }
  const server = createServer({ requestTimeout: 0 }, (req, res) => void answer(req, res, serving));
  letIn(server, MAX_CALLERS, 'commands', serving.log);
  await listen(server, { path }, serving.log);
  chmodSync(path, 0o600);
  const { ino } = statSync(path);
  return {
    close: async () => {
      setTimeout(() => server.closeAllConnections(), MAX_LAST_CALLS_MS).unref();
      await new Promise((resolve) => sparing(path, ino, () => server.close(resolve)));
    },
  };
}

/**
 * Node removes whatever has the name of a socket that it closes. If our directory was moved or replaced, that may be a
 * socket of another server: then that one stands aside meanwhile.
 */
function sparing(path: string, ino: number, close: () => void): void {
  const there = statSync(path, { throwIfNoEntry: false });
  const isOthers = there !== undefined && there.ino !== ino;
  const aside = `${path}.aside`;
  if (isOthers) renameSync(path, aside);
  close();
  if (isOthers) renameSync(aside, path);
}

/**
 * Each line of the answer is `{"line"}`, or the last: `{"result"}` or `{"error"}`. Its head leaves at once, so that
 * the caller knows that the server lives. A caller that is stopped holds its connection, and nothing else.
 */
async function answer(req: IncomingMessage, res: ServerResponse, { context, calls, log }: Serving): Promise<void> {
  res.writeHead(200).flushHeaders();
  const call = req.url!.slice(1).replaceAll('-', ' ');
  // As bytes: node:http takes several times as long over a text.
  const say = (what: object) => res.write(Buffer.from(`${JSON.stringify(what)}\n`));
  const gone = new Promise((resolve) => res.once('close', resolve));
  const tell = async (line: string) => {
    await (say({ line }) ? new Promise(setImmediate) : Promise.race([once(res, 'drain'), gone]));
    if (res.destroyed) throw new Error('the caller went away');
  };
  const input = linesOf(req.iterator({ destroyOnReturn: false }), MAX_INPUT_LINE_BYTES);
  try {
    const command = calls.find(({ name }) => name === call);
    if (command?.call === undefined) throw new Error(`the running server knows no command ${call}`);
    const { words, variables } = saidIn((await input.next()).value);
    const result = await command.call(context, read(command, words, variables), { input, tell });
    if (!command.reads) log.info('operator', { call, id: (result as { id?: string } | undefined)?.id });
    say({ result });
  } catch (error) {
    const known = asCommandError(error, 'the store');
    const isClosing = error instanceof StoreError && error.failure === 'closed';
    log[isClosing ? 'info' : known ? 'warn' : 'error']('operator', { call, error: known?.message ?? error });
    const { exit, message } = known ?? { exit: EXIT.failed, message: 'a bug in the server; its log says more' };
    say({ error: { exit, message } });
  }
  finished(req, () => res.end()); // a caller that is still sending would not read the answer
  await input.return(undefined); // or it holds the rest of the request, and its end is not seen
  req.resume();
}

const said = v.object({ words: v.array(v.string()), variables: v.record(v.string(), v.string()) });

/** The first line of a request. The caller may be another program, or another version of this one. */
function saidIn(line: Buffer | undefined): Said {
  try {
    return v.parse(said, JSON.parse(String(line)));
  } catch {
    throw new CommandError(EXIT.usage, 'the first line of a request must be {"words": […], "variables": {…}}');
  }
}
