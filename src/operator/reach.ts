/** A command's way to the store: to the running server if there is one, else by opening it here. */
import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { systemClock as clock } from '../clock.ts';
import type { Said } from './arguments.ts';
import type { Call, Io } from './context.ts';
import { CommandError, EXIT, hasNoDescriptor, isInUse } from './exit.ts';
import { linesOf } from './lines.ts';
import { openHere } from './opening.ts';
import type { Place } from './settings.ts';
import { adminSocket, isNobodyThere } from './sockets.ts';

/** A server that has our connection but does not answer is stopped or starting. */
const ANSWER_MAX_WAIT_MS = 3_000;
/** Another command has the store for a moment only. */
const IN_USE_MAX_WAIT_MS = 3_000;
const IN_USE_RETRY_MS = 100;

interface Asked {
  name: string;
  said: Said;
  call: Call;
  /** Where there is no store, begin one. */
  makes: boolean;
  /** What to do where nobody knows whether it was done. */
  unsure: string;
}

/** What a command gives to its call, and takes from it. */
export interface Ends extends Pick<Io, 'tell'> {
  input: AsyncIterable<Buffer>;
}

/** `closing`: the call was done, and after that the store could not be closed. */
type Reached = { result: unknown; closing?: Error };

export function reach(place: Place, asked: Asked, ends: Ends): Promise<Reached> {
  return triedWhileInUse(async () => {
    const answer = place.data === undefined ? undefined : await askServer(place.data, asked);
    return answer === undefined ? callHere(place, asked, ends) : { result: await hear(answer, asked, ends) };
  });
}

/** `isInVain`: whoever has the store does not have it for a moment only. */
export async function triedWhileInUse<R>(work: () => Promise<R>, isInVain = async () => false): Promise<R> {
  for (const end = performance.now() + IN_USE_MAX_WAIT_MS; ; await wait(IN_USE_RETRY_MS)) {
    try {
      return await work();
    } catch (error) {
      if (!isInUse(error) || performance.now() > end || (await isInVain())) throw error;
    }
  }
}

async function callHere(place: Place, { call, said, makes }: Asked, { input, tell }: Ends): Promise<Reached> {
  const engine = await openHere(place, { reads: call.reads, makes });
  const context = { engine, clock, environment: 'production' as const };
  const result = await call.run(context, said, { input: linesOf(input), tell }).catch(async (error) => {
    await engine.close().catch(() => {}); // why it failed is what is told
    throw error;
  });
  return { result, closing: (await engine.close().catch((error: Error) => error)) as Error | undefined };
}

type Answer = [req: ClientRequest, res: IncomingMessage];

/** Undefined: nobody listens there. */
async function askServer(dir: string, { name, said }: Asked): Promise<Answer | undefined> {
  const silent = new CommandError(EXIT.inUse, `${dir} is in use by a server that does not answer; it may be stopped`);
  try {
    const path = `/${name.replaceAll(' ', '-')}`;
    const req = request({ socketPath: adminSocket(dir), method: 'POST', path, agent: false });
    req.setTimeout(ANSWER_MAX_WAIT_MS, () => req.destroy(silent)).write(`${JSON.stringify(said)}\n`);
    const [res] = await once(req, 'response');
    return [req.setTimeout(0).on('error', () => {}), res]; // the answer breaks off as well
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (isNobodyThere(error as Error)) return undefined;
    if (error instanceof CommandError || hasNoDescriptor(error as Error)) throw error;
    if (code === 'EAGAIN') throw silent; // its queue is full
    const advice = code === 'EACCES' ? '; run this as the user who owns the store' : '';
    throw new CommandError(EXIT.failed, `${dir}: the running server cannot be asked: ${message}${advice}`);
  }
}

/** Sends what there is to send, while what is told is heard. */
async function hear([req, res]: Answer, { unsure }: Asked, { input, tell }: Ends): Promise<unknown> {
  pipeline(Readable.from(input), req).catch(() => {}); // the answer says why, or breaks off
  try {
    for await (const text of linesOf(res)) {
      const { line, result, error } = JSON.parse(String(text));
      if (error) throw new CommandError(error.exit, error.message);
      if (line === undefined) return result;
      await tell(line);
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ECONNRESET') throw error;
  } finally {
    req.destroy();
  }
  throw new CommandError(EXIT.failed, `the server ended before it answered; ${unsure}`);
}
