/** One connection: it serves one request at a time, in the order in which they come. */
import { AsyncResource } from 'node:async_hooks';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { ApiError } from './errors.ts';
import type { Request } from './request.ts';

/** The most requests that wait while one is under way. No browser pipelines; load generators send 16. */
const MAX_WAITING = 24;
/** Who sends so many that are dropped is reset: node:http reads a packet to its end, and keeps all requests in it. */
const MAX_DROPPED = 100;
/**
 * When the kernel has taken the last reply, the input is read and dropped for this long, and up to so many bytes: a
 * close with unread input sends a reset, which may overtake the reply.
 */
const LINGER_MS = 1_000;
const MAX_LINGER_BYTES = 4 * 1024 * 1024;
/** A client that has not read its replies for this long is ended. */
const MAX_STUCK_MS = 30_000;
/** By then a request has arrived or timed out: what is still there is no part of one, for instance empty lines. */
const MAX_ARRIVING_MS = 20_000;

interface Turn {
  readonly request: Request;
  serve(): void;
}

export class Connection {
  readonly socket: Socket;
  /**
   *     open ──► ending ──► over     more requests have come than may wait
   *       ├────► broken ──► over     the input cannot be read any further
   *       └───────────────► over     a reply ends the connection
   *
   * `open`: requests are taken. `ending`: no more are taken, and the reply to the last one that waits ends the connection.
   * `broken`: a refusal that says why follows the replies to the requests that wait. `over`: the last reply is decided.
   * Nothing after it is served (RFC 9112, 9.6), and what still comes is dropped.
   */
  state: 'open' | 'ending' | 'broken' | 'over' = 'open';
  readonly #owner: { readonly isDraining: boolean };
  /** The first is under way; the others wait until the reply to it has left. */
  readonly #queue: Turn[] = [];
  #newest: Request | undefined;
  #dropped = 0;
  /** The bytes that had been read when the newest reply left. */
  #bytesOfRequests = 0;
  /** How many bytes of requests there were at the last look, and since when. */
  #unused = { bytes: 0, since: 0 };
  /** How many bytes the client had taken at the last look, and since when; -1: not looked at yet. */
  #taken = { bytes: -1, since: 0 };

  constructor(socket: Socket, owner: { readonly isDraining: boolean }) {
    this.socket = socket;
    this.#owner = owner;
    socket.on('error', () => {}); // it closes too, which is all that matters
  }

  /** True if no reply is due or under way. */
  get isIdle(): boolean {
    return this.#queue.length === 0 && this.socket.writableLength === 0 && this.state === 'open';
  }

  /** True if the reply to the request under way is the last: no other waits, and no more are taken. */
  get isAtLast(): boolean {
    const takesNoMore = this.state === 'ending' || (this.state === 'open' && this.#owner.isDraining);
    return takesNoMore && this.#queue.length === 1;
  }

  /** Whether the next request is taken. One too many ends the connection after those that wait. */
  takesMore(): boolean {
    if (this.state === 'open' && this.#queue.length <= MAX_WAITING) return true;
    if (++this.#dropped === MAX_DROPPED) this.#reset();
    if (this.state === 'open') {
      this.state = 'ending';
      // In the next tick: at the end of a packet node:http resumes the socket.
      process.nextTick(() => this.state === 'ending' && this.socket.pause());
    }
    return false;
  }

  /** Calls `serve` when the replies to the requests before it have left. node:http itself would serve all at once. */
  add(request: Request, serve: () => void): void {
    this.#newest = request;
    request.res.on('close', this.#goOn);
    if (this.#queue.length > 0) {
      // In its own context: in that of the request before it, a tracer would take it for a part of that one.
      this.#queue.push({ request, serve: AsyncResource.bind(serve) });
    } else {
      this.#queue.push({ request, serve });
      serve();
    }
  }

  /** The reply to the first has left, or its client is gone. */
  readonly #goOn = (): void => {
    this.#queue.shift();
    this.#bytesOfRequests = this.socket.bytesRead;
    if (this.socket.destroyed) this.#dropAll();
    else this.#queue[0]?.serve();
  };

  #dropAll(): void {
    for (const { request } of this.#queue.splice(0)) request.discard();
  }

  /**
   * Called when the input cannot be read any further. If that breaks off the body of a request, `why` is the reply to
   * this request. Otherwise `refusal()` is written after the replies to the requests that wait.
   */
  break(why: ApiError, refusal: () => string): void {
    if (this.state !== 'open') return;
    this.state = 'broken';
    if (this.#newest?.isComplete === false) {
      if (this.#newest.isAnswered) this.socket.destroy();
      else this.#newest.fail(why);
      return;
    }
    const write = () => {
      if (this.state === 'over') return;
      this.socket.write(refusal(), 'latin1');
      this.end();
    };
    const last = this.#queue.at(-1);
    if (last === undefined) write();
    // Before node:http's own listener: it closes after the last response if the client has ended its side.
    else last.request.res.prependOnceListener('finish', write);
  }

  /**
   * Ends our side after what was written. Then the input is read and dropped until the client ends its side too, for
   * `LINGER_MS` at most. `res`: the response that was written. It is ended last, since that makes node:http close the
   * socket.
   */
  end(res?: ServerResponse): void {
    if (this.state === 'over') return;
    this.state = 'over';
    this.#dropAll();
    const { socket } = this;
    const close = () => (res === undefined ? socket.destroy() : res.end());
    socket.end(() => {
      const timer = setTimeout(close, LINGER_MS).unref();
      socket.once('close', () => clearTimeout(timer));
      if (socket.readableEnded) close();
      else socket.once('end', close);
    });
    const before = socket.bytesRead;
    socket.removeAllListeners('data'); // or node:http would go on parsing
    socket.on('data', () => socket.bytesRead - before > MAX_LINGER_BYTES && socket.destroy());
    socket.resume();
  }

  /** Ends the connection if it is idle, and nothing has come since its last request for `maxMs`. */
  endIfUnused(now: number, maxMs: number): void {
    const { socket } = this;
    const bytes = this.#bytesOfRequests;
    if (!this.isIdle || bytes === 0) this.#unused.bytes = 0;
    else if (bytes !== this.#unused.bytes) this.#unused = { bytes, since: now };
    else {
      const idleMs = now - this.#unused.since;
      // What has come since is a part of the next request, which has a time-out of its own.
      const isEmpty = () => socket.bytesRead === bytes || idleMs >= maxMs + MAX_ARRIVING_MS;
      // A request may wait in the kernel: it is read before the next `setImmediate`.
      if (idleMs >= maxMs) setImmediate(() => this.isIdle && isEmpty() && socket.destroy());
    }
  }

  /** Ends the connection if its client has taken none of the unsent bytes for a while. */
  endIfStuck(now: number): void {
    const { writableLength: unsent, bytesWritten } = this.socket;
    const taken = bytesWritten - unsent; // `unsent` alone looks the same if a reply has left and one of its length came
    if (unsent === 0 || taken !== this.#taken.bytes) this.#taken = { bytes: taken, since: now };
    else if (now - this.#taken.since >= MAX_STUCK_MS) this.#reset();
  }

  /** After a mere close, the kernel would keep the unsent bytes and go on trying to send them. */
  #reset(): void {
    // While our side is being ended, node:net cannot reset the socket, and would never close it.
    if (this.socket.writableEnded) this.socket.destroy();
    else this.socket.resetAndDestroy();
  }
}
