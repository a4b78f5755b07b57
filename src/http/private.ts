/**
 * The undocumented parts of node:http that this program uses: three fields, for speed. When test/http/both-ways.test.ts
 * hides the first two, every reply still has the same bytes. If a Node really lacks one of these two, the same test
 * fails, so that somebody learns of it. If it lacks the third, test/http/bodies.test.ts fails: a client that sends
 * thousands of pieces which nobody wants may then get a reset behind its reply.
 */
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { PassThrough } from 'node:stream';

interface Internals {
  /** True if the body has a reader. Otherwise node:http reads the body to its end as a stream, after the reply. */
  _consuming: boolean;
  /** The head as it will be sent: `end` then adds nothing to it. `writeHead` would look at every header again. */
  _header: string | null;
}

export function readsItself(req: object): void {
  (req as Internals)._consuming = true;
}

/** Sends head and body as one string in one write. */
export function endWhole(res: ServerResponse, text: string): void {
  (res as unknown as Internals)._header = text;
  res.end();
}

/** True if this Node still sends exactly the text given to `endWhole`. */
export const CAN_END_WHOLE = isSentWhole();

function isSentWhole(): boolean {
  const wire = new PassThrough();
  try {
    const res = new ServerResponse(new IncomingMessage(new Socket()));
    res.assignSocket(wire as unknown as Socket);
    endWhole(res, 'head and body');
  } catch {
    return false;
  }
  return String(wire.read()) === 'head and body';
}

/** The parser of a connection; `kOnBody` is the index of its callback for each piece of a body. */
interface Parser {
  constructor: { kOnBody?: number };
  [at: number]: unknown;
}

/**
 * Stops the callback for pieces of a body: the packet that is being parsed may hold ten thousand of them. Returns a
 * function that undoes this, which must be called before the parser serves another connection.
 */
export function muteBody(socket: Socket): () => void {
  const parser = (socket as { parser?: Parser | null }).parser;
  const at = parser?.constructor.kOnBody;
  if (parser === null || parser === undefined || at === undefined) return () => {};
  const callback = parser[at];
  parser[at] = undefined;
  return () => {
    parser[at] = callback;
  };
}
