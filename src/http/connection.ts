/**
 * One connection. node:http sends replies in the order of their requests, but begins pipelined requests all at once. Here
 * each begins when the reply before it has left (RFC 9112, 9.3.2): a read behind a write sees it, and nothing is done behind
 * a reply that ends the connection.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Body } from './body.ts';
import { type ApiError, MAX_BODY_BYTES, notNow } from './errors.ts';
import { expectOf, hasBody } from './message.ts';
import { CLOSE, type Reply, rawReply } from './reply.ts';
import type { HttpServer } from './server.ts';

/** The most requests that wait while one is under way. No browser pipelines; load generators send 16. */
const MAX_WAITING = 24;
/** A client that still sends has so long to read the last reply: a close upon unread input is a reset, which may overtake it. */
const LINGER_MS = 1_000;
const TOO_MANY = notNow('too many requests wait on this connection: this one was not begun');
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
  readonly #server: HttpServer;
  #isRead = true;
  /** Requests that have come, and have no reply yet. */
  #open = 0;
  #newest: Incoming | undefined;
  /** Resolves when the reply to the newest request has left. */
  #replied: Promise<void> = Promise.resolve();
  /** Why the input behind the newest request cannot be read: it is told behind the reply. */
  #fault: ApiError | undefined;

  constructor(socket: Socket, server: HttpServer, ofAddress: ReadonlySet<Connection>) {
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
  take(req: IncomingMessage, res: ServerResponse): void {
    const { options, refusesLate } = this.#server;
    const isTooMany = this.#open > MAX_WAITING || this.sendsTooMuch || !this.socket.writable;
    if (isTooMany) this.#endFlood();
    const body = !isTooMany && hasBody(req) ? new Body(req, () => this.#endFlood()) : undefined;
    // For speed: without `optimizeEmptyRequests`, node:http would drain the request as a stream, after the reply.
    if (body === undefined && !req.readableEnded) req.read();
    this.#newest = { req, res, body, receivedAt: options.clock.now(), isLate: refusesLate };
    this.#replied = this.#serve(this.#newest, isTooMany);
  }

  /** Ends the connection when no reply is due or under way. */
  async endWhenIdle(): Promise<void> {
    while (this.#open > 0) await this.#replied;
    this.socket.destroy();
  }

  async #serve(incoming: Incoming, isTooMany: boolean): Promise<void> {
    const { socket } = this;
    const { handle, refusal } = this.#server.options;
    if (this.#open++ > 0) await this.#replied; // still of the request before
    let reply: Reply | undefined;
    if (socket.writable) reply = isTooMany ? refusal(TOO_MANY, socket, incoming) : await handle(incoming);
    incoming.body?.discard();
    if (reply !== undefined && socket.writable) {
      this.#send(incoming, reply);
      await new Promise((resolve) => incoming.res.on('close', resolve));
    }
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
    if (newest?.body !== undefined && !newest.req.complete) {
      if (isReplied) this.socket.destroy();
      else newest.body.fail(why);
    } else if (isReplied) this.#tell(why);
    else this.#fault = why;
  }

  #send(incoming: Incoming, reply: Reply): void {
    const { req, res } = incoming;
    const isLast = reply.isLast || this.#endsBehind(incoming);
    if (isLast) reply.headers.push(...CLOSE);
    res.writeHead(reply.status, reply.headers);
    const fault = isLast || incoming !== this.#newest ? undefined : this.#fault;
    if (!isLast && fault === undefined) return void res.end(reply.body);
    res.write(reply.body);
    res.flushHeaders(); // where there is no body, or none is sent to a HEAD
    // Nobody wants the rest, and to read it would cost others their turn. A 503 is not the client's doing.
    if (!req.complete && reply.status !== 503) this.#endFlood();
    if (fault === undefined) this.#end(res);
    else this.#tell(fault, res);
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

  /** Tells why the input cannot be read any further, behind what was written. `res`: as of `#end`. */
  #tell(why: ApiError, res?: ServerResponse): void {
    this.socket.write(rawReply(this.#server.options.refusal(why, this.socket)));
    this.#end(res);
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
