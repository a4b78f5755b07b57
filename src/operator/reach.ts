/** A command's end of the admin socket: HTTP to the server that has the store open, if there is one. */
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import * as v from 'valibot';
import type { Variables } from './arguments.ts';
import { CommandError, EXIT, hasNoDescriptor } from './exit.ts';
import { linesOf } from './lines.ts';
import { adminSocket, isNobodyThere, ourSocket } from './sockets.ts';

/** A server that has our connection but does not answer is stopped or starting. */
const MAX_ANSWER_WAIT_MS = 3_000;

/** The input and output of a call, in the process of its command: lines in, lines out; the result comes last. */
export interface Io {
  /** Each line, with or without its line feed; undefined for a line that is too long. */
  input: AsyncIterable<Buffer | undefined>;
  /** Resolves when the line was taken; other work has its turn in between. */
  tell(line: string): Promise<void>;
}

/** The words and variables of a command: the server checks them anew. */
export interface Said {
  words: readonly string[];
  variables: Variables;
}

/** Undefined: nobody listens there. */
export async function askServer(
  dir: string,
  name: string,
  { words, variables }: Said,
  { input, tell }: Io,
): Promise<{ result: unknown } | undefined> {
  const path = `/${name.replaceAll(' ', '-')}`;
  const req = request({ socketPath: ourSocket(dir), method: 'POST', path, agent: false });
  const ours = Object.entries(variables).filter(([variable]) => variable.startsWith('PETSTORE_'));
  req.flushHeaders();
  req.setTimeout(MAX_ANSWER_WAIT_MS, () => req.destroy(silent(dir)));
  const [res]: IncomingMessage[] = await once(req, 'response').catch((error) => notAsked(dir, error));
  if (res === undefined) return undefined;
  // Sent only now: a server that was stopped would do the call later, after the operator was told that it is silent.
  req.write(`${JSON.stringify({ words, variables: Object.fromEntries(ours) } satisfies Said)}\n`);
  req.setTimeout(0).on('error', () => {}); // the answer breaks off as well
  pipeline(Readable.from(input), req).catch(() => {});
  try {
    for await (const text of linesOf(res)) {
      const { line, result, error } = answerIn(text, dir);
      if (error) throw new CommandError(error.exit, error.message);
      if (line === undefined) return { result };
      await tell(line);
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ECONNRESET') throw error;
  } finally {
    req.destroy();
  }
  throw new Error('the server ended before it answered; look before you repeat it');
}

const failure = v.strictObject({ exit: v.picklist(Object.values(EXIT)), message: v.string() });
type Failure = v.InferOutput<typeof failure>;
const answer = v.union([
  v.strictObject({ line: v.string() }),
  v.strictObject({ result: v.optional(v.unknown()) }),
  v.strictObject({ error: failure }),
]);

/** Checks every answer: the listener may be another program, or another version of this one. */
function answerIn(text: Buffer | undefined, dir: string): { line?: string; result?: unknown; error?: Failure } {
  try {
    const said = JSON.parse(String(text));
    if (!Array.isArray(said)) return v.parse(answer, said);
  } catch {} // told below
  throw new Error(`${adminSocket(dir)}: the program that answers there is no server of this version`);
}

const silent = (dir: string) =>
  new CommandError(EXIT.inUse, `${dir} is in use by a server that does not answer; it may be stopped`);

function notAsked(dir: string, error: NodeJS.ErrnoException): never[] {
  if (isNobodyThere(error)) return [];
  if (error instanceof CommandError || hasNoDescriptor(error)) throw error;
  if (error.code === 'EAGAIN') throw silent(dir); // its queue is full
  const advice = error.code === 'EACCES' ? '; run this as the user who owns the store' : '';
  throw new Error(`${dir}: the running server cannot be asked: ${error.message}${advice}`);
}
