/** The request: its headers as this service reads them, and its body, gathered in one buffer of bounded size. */
import { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { type Connection, connectionOf } from './connection.ts';
import {
  ApiError,
  badRequest,
  bodyTooLarge,
  headersTooLarge,
  line,
  MAX_BODY_BYTES,
  MAX_HEADER_PAIRS,
} from './errors.ts';

/** The most memory of all bodies under way. */
const MAX_BODY_BYTES_IN_ALL = 64 * 1024 * 1024;
/** The most pieces of one body: each costs a call from the parser. So a larger body cannot come byte by byte. */
const MAX_BODY_PIECES = 4_096;
const LEAST_BUFFER_BYTES = 1_024;
export const CONTINUE = '100-continue';
export const NO_BODY: Uint8Array = Buffer.alloc(0);
const AGAIN = line('Retry-After', '1');

/** The headers that this service reads. Several lines of one name are joined to a list. */
const READ = [
  'via',
  'host',
  'expect',
  'upgrade',
  'forwarded',
  'if-match',
  'content-type',
  'authorization',
  'if-none-match',
  'content-length',
  'idempotency-key',
  'x-forwarded-for',
  'content-encoding',
  'transfer-encoding',
] as const;
type Name = (typeof READ)[number];
export type Headers = { [N in Name]: string | undefined } & { sentTwice: string | undefined };

/** Headers that must not be repeated: two readers of the same bytes may take different values. */
const SINGLE: readonly Name[] = ['host', 'content-type', 'authorization', 'transfer-encoding'];
/** The names by their length, also as most clients write them: `If-Match`. */
const BY_LENGTH: { readonly name: Name; readonly capitalized: string }[][] = [];
for (const name of READ) (BY_LENGTH[name.length] ??= []).push({ name, capitalized: capitalized(name) });

/**
 * One pass over the headers, into an object of one shape. node:http would keep all of them, in objects whose shape
 * depends on the names sent.
 */
function readHeaders(raw: readonly string[]): Headers {
  const headers = newHeaders();
  for (let at = 0; at < raw.length; at += 2) {
    const name = nameOf(raw[at]);
    if (name === undefined) continue;
    const before = headers[name];
    if (before === undefined) headers[name] = raw[at + 1];
    else if (SINGLE.includes(name)) headers.sentTwice = raw[at];
    else headers[name] = `${before}, ${raw[at + 1]}`;
  }
  return headers;
}

/** By comparing, and not by a Map: V8 would look each new text up among all texts that it knows. */
function nameOf(sent: string): Name | undefined {
  const known = BY_LENGTH[sent.length];
  if (known === undefined) return undefined;
  for (const { name, capitalized } of known) if (sent === name || sent === capitalized) return name;
  const lower = sent.toLowerCase();
  return known.find(({ name }) => name === lower)?.name;
}

function capitalized(name: string): string {
  return name.replace(/\b[a-z]/g, (letter) => letter.toUpperCase());
}

const newHeaders = (): Headers => {
  return {
    via: undefined,
    host: undefined,
    expect: undefined,
    upgrade: undefined,
    forwarded: undefined,
    'if-match': undefined,
    'content-type': undefined,
    authorization: undefined,
    'if-none-match': undefined,
    'content-length': undefined,
    'idempotency-key': undefined,
    'x-forwarded-for': undefined,
    'content-encoding': undefined,
    'transfer-encoding': undefined,
    sentTwice: undefined,
  };
};

const bodyInTooManyPieces = () =>
  new ApiError('body_too_large', `the body may come in at most ${MAX_BODY_PIECES} pieces`, '', true);
const tooManyBodies = () => new ApiError('unavailable', 'too many request bodies are under way', AGAIN, true);

/** The memory of all bodies under way in this process. */
let bodyBytesInAll = 0;

/**
 * The least that node:http asks of a request. Its own is a stream and an EventEmitter, and to make one takes 4 % of the
 * CPU of a list. node:http sets the fields down to `complete`, and others that nobody reads here.
 */
export class Incoming {
  method = '';
  url = '';
  httpVersionMajor = 1;
  httpVersionMinor = 1;
  rawHeaders: readonly string[] = [];
  rawTrailers: readonly string[] = [];
  /** True when all of it has come. */
  complete = false;
  readonly from: Connection;
  /** When it came, in ms of the monotonic clock, if others were under way on its connection. */
  waitsSince: number | undefined = undefined;
  readonly #isBeyondBound: boolean;
  #headers: Headers | undefined;
  #body: Buffer | undefined;
  #bytes = 0;
  #pieces = 0;
  /** Why the body will not come. */
  #failure: ApiError | undefined;
  /** True when the request has its reply, or is to get none: the rest of its body is dropped. */
  #isAnswered: boolean;
  #isWanted = false;
  #settle: (() => void) | undefined;

  constructor(socket: Socket) {
    this.from = connectionOf(socket);
    this.#isBeyondBound = this.from.isFull;
    this.#isAnswered = this.#isBeyondBound; // its body is dropped, if node:http goes on with it
    this.from.newest = this;
  }

  get headers(): Headers {
    return (this.#headers ??= readHeaders(this.rawHeaders));
  }

  /**
   * Not what the client asks for: a real `Upgrade` and CONNECT are requests like others. True for the request that
   * overfills the queue: at an upgrade node:http stops parsing, at the latest behind the packet, and the connection ends.
   */
  get upgrade(): boolean {
    return this.#isBeyondBound;
  }

  set upgrade(_: boolean) {}

  /** True if there is no body. Then the request need not say a type. */
  get isEmpty(): boolean {
    const { 'transfer-encoding': encoding, 'content-length': length = '0' } = this.headers;
    return encoding === undefined && Number(length) === 0;
  }

  /** The `Expect` header. In HTTP/1.0 a server must ignore `100-continue` (RFC 9110, 10.1.1). */
  get expect(): string | undefined {
    const expect = this.headers.expect?.toLowerCase();
    return this.httpVersionMinor === 0 && expect === CONTINUE ? undefined : expect;
  }

  /**
   * True if the connection serves no other request behind this one: it is HTTP/1.0; its body was refused; node:http
   * drops what stands behind it (`Upgrade`, CONNECT); it is unknown whether its body will come (`Expect`); or nobody will
   * read the rest of its body. A small body is read to its end: a client that sends it in a packet of its own would else
   * lose its connection at each 401 and 429.
   */
  get isLast(): boolean {
    const { upgrade, expect, 'content-length': length } = this.headers;
    if (this.httpVersionMinor === 0 || this.#failure !== undefined) return true;
    if (upgrade !== undefined || this.method === 'CONNECT') return true;
    if (expect !== undefined && !this.#isWanted) return true;
    return !this.complete && !this.isEmpty && !(Number(length) <= MAX_BODY_BYTES);
  }

  /** Resolves with the whole body, rejects when it is refused or has broken off. */
  body(): Promise<Uint8Array> {
    this.#isWanted = true;
    return new Promise((resolve, reject) => {
      this.#settle = () => {
        if (this.#failure !== undefined) reject(this.#failure);
        else if (this.complete) resolve(this.#whole());
      };
      this.#settle();
    });
  }

  #whole(): Uint8Array {
    const buffer = this.#body ?? NO_BODY;
    return buffer.length === this.#bytes ? buffer : buffer.subarray(0, this.#bytes);
  }

  /** The rest of the message will not come, or cannot be read. True if the request is yet to be answered with that. */
  fail(why: ApiError): boolean {
    this.#failure ??= why;
    this.#settle?.();
    return !this.#isAnswered;
  }

  /** Frees the body, and drops what is still to come of it. */
  discard(): void {
    this.#isAnswered = true;
    bodyBytesInAll -= this.#body?.length ?? 0;
    this.#body = undefined;
    this.#settle = undefined; // it holds the promise, and so the body
  }

  #add(part: Buffer): void {
    const bytes = this.#bytes + part.length;
    if (bytes > MAX_BODY_BYTES) this.fail(bodyTooLarge());
    else if (++this.#pieces > MAX_BODY_PIECES) this.fail(bodyInTooManyPieces());
    else if (!this.#grow(bytes)) this.fail(tooManyBodies());
    else {
      part.copy(this.#body as Buffer, this.#bytes);
      this.#bytes = bytes;
    }
  }

  /**
   * Makes room for so many bytes, in one buffer: a list of pieces, which may have one byte each, would take hundreds of
   * times the memory. False if all bodies together would take too much.
   */
  #grow(bytes: number): boolean {
    const before = this.#body?.length ?? 0;
    if (bytes <= before) return true;
    const size = before === 0 ? bytes : Math.min(Math.max(2 * bytes, LEAST_BUFFER_BYTES), MAX_BODY_BYTES);
    if (bodyBytesInAll + size - before > MAX_BODY_BYTES_IN_ALL) return false;
    bodyBytesInAll += size - before;
    const larger = Buffer.allocUnsafeSlow(size);
    this.#body?.copy(larger);
    this.#body = larger;
    return true;
  }

  // The rest is called by node:http.

  _addHeaderLines(lines: readonly string[]): void {
    if (this.complete) this.rawTrailers = lines;
    else this.rawHeaders = lines;
  }

  /** Takes each piece of the body, and with null behind the last. */
  push(part: Buffer | null): boolean {
    if (part === null) this.from.bytesOfRequests = this.from.socket.bytesRead;
    if (this.#isAnswered || this.#failure !== undefined) return true;
    if (part !== null) this.#add(part);
    else if (this.rawTrailers.length > 2 * MAX_HEADER_PAIRS) this.fail(headersTooLarge());
    else this.#settle?.();
    return true;
  }

  /** The connection is closed before the reply. */
  destroy(): void {
    this.fail(badRequest('the body ended early'));
    this.discard();
  }

  get socket(): Socket {
    return this.from.socket;
  }

  /** Somebody reads the body: node:http need not drain it behind the reply. */
  get _consuming(): boolean {
    return true;
  }

  /** Behind the reply node:http lets go of the request, if this is true; or else at the event `end`, which never comes. */
  get readableEnded(): boolean {
    return this.complete;
  }

  on(): void {}
}

/** Behind a reply, Node 24 and newer call the method of a private symbol, about an AbortSignal. This class has none. */
for (const symbol of Object.getOwnPropertySymbols(IncomingMessage.prototype)) {
  Object.defineProperty(Incoming.prototype, symbol, { value: () => {} });
}
