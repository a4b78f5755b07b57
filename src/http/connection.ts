/** One connection: it serves one request at a time, in the order in which they come. */
import type { Socket } from 'node:net';
import type { Incoming } from './request.ts';

/** The most requests that wait behind the one under way. No browser pipelines; load generators send 16. */
const MAX_WAITING = 24;
/**
 * When the kernel has taken the last reply, the input is read and dropped for this long, and up to so many bytes: a close
 * with unread input sends a reset, which may overtake the reply.
 */
const LINGER_MS = 1_000;
const MAX_LINGER_BYTES = 4 * 1024 * 1024;
/** A client that has not read its replies for this long is ended. */
const MAX_STUCK_MS = 30_000;
/** By then a request has arrived or timed out: what is still there is no part of one, for instance empty lines. */
const MAX_ARRIVING_MS = 20_000;

const CONNECTION = Symbol('connection');

/** The connection of a socket of our server. */
export const connectionOf = (socket: object): Connection => (socket as { [CONNECTION]: Connection })[CONNECTION];

export class Connection {
  /** Each server counts its connections from 1. */
  readonly number: number;
  readonly socket: Socket;
  /** In ms of the monotonic clock. */
  readonly openedAt: number;
  /** True when the last reply is decided: nothing behind it is served (RFC 9112, 9.6). */
  isEnding = false;
  /** True when its input cannot be parsed any further. */
  isBroken = false;
  /** True if its client has sent a request before the reply to the one before had left. */
  isPipelined = false;
  newest: Incoming | undefined;
  /** Requests without a complete reply. */
  pending = 0;
  /** The bytes that had been read at the end of the newest request. */
  bytesOfRequests = 0;
  /** True when `end` was called: no reply is written any more. */
  isOver = false;
  readonly #owner: { readonly isDraining: boolean };
  #tail = Promise.resolve();
  #taken = { bytes: -1, since: 0 }; // none yet: the first look finds that it has changed
  #unused = { bytes: 0, since: 0 };

  constructor(number: number, socket: Socket, owner: { readonly isDraining: boolean }, openedAt: number) {
    this.number = number;
    this.socket = socket;
    this.openedAt = openedAt;
    this.#owner = owner;
    Object.assign(socket, { [CONNECTION]: this });
    socket.on('error', () => {}); // node:http takes its own listener away where it stops parsing
    // node:http calls this behind the last reply. Its own would close the socket, and what a client then sends is
    // answered by a reset, which may overtake the reply. If more are pending, a refusal waits: it ends the connection.
    socket.destroySoon = () => this.pending <= 1 && this.end();
  }

  /** True if no more requests may wait. */
  get isFull(): boolean {
    return this.pending > MAX_WAITING;
  }

  get isIdle(): boolean {
    return this.pending === 0 && this.socket.writableLength === 0 && !this.isEnding;
  }

  /** True if the service stops and nothing waits behind the request under way. */
  get isLastOfDrain(): boolean {
    return this.#owner.isDraining && this.pending === 1;
  }

  /**
   * Calls `serve` when the requests before it have their replies. A request behind the one that ends the connection is
   * dropped.
   */
  add(serve: () => void | Promise<void>, req?: Incoming): void {
    this.pending++;
    if (this.pending > 1) this.isPipelined = true;
    this.#tail = this.#serveAfter(this.#tail, serve, req);
  }

  async #serveAfter(before: Promise<void>, serve: () => void | Promise<void>, req?: Incoming): Promise<void> {
    if (this.pending > 1) await before;
    if (this.isEnding || this.socket.destroyed) req?.discard();
    else await serve();
    this.pending--;
  }

  /** Half-closes the connection, and drops what still comes until the client closes it too, or for a while. */
  end(): void {
    this.isEnding = true;
    if (this.isOver) return;
    this.isOver = true;
    const { socket } = this;
    socket.end(() => {
      const timer = setTimeout(() => socket.destroy(), LINGER_MS).unref();
      socket.once('close', () => clearTimeout(timer));
    });
    let bytes = 0;
    socket.removeAllListeners('data').on('data', (part) => {
      bytes += part.length;
      if (bytes > MAX_LINGER_BYTES) socket.destroy();
    });
    socket.resume();
  }

  /** Ends the connection if it is idle, and nothing has come behind the last request for so long. */
  endIfUnused(now: number, maxMs: number): void {
    const { socket, bytesOfRequests } = this;
    if (!this.isIdle || bytesOfRequests === 0) this.#unused.bytes = 0;
    else if (bytesOfRequests !== this.#unused.bytes) this.#unused = { bytes: bytesOfRequests, since: now };
    else {
      const idleMs = now - this.#unused.since;
      // What has come behind it is a part of the next request, which has a time-out of its own.
      const isEmpty = () => socket.bytesRead === bytesOfRequests || idleMs >= maxMs + MAX_ARRIVING_MS;
      // A request may wait in the kernel: it is read before the next `setImmediate`.
      if (idleMs >= maxMs) setImmediate(() => this.isIdle && isEmpty() && socket.destroy());
    }
  }

  /** Ends the connection if its client has taken none of the unsent bytes for a while. */
  endIfStuck(now: number): void {
    const { writableLength: unsent, bytesWritten } = this.socket;
    const taken = bytesWritten - unsent; // `unsent` alone looks the same if a reply has left and one of its length came
    if (unsent === 0 || taken !== this.#taken.bytes) this.#taken = { bytes: taken, since: now };
    // Resets: after a mere close, the kernel would keep the unsent bytes and go on trying to send them.
    else if (now - this.#taken.since >= MAX_STUCK_MS) this.socket.resetAndDestroy();
  }
}
