/**
 * One connection. node:http sends replies in the order of their requests, but begins pipelined requests all at once. Here
 * each begins when the reply before it has left (RFC 9112, 9.3.2): a read behind a write sees it, and nothing is done behind
 * a reply that ends the connection.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Body } from './body.ts';
import { type ApiError, MAX_BODY_BYTES } from './errors.ts';
import { expectOf, hasBody } from './message.ts';
import { CLOSE, type Reply, rawReply } from './reply.ts';

/** The most requests that wait while one is under way. No browser pipelines; load generators send 16. */
const MAX_WAITING = 24;
/** A client that still sends has so long to read the last reply: a close upon unread input is a reset, which may overtake it. */
const LINGER_MS = 1_000;
/** The value of `Connection` is a list. */
const HAS_CLOSE = /(?:^|,)\s*close\s*(?:,|$)/i;
/** If an address has so many connections that have sent too much, its others are not read meanwhile. */
const MAX_FLOODS_OF_ADDRESS = 8;

/** node:http parses a packet to its end, whatever is in it: so only few of an address send what nobody wants at a time. */
export function balance(ofAddress: ReadonlySet<Connection>): void {
  let floods = 0;
  for (const { sendsTooMuch } of ofAddress) if (sendsTooMuch) floods++;
  for (const connection of ofAddress) connection.setRead(floods < MAX_FLOODS_OF_ADDRESS);
}

/** A request as it came. */
export interface Incoming {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  /** Undefined if it has none, or if none is taken. */
  readonly body: Body | undefined;
  /** When its head was read, in ms of the monotonic clock. */
  readonly receivedAt: number;
  /** True if it came while the service was stopping. */
  readonly isLate: boolean;
  /** True if too many wait on its connection already. */
  readonly isTooMany: boolean;
}

export interface Handlers {
  /** The reply to a request. Does not reject. */
  handle(incoming: Incoming): Promise<Reply>;
  /** The reply to what cannot be parsed, or did not come in time. */
  refusal(socket: Socket, why: ApiError): Reply;
}

interface Server {
  readonly isStopping: boolean;
  readonly options: Handlers;
}

export class Connection {
  readonly socket: Socket;
  /**
   * It has sent more than anybody wants: a pipeline beyond its bound, or a body that was refused while it came. No more is
   * read, and it ends with the reply to what has come.
   */
  sendsTooMuch = false;
  /** All of its address, itself too. */
  readonly #ofAddress: ReadonlySet<Connection>;
  readonly #server: Server;
  #isRead = true;
  /** Requests that have come, and have no reply yet. */
  #open = 0;
  #newest: Incoming | undefined;
  /** Resolves when the reply to the newest request has left. */
  #replied: Promise<void> = Promise.resolve();
  /** Why the input behind the newest request cannot be read: it is told behind the reply. */
  #fault: ApiError | undefined;

  constructor(socket: Socket, server: Server, ofAddress: ReadonlySet<Connection>) {
    this.socket = socket;
    this.#ofAddress = ofAddress;
    this.#server = server;
    socket.on('error', () => {}); // it closes too, which is all that matters
    socket.on('resume', () => this.#isRead || socket.pause()); // node:http does
  }

  /** `may`: whether it is read, if it has not sent too much. */
  setRead(may: boolean): void {
    const isRead = may && !this.sendsTooMuch;
    if (isRead === this.#isRead) return;
    this.#isRead = isRead;
    if (isRead) this.socket.resume();
    else this.socket.pause();
  }

  /** Takes a request, which waits for those before it. */
  take(req: IncomingMessage, res: ServerResponse, receivedAt: number, isLate: boolean): void {
    const isTooMany = this.#open > MAX_WAITING || this.sendsTooMuch || !this.socket.writable;
    if (isTooMany) this.#endFlood();
    const body = !isTooMany && hasBody(req) ? new Body(req, () => this.#endFlood()) : undefined;
    // For speed: without `optimizeEmptyRequests`, node:http would drain the request as a stream, after the reply.
    if (body === undefined && !req.readableEnded) req.read();
    const before = this.#open++ > 0 ? this.#replied : undefined;
    this.#newest = { req, res, body, receivedAt, isLate, isTooMany };
    this.#replied = this.#serve(this.#newest, before);
  }

  /** Ends the connection when no reply is due or under way. */
  async endWhenIdle(): Promise<void> {
    for (let replied: unknown; replied !== this.#replied; ) await (replied = this.#replied);
    this.socket.destroy();
  }

  /** `before`: resolves when the replies to the requests before this one have left; undefined: none waits. */
  async #serve(incoming: Incoming, before?: Promise<void>): Promise<void> {
    const { socket } = this;
    if (before !== undefined) await before;
    const isServed = socket.writable;
    if (isServed) {
      const reply = await this.#server.options.handle(incoming);
      if (socket.writable) this.#send(incoming, reply);
    }
    incoming.body?.discard();
    if (isServed && !socket.destroyed) await new Promise((resolve) => incoming.res.on('close', resolve));
    this.#open--;
  }

  /** Reads no more of what nobody wants, and lets few others of its address send. */
  #endFlood(): void {
    if (this.sendsTooMuch) return;
    this.sendsTooMuch = true;
    balance(this.#ofAddress);
  }

  /**
   * Called when the input cannot be read any further. If that breaks off the body of a request, `why` is the reply to it.
   * Otherwise it is told behind the replies that are due.
   */
  break(why: ApiError): void {
    if (!this.socket.writable) return;
    const newest = this.#newest;
    const isReplied = newest === undefined || newest.res.headersSent;
    const isBrokenOff = newest?.body !== undefined && !newest.req.complete;
    if (isBrokenOff && isReplied) this.socket.destroy();
    else if (isBrokenOff) newest.body.fail(why);
    else if (!isReplied) this.#fault = why;
    else {
      this.#tell(why);
      this.#end();
    }
  }

  #send(incoming: Incoming, reply: Reply): void {
    const { req, res } = incoming;
    const isLast = reply.isLast || this.#endsBehind(incoming);
    const fault = isLast || incoming !== this.#newest ? undefined : this.#fault;
    res.writeHead(reply.status, isLast ? [...reply.headers, ...CLOSE] : [...reply.headers]);
    const content = req.method === 'HEAD' ? '' : reply.body;
    if (!isLast && fault === undefined) return void res.end(content);
    if (content.length > 0) res.write(content);
    else res.flushHeaders();
    // Nobody wants the rest, and to read it would cost others their turn. A 503 is not the client's doing.
    if (!req.complete && reply.status !== 503) this.#endFlood();
    if (fault !== undefined) this.#tell(fault);
    this.#end(res);
  }

  /**
   * Whether the connection serves no other request after this one:
   * - Its client says so, or speaks HTTP/1.0.
   * - It has `Upgrade`: node:http drops what follows it.
   * - It has `Expect`, and its body was not asked for: it is unknown whether the body will come.
   * - Its body was refused, or is too long to be read to its end. A short one is read: a client that sends it in a
   *   packet of its own would otherwise lose its connection at each 401 and 429.
   * - No other waits, and no more are taken.
   */
  #endsBehind(incoming: Incoming): boolean {
    const { req, body } = incoming;
    const { upgrade, connection, 'content-length': length } = req.headers;
    if (req.httpVersionMinor === 0 || upgrade !== undefined) return true;
    if (connection !== undefined && HAS_CLOSE.test(connection)) return true;
    if (expectOf(req) !== undefined && !body?.isWanted) return true;
    if (body?.failure !== undefined) return true;
    if (body !== undefined && !req.complete && !(Number(length) <= MAX_BODY_BYTES)) return true;
    return incoming === this.#newest && (this.sendsTooMuch || this.#server.isStopping);
  }

  /** Tells why the input cannot be read any further, behind what was written. */
  #tell(why: ApiError): void {
    this.socket.write(rawReply(this.#server.options.refusal(this.socket, why)));
  }

  /**
   * Ends our side after what was written; the client has `LINGER_MS` to end its own. `res`: the response that was written.
   * It is ended last, since that makes node:http close the socket.
   */
  #end(res?: ServerResponse): void {
    const { socket } = this;
    const close = () => (res === undefined ? socket.destroy() : res.end());
    socket.end(() => {
      const timer = setTimeout(close, LINGER_MS).unref();
      socket.once('close', () => clearTimeout(timer));
      if (socket.readableEnded) close();
      else socket.once('end', close);
    });
  }
}
