/**
 * One connection: what was asked on it and is not yet answered, and how it ends. All of them together: the bounds that
 * hold for all, the end of those whose client does not read, and of all when the service stops.
 */
import { type IncomingMessage, type Server, ServerResponse } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { setImmediate as immediate } from 'node:timers/promises';

/** Of one connection: requests that are not answered in full. No browser pipelines, load generators send 16 at once. */
const MAX_UNANSWERED = 24;
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
/**
 * When the service stops, connections that seem idle are left open this long: a request may already be on its way, and
 * closing under it would cost its sender the reply. Until then whoever asks gets a refusal, and `Connection: close`.
 */
const IDLE_GRACE_MS = 300;
const DRAIN_POLL_MS = 20;

const known = new WeakMap<Duplex, Connection>();

/** Of a socket of our server, as whatever node:http hands it over. */
export const connectionOf = (socket: Duplex): Connection => known.get(socket) as Connection;

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
  /** Once the last reply is decided, nothing that comes behind it is taken for a request (RFC 9112, 9.6). */
  isEnding = false;
  /** The newest request that was answered before all of it had come. */
  early: IncomingMessage | undefined;
  readonly #all: Connections;
  #unsent = 0;
  #ignoredPackets = 0;
  #stuck = { bytes: 0, since: 0 };
  /** The oldest reply has left, or never will. */
  readonly #settle = () => {
    const res = this.pending.shift();
    if (res === undefined) return; // the connection is closed
    this.#unsent -= res.bytes;
    this.#all.unsent -= res.bytes;
    this.#all.unanswered--;
  };

  constructor(number: number, socket: Socket, all: Connections) {
    this.number = number;
    this.socket = socket;
    this.#all = all;
    known.set(socket, this);
    void socket.remoteAddress; // keeps it: a client that is gone can be told by it
    socket.once('close', () => {
      while (this.pending.length > 0) this.#settle();
      all.open.delete(this);
    });
  }

  /** Whether no further message may become a request: the last reply is decided, or too much is asked or unsent. */
  get isFull(): boolean {
    const waiting = this.pending.length;
    if (this.isEnding || waiting >= MAX_UNANSWERED || this.#unsent > MAX_UNSENT_BYTES) return true;
    return waiting > 0 && this.#all.areFull;
  }

  /** One more request. */
  addPending(res: Outgoing): void {
    this.pending.push(res);
    this.#all.unanswered++;
    res.on('finish', this.#settle);
  }

  /** A reply is now written, of so many bytes. */
  countUnsent(res: Outgoing, bytes: number): void {
    res.bytes = bytes;
    this.#unsent += bytes;
    this.#all.unsent += bytes;
  }

  /** Makes this reply, whatever it will be, the last of its connection. */
  endWith(res: Outgoing): void {
    res.shouldKeepAlive = false; // node:http then writes `Connection: close`
    this.isEnding = true;
  }

  /** On a message while it was full. Where the last reply is decided, that and those before it are still sent. */
  endFlood(): void {
    if (!this.isEnding) return void this.socket.destroy();
    this.socket.on('error', () => {});
    if (this.pending.length > 0) this.socket.pause();
    else this.socket.resume();
  }

  /** One more packet behind what was no request: node:http tells of each as of a fault. */
  ignorePacket(): void {
    if (++this.#ignoredPackets > MAX_UNANSWERED) this.socket.destroy();
  }

  /**
   * Nothing comes behind the reply that is now sent. node:http closes by `destroySoon`; with bytes still to be read the
   * kernel then sends a reset, which may overtake the reply. So: say that no more will come, read on, then close.
   */
  endGently(): void {
    const { socket } = this;
    this.isEnding = true;
    socket.destroySoon = () => {
      const timer = setTimeout(() => socket.destroy(), LINGER_MS).unref();
      socket.once('close', () => clearTimeout(timer)).end();
      socket.resume();
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

export class Connections {
  readonly server: Server;
  readonly open = new Set<Connection>();
  unanswered = 0;
  unsent = 0;
  #count = 0;

  /**
   * Looks now and then for clients that have stopped reading. `server.timeout` would end them too, but sets a timer
   * anew for every request, which costs each of them two hundredths of its time.
   */
  constructor(server: Server, now: () => number, unreadMs = UNREAD_REPLY_MS) {
    this.server = server;
    server.on('connection', (socket: Socket) => this.open.add(new Connection(++this.#count, socket, this)));
    const everyMs = Math.min(LOOKED_AT_EVERY_MS, unreadMs / 2);
    const look = () => {
      const at = now();
      for (const connection of this.open) connection.endIfStuck(at, this.areFull ? everyMs : unreadMs);
    };
    const timer = setInterval(look, everyMs).unref();
    server.once('close', () => clearInterval(timer));
  }

  get areFull(): boolean {
    return this.unanswered > MAX_UNANSWERED_IN_ALL || this.unsent > MAX_UNSENT_BYTES_IN_ALL;
  }

  /** Ends the server: no new connections, what is under way is finished, at most `maxMs` in all. */
  async drain(maxMs: number): Promise<void> {
    const began = performance.now();
    // Whoever has connected by now is accepted first, one in each turn: closing would reset the connection.
    await immediate();
    const most = this.#count + 511; // the kernel takes no more for us before we do
    for (let before = -1; before < this.#count && this.#count < most; await immediate()) before = this.#count;
    const poll = setInterval(() => {
      const ms = performance.now() - began;
      if (ms >= maxMs) for (const { socket } of this.open) socket.destroy();
      // A connection becomes idle when its last reply is done, so this is asked again until none is left.
      else if (ms >= IDLE_GRACE_MS) this.server.closeIdleConnections();
    }, DRAIN_POLL_MS);
    // node:http's own close() cuts idle connections at once; net's only stops listening.
    await new Promise<unknown>((resolve) => NetServer.prototype.close.call(this.server, resolve));
    clearInterval(poll);
  }
}
