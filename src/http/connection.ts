/**
 * One connection. node:http sends replies in the order of their requests, but begins pipelined requests all at once. Here
 * each begins when the reply before it has left (RFC 9112, 9.3.2): a read behind a write sees it, and nothing is done behind
 * a reply that ends the connection.
 */
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Body } from './body.ts';
import { type ApiError, MAX_BODY_BYTES } from './errors.ts';
import { expectOf, hasBody } from './message.ts';
import { CLOSE, type Reply } from './reply.ts';

/** The most requests that wait while one is under way. No browser pipelines; load generators send 16. */
const MAX_WAITING = 24;
/** A client that still sends has so long to read the last reply: a close upon unread input is a reset, which may overtake it. */
const LINGER_MS = 1_000;
/** The value of `Connection` is a list. */
const HAS_CLOSE = /(?:^|,)\s*close\s*(?:,|$)/i;
/** The statuses of who has no key, or no requests left: their bodies are never wanted. */
const NOT_ADMITTED = [401, 429];
/** If an address has so many connections that have sent too much, its others are not read meanwhile. */
const MAX_FLOODS_OF_ADDRESS = 8;

/** node:http parses a packet to its end, whatever is in it: so only few of an address send what nobody wants at a time. */
export function balance(ofAddress: ReadonlySet<Connection>): void {
  let floods = 0;
  for (const { sendsTooMuch } of ofAddress) if (sendsTooMuch) floods++;
  for (const connection of ofAddress) connection.block(floods >= MAX_FLOODS_OF_ADDRESS);
}

/** A request on its connection. */
export interface Turn {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly connection: Connection;
  /** When its head was read, in ms of the monotonic clock. */
  readonly receivedAt: number;
  /** True if it came while the service was stopping. */
  readonly isLate: boolean;
  /** Undefined if it has none. */
  readonly body: Body | undefined;
}

export class Connection {
  readonly socket: Socket;
  /** All of its address, itself too. */
  readonly ofAddress: ReadonlySet<Connection>;
  /** The last reply is decided. Nothing after it is served (RFC 9112, 9.6). */
  isOver = false;
  /** More requests have come than are taken. Each is refused when its turn comes, and then the connection ends. */
  isFlooded = false;
  readonly #owner: { readonly isStopping: boolean };
  /** It has sent more than anybody wants: a pipeline beyond its bound, or a body that was refused while it came. */
  sendsTooMuch = false;
  /** What it sends is not read: for good, and as long as others of its address send too much. */
  #isHeld = false;
  #isBlocked = false;
  /** The input cannot be read any further: a refusal that says why is due. */
  #isBroken = false;
  /** The newest request that was taken. */
  #newest: Turn | undefined;
  /** Requests that were taken, and have no reply yet. */
  #open = 0;
  /** Requests that were not taken, the oldest first, and how many of them have their refusal. */
  readonly #refused: Turn[] = [];
  /** Those of requests without a reply. */
  readonly #bodies = new Set<Body>();
  #answered = 0;

  constructor(socket: Socket, owner: { readonly isStopping: boolean }, ofAddress: ReadonlySet<Connection>) {
    this.socket = socket;
    this.ofAddress = ofAddress;
    this.#owner = owner;
    socket.on('error', () => {}); // it closes too, which is all that matters
    socket.once('close', () => this.#bodies.forEach((body) => void body.discard()));
    socket.on('resume', () => (this.#isHeld || this.#isBlocked) && socket.pause()); // node:http does
  }

  /** True if no reply is due or under way. */
  get isIdle(): boolean {
    return this.#open === 0 && this.socket.writableLength === 0 && !this.isOver && !this.isFlooded;
  }

  /** Reads no more. */
  hold(): void {
    this.#isHeld = true;
    this.socket.pause();
  }

  /** Reads no more of what nobody wants, and lets few others of its address send. */
  endFlood(): void {
    if (this.sendsTooMuch) return;
    this.sendsTooMuch = true;
    this.hold();
    balance(this.ofAddress);
  }

  /** Reads no more until it is unblocked. */
  block(isBlocked: boolean): void {
    if (isBlocked === this.#isBlocked) return;
    this.#isBlocked = isBlocked;
    if (isBlocked) this.socket.pause();
    else if (!this.#isHeld) this.socket.resume();
  }

  turnOf(req: IncomingMessage, res: ServerResponse, receivedAt: number, isLate: boolean): Turn {
    const body =
      this.takesMore && hasBody(req)
        ? new Body(req, (sendsTooMuch) => (sendsTooMuch ? this.endFlood() : this.hold()))
        : undefined;
    if (body !== undefined) this.#bodies.add(body);
    // For speed: without `optimizeEmptyRequests`, node:http would drain the request as a stream, after the reply.
    else if (!req.readableEnded) req.read();
    return { req, res, connection: this, receivedAt, isLate, body };
  }

  /** Whether the next request may wait for its turn. */
  get takesMore(): boolean {
    return this.#open <= MAX_WAITING && !this.isFlooded && !this.isOver;
  }

  /** Takes no more. */
  flood(): void {
    this.isFlooded = true;
    this.endFlood();
  }

  /** Resolves when the replies to the requests before this one have left. */
  async wait(turn: Turn): Promise<void> {
    const before = this.#newest;
    const mustWait = this.#open++ > 0;
    this.#newest = turn;
    turn.res.on('close', this.#onReplied);
    if (mustWait) await once(before!.res, 'close');
  }

  readonly #onReplied = (): void => void this.#open--;

  /** Calls `refuse` for a request that is not taken when the replies before it have left, if the connection then goes on. */
  refuse(turn: Turn, refuse: (turn: Turn) => void): void {
    if (this.isOver || this.#refused.push(turn) > 1) return;
    const next = () => {
      if (this.isOver || this.socket.destroyed) return;
      const refused = this.#refused[this.#answered++];
      refused.res.once('close', next);
      refuse(refused);
    };
    this.#newest!.res.once('close', next);
  }

  /**
   * Called when the input cannot be read any further. If that breaks off the body of a request, `why` is the reply to
   * this request. Otherwise `refusal()` is written after the replies to the requests that wait.
   */
  break(why: ApiError, refusal: () => string): void {
    if (this.isOver || this.isFlooded || this.#isBroken) return;
    this.#isBroken = true;
    const newest = this.#newest;
    if (newest?.body !== undefined && !newest.req.complete) {
      if (newest.res.headersSent) this.socket.destroy();
      else newest.body.fail(why);
      return;
    }
    const write = () => {
      if (this.isOver) return;
      this.socket.write(refusal(), 'latin1');
      this.#end();
    };
    if (this.#open === 0) write();
    // Before node:http's own listener: it closes after the last response if the client has ended its side.
    else newest!.res.prependOnceListener('finish', write);
  }

  /** Writes the reply, unless the connection was ended meanwhile. */
  send({ req, res, body }: Turn, reply: Reply, headers: string[]): void {
    const isLast = reply.isLast || this.#endsWith(req, body);
    if (body !== undefined) {
      body.discard();
      this.#bodies.delete(body);
    }
    if (this.isOver || this.socket.destroyed) return;
    if (isLast) headers.push(...CLOSE);
    res.writeHead(reply.status, headers);
    const content = req.method === 'HEAD' ? '' : reply.body;
    if (!isLast) return void res.end(content, 'latin1');
    if (content.length > 0) res.write(content, 'latin1');
    else res.flushHeaders();
    // Nobody wants the rest, and to read it would cost others their turn.
    if (!req.complete && NOT_ADMITTED.includes(reply.status)) this.endFlood();
    else if (!req.complete) this.hold();
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
  #endsWith(req: IncomingMessage, body: Body | undefined): boolean {
    const { upgrade, connection, 'content-length': length } = req.headers;
    if (req.httpVersionMinor === 0 || upgrade !== undefined) return true;
    if (connection !== undefined && HAS_CLOSE.test(connection)) return true;
    if (expectOf(req) !== undefined && body?.isWanted !== true) return true;
    if (body?.failure !== undefined) return true;
    if (body !== undefined && !req.complete && !(Number(length) <= MAX_BODY_BYTES)) return true;
    if (this.#refused.length > 0) return this.#answered === this.#refused.length;
    return this.#owner.isStopping && this.#open === 1 && !this.#isBroken;
  }

  /**
   * Ends our side after what was written; the client has `LINGER_MS` to end its own. `res`: the response that was written.
   * It is ended last, since that makes node:http close the socket.
   */
  #end(res?: ServerResponse): void {
    this.isOver = true;
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
