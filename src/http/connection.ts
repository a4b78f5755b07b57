/**
 * One connection: what was asked on it and is not yet answered, and how it ends. All of them together: the bounds that
 * hold for all, and the end of those whose client does not read.
 */
import { type IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Of one connection: requests that are not answered in full. No browser pipelines, load generators send 16 at once. */
const MAX_UNANSWERED = 32;
/** Of one connection: bytes of replies that the kernel has not taken. Sixteen of the largest pages are less. */
const MAX_UNSENT_BYTES = 2 * 1024 * 1024;
/** Of all together: beyond one of these no connection may have a second request waiting, and none may stop reading. */
const MAX_UNANSWERED_IN_ALL = 20_000;
const MAX_UNSENT_BYTES_IN_ALL = 64 * 1024 * 1024;

/** A client that does not read what it asked for holds its connection no longer than this. */
const UNREAD_REPLY_MS = 30_000;
const LOOKED_AT_EVERY_MS = 2_000;
/** A socket that is told to close reads on for so long, so that its client sees the reply and not a reset. */
const LINGER_MS = 1_000;

const known = new WeakMap<Socket, Connection>();

export const connectionOf = (socket: Socket): Connection => known.get(socket) as Connection;

export class Outgoing extends ServerResponse {
  /** How many of the unsent bytes of its connection are its own. */
  bytes = 0;
}

export class Connection {
  /** Counted from 1 by each server. */
  readonly number: number;
  readonly socket: Socket;
  /** What is to be answered, oldest first: node:http sends the replies in this order. */
  readonly pending: Outgoing[] = [];
  /** Whether node:http has given up on what comes in, and whether that was told. */
  refusal: 'none' | 'due' | 'sent' = 'none';
  /** Once the last reply is decided, no request behind it is processed (RFC 9112, 9.6). */
  isEnding = false;
  /** The newest request that was answered before all of it had come. */
  early: IncomingMessage | undefined;
  readonly #all: Connections;
  #ignored = 0;
  #unsent = 0;
  #stuck = { bytes: 0, since: 0 };

  constructor(number: number, socket: Socket, all: Connections) {
    this.number = number;
    this.socket = socket;
    this.#all = all;
    known.set(socket, this);
    void socket.remoteAddress; // keeps it: a client that is gone can be told by it
    socket.once('close', () => {
      all.forget(this);
      all.settle(this.pending.splice(0).length, this.#unsent);
    });
  }

  /** Whether no more may be asked before some of it is answered, and read. */
  get isFull(): boolean {
    const waiting = this.pending.length + this.#ignored;
    return waiting >= MAX_UNANSWERED || this.#unsent > MAX_UNSENT_BYTES || (waiting > 0 && this.#all.areFull);
  }

  /** One more request. False where it comes behind the last that is answered. */
  ask(res: Outgoing): boolean {
    if (this.isEnding) this.#ignored++;
    else {
      this.pending.push(res);
      this.#all.settle(-1, 0);
      res.on('finish', settleOldest);
    }
    return !this.isEnding;
  }

  /** A reply is now written, of so many bytes. */
  send(res: Outgoing, bytes: number): void {
    res.bytes = bytes;
    this.#unsent += bytes;
    this.#all.settle(0, -bytes);
  }

  /** The oldest reply has left. */
  settle(): void {
    const res = this.pending.shift();
    if (res === undefined) return; // the connection is closed
    this.#unsent -= res.bytes;
    this.#all.settle(1, res.bytes);
  }

  /** Makes this reply, whatever it will be, the last of its connection. */
  endWith(res: Outgoing): void {
    res.shouldKeepAlive = false; // node:http then writes `Connection: close`
    this.isEnding = true;
  }

  /** As `endWith`, but not where a later request was taken already: its reply would never be sent. */
  endWithNewest(res: Outgoing): void {
    if (this.pending[this.pending.length - 1] === res) this.endWith(res);
  }

  /** More was asked than may be. Replies before the last one that was decided are still sent, where that is the end. */
  endFlood(): void {
    if (this.isEnding && this.pending.length > 0) this.socket.on('error', () => {}).pause();
    else this.socket.destroy();
  }

  /** One more packet behind what was no request. */
  ignorePacket(): void {
    if (++this.#ignored > MAX_UNANSWERED) this.socket.destroy();
  }

  /**
   * node:http closes a connection by `destroySoon`. With bytes of the request still unread the kernel then
   * sends a reset, which may overtake the reply. So: say that no more will come, read on for a while, then close.
   */
  lingerOnClose(): void {
    const { socket } = this;
    socket.destroySoon = () => {
      socket.end();
      socket.resume();
      setTimeout(() => socket.destroy(), LINGER_MS).unref();
    };
  }

  /** Ends the connection if its client has taken nothing of what is to be sent for so long. */
  endIfStuck(at: number, ms: number): void {
    const bytes = this.socket.writableLength;
    if (bytes === 0 || bytes !== this.#stuck.bytes) this.#stuck = { bytes, since: at };
    // Merely closed, the kernel would keep what was not read, and go on offering it.
    else if (at - this.#stuck.since >= ms) this.socket.resetAndDestroy();
  }
}

/** On `finish` of a response. */
function settleOldest(this: Outgoing): void {
  connectionOf(this.req.socket).settle();
}

export class Connections {
  readonly #open = new Set<Connection>();
  #count = 0;
  #unanswered = 0;
  #unsent = 0;

  /**
   * Looks now and then for clients that have stopped reading. `server.timeout` would end them too, but sets a timer
   * anew for every request, which costs each of them two hundredths of its time.
   */
  constructor(server: Server, now: () => number, unreadMs = UNREAD_REPLY_MS) {
    server.on('connection', (socket: Socket) => this.#open.add(new Connection(++this.#count, socket, this)));
    const everyMs = Math.min(LOOKED_AT_EVERY_MS, unreadMs / 2);
    const look = () => {
      const at = now();
      for (const connection of this.#open) connection.endIfStuck(at, this.areFull ? everyMs : unreadMs);
    };
    const timer = setInterval(look, everyMs).unref();
    server.once('close', () => clearInterval(timer));
  }

  get areFull(): boolean {
    return this.#unanswered > MAX_UNANSWERED_IN_ALL || this.#unsent > MAX_UNSENT_BYTES_IN_ALL;
  }

  settle(requests: number, bytes: number): void {
    this.#unanswered -= requests;
    this.#unsent -= bytes;
  }

  forget(connection: Connection): void {
    this.#open.delete(connection);
  }

  end(): void {
    for (const { socket } of this.#open) socket.destroy();
  }
}
