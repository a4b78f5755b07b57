/** A request on its connection: what node:http made of it, and what this service asks of it. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Body, NO_BODY } from './body.ts';
import type { Connection } from './connection.ts';
import { type ApiError, MAX_BODY_BYTES } from './errors.ts';

export const CONTINUE = '100-continue';
/** The value of `Connection` is a list. */
const CLOSE = /(?:^|,)\s*close\s*(?:,|$)/i;

/** The headers that this service reads. node:http joins several lines of one name to a list, or keeps the first. */
type Name =
  | 'via'
  | 'host'
  | 'expect'
  | 'upgrade'
  | 'connection'
  | 'forwarded'
  | 'content-type'
  | 'authorization'
  | 'content-length'
  | 'idempotency-key'
  | 'x-forwarded-for'
  | 'content-encoding'
  | 'transfer-encoding';
export type Headers = { readonly [N in Name]?: string };

export class Request {
  readonly message: IncomingMessage;
  readonly res: ServerResponse;
  readonly connection: Connection;
  /** When its head was read, in ms of the monotonic clock. */
  readonly receivedAt: number;
  /** True if it came while the service was stopping. */
  readonly isLate: boolean;
  readonly method: string;
  readonly url: string;
  readonly headers: Headers;
  /** True if there is no body. Then the request need not say a type. */
  readonly isEmpty: boolean;
  readonly #body: Body | undefined;

  constructor(
    message: IncomingMessage,
    res: ServerResponse,
    connection: Connection,
    receivedAt: number,
    isLate: boolean,
  ) {
    const { method = '', url = '', headers } = message;
    this.message = message;
    this.res = res;
    this.connection = connection;
    this.receivedAt = receivedAt;
    this.isLate = isLate;
    this.method = method;
    this.url = url;
    this.headers = headers as Headers; // only Set-Cookie is an array
    this.isEmpty = headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0;
    if (!this.isEmpty) this.#body = new Body(message);
    // For speed: without `optimizeEmptyRequests`, node:http would drain the request as a stream, after the reply.
    else if (!message.readableEnded) message.read();
  }

  /** True if all of it has come. */
  get isComplete(): boolean {
    return this.#body === undefined || this.message.complete;
  }

  /** True if it has its reply. */
  get isAnswered(): boolean {
    return this.res.headersSent;
  }

  /** The `Expect` header. In HTTP/1.0 a server must ignore `100-continue` (RFC 9110, 10.1.1). */
  get expect(): string | undefined {
    const expect = this.headers.expect?.toLowerCase();
    return this.message.httpVersionMinor === 0 && expect === CONTINUE ? undefined : expect;
  }

  /**
   * True if the connection serves no other request after this one:
   * - Its client says so, or speaks HTTP/1.0.
   * - It has `Upgrade`: node:http drops what follows it.
   * - It has `Expect`, and its body was not asked for: it is unknown whether the body will come.
   * - Its body was refused, or is too long to be read to its end. A short one is read: a client that sends it in a
   *   packet of its own would otherwise lose its connection at each 401 and 429.
   */
  get isLast(): boolean {
    const { upgrade, connection = '', 'content-length': length } = this.headers;
    if (this.message.httpVersionMinor === 0 || CLOSE.test(connection) || upgrade !== undefined) return true;
    if (this.expect !== undefined && this.#body?.isWanted !== true) return true;
    if (this.#body === undefined) return false;
    return this.#body.failure !== undefined || (!this.isComplete && !(Number(length) <= MAX_BODY_BYTES));
  }

  /** Resolves with the whole body, rejects when it is refused or has broken off. */
  body(): Promise<Uint8Array> {
    return this.#body?.whole() ?? Promise.resolve(NO_BODY);
  }

  /** Frees the body, and drops what is still to come of it. */
  discard(): void {
    this.#body?.discard();
  }

  /** The rest of the message cannot be read, or has not come in time. */
  fail(why: ApiError): void {
    this.#body?.fail(why);
  }
}
