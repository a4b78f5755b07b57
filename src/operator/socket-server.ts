/** The server's end of the socket in the data directory: does the work of commands on the open store. */
import { chmodSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import { setImmediate as nextTurn } from 'node:timers/promises';
import * as v from 'valibot';
import type { Log } from '../store/engine.ts';
import { type AnyCommand, type Context, finish, isStreaming, type Sink } from './command.ts';
import { asCommandError, CommandError, EXIT } from './failures.ts';
import { letIn, listen } from './listening.ts';
import { callOf, socketPath } from './socket-client.ts';
import { VERSION } from './version.ts';

const MAX_CALLERS = 64;
/** Far more than the longest batch of an import. */
const MAX_BODY_BYTES = 1_048_576;
/** When the server stops, calls under way are finished if that takes no longer. */
const MAX_LAST_CALLS_MS = 2_000;

export interface Serving {
  context: Context;
  commands: readonly AnyCommand[];
  log: Log;
}

/** The caller must hold the lock of the store: a socket that is there already was left behind by a kill. */
export async function openSocket(dir: string, serving: Serving): Promise<{ close(): Promise<void> }> {
  const path = socketPath(dir);
  try {
    rmSync(path, { force: true });
  } catch {
    throw new Error(`${path} is not a socket of petstore: remove it by hand`);
  }
  const server = createServer((req, res) => void answer(req, res, serving));
  letIn(server, MAX_CALLERS, 'commands', serving.log);
  await listen(server, { path }, serving.log);
  chmodSync(path, 0o600);
  return {
    close: async () => {
      setTimeout(() => server.closeAllConnections(), MAX_LAST_CALLS_MS).unref();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function answer(req: IncomingMessage, res: ServerResponse, { context, commands, log }: Serving): Promise<void> {
  res.setHeader('Connection', 'close');
  let name: string | undefined;
  const reply = async () => {
    const call = await readCall(req);
    name = call.command;
    const command = commands.find((one) => one.name === name);
    if (command?.work === undefined) throw new Error(`the running server knows no command ${name}`);
    const work = command.work(context, call.values);
    if (isStreaming(work)) res.writeHead(200, { 'Content-Type': 'application/octet-stream', Trailer: 'Reply' });
    const result = await finish(await work, sinkOf(res));
    if (command.isLogged?.(call.values) ?? command.access !== 'read')
      log.info('command', { command: name, id: (result as { id?: string })?.id });
    return { result };
  };
  const text = JSON.stringify(await reply().catch((error) => errorReply(error, name, log)));
  if (res.headersSent) {
    res.addTrailers({ Reply: encodeURIComponent(text) });
    res.end();
  } else {
    res.writeHead(200, { 'Content-Type': 'application/json' }).end(text);
  }
}

/** The caller may be of another version, whose values would mean something else here. */
async function readCall(req: IncomingMessage): Promise<v.InferOutput<typeof callOf>> {
  const isShort = Number(req.headers['content-length']) <= MAX_BODY_BYTES;
  const body = isShort ? await json(req).catch(() => undefined) : undefined;
  const { success, output } = v.safeParse(callOf, body);
  if (!success) throw new CommandError(EXIT.usage, 'the body must be {"version", "command", "values"} with its length');
  if (output.version === VERSION) return output;
  throw new Error(`the running server is version ${VERSION}, this command ${output.version}: restart the server`);
}

function sinkOf(res: ServerResponse): Sink {
  let goOn = () => {};
  res.on('drain', () => goOn()).on('close', () => goOn());
  return async (chunk) => {
    if (!res.write(chunk) && !res.destroyed) await new Promise<void>((resolve) => (goOn = resolve));
    await nextTurn(); // for requests
    return !res.destroyed;
  };
}

function errorReply(error: unknown, command: string | undefined, log: Log) {
  const known = asCommandError(error, 'the store');
  log[known ? 'warn' : 'error']('command', { command, error: known?.message ?? error });
  const { exit, message } = known ?? { exit: EXIT.failed, message: 'a bug in the server; its log says more' };
  return { error: { exit, message } };
}
