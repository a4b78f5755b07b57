/**
 * The private fields of node:http that this program uses for speed: `_consuming` of a request, `_header` of a reply, and
 * the `parser` of a socket, with its `onIncoming` and its callback at `kOnBody`. When test/http/both-ways.test.ts hides
 * the first two, every reply still has the same bytes. If a Node really lacks one of these two, the same test fails, so
 * that somebody learns of it. If it lacks one of the others, test/http/bodies.test.ts fails: a client that sends
 * thousands of pieces which nobody wants then takes much of our time, and may get a reset behind its reply.
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

/** Tells node:http that the body of this request has a reader. */
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
  /** Called with each request when its head is read. Returns what the parser is to do next. */
  onIncoming?: (req: object, keepAlive: boolean) => number;
}

const parserOf = (socket: Socket) => (socket as { parser?: Parser | null }).parser ?? undefined;
const STOP = 2;

/**
 * Makes the parser stop behind the head of a request, in the middle of its packet, if `mayStop` then returns true. As
 * after an upgrade to another protocol, it is never given any later bytes of the connection.
 */
export function stopParser(socket: Socket, mayStop: () => boolean): void {
  const parser = parserOf(socket);
  const onIncoming = parser?.onIncoming;
  if (parser === undefined || onIncoming === undefined) return;
  parser.onIncoming = (req, keepAlive) => onIncoming(req, keepAlive) || (mayStop() ? STOP : 0);
}

/**
 * Stops the callback for pieces of a body: the packet that is being parsed may hold ten thousand of them. Returns a
 * function that undoes this, which must be called before the parser serves another connection.
 */
export function muteBody(socket: Socket): () => void {
  const parser = parserOf(socket);
  const at = parser?.constructor.kOnBody;
  if (parser === undefined || at === undefined) return () => {};
  const callback = parser[at];
  parser[at] = undefined;
  return () => {
    parser[at] = callback;
  };
}
