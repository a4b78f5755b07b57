/** One connection: its requests without a reply, the order in which they are begun, and how the connection ends. */
import { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { muteBody, stopParser } from './private.ts';
import type { PipelinedBegins, UnwantedReads } from './turns.ts';

/** The most requests of one connection without a complete reply. No browser pipelines; load generators send 16. */
const MAX_UNANSWERED = 24;
/**
 * The most bytes of one connection's replies that the kernel has not taken. Sixteen pages of a list with the longest
 * names are less, unless the names consist of control characters, each of which JSON writes in six bytes.
 */
const MAX_UNSENT_BYTES = 2 * 1024 * 1024;
/** The most bytes, and pieces, that are read after the last reply of a connection, so that the reply arrives. */
const MAX_UNWANTED_BYTES = 4 * 1024 * 1024;
const MAX_UNWANTED_PIECES = 4_096;

/** How long a socket that is to close is still read, so that its client sees the reply and not a reset. */
const LINGER_MS = 1_000;

/** The property of a socket that holds its `Connection`: every request asks for it, and a WeakMap takes longer. */
const CONNECTION = Symbol('connection');

/** The connection of a socket of our server; node:http passes some sockets as a plain Duplex. */
export const connectionOf = (socket: Duplex): Connection =>
  (socket as Duplex & { [CONNECTION]: Connection })[CONNECTION];

export class Outgoing extends ServerResponse {
  /** The bytes of its reply, as counted in the connection's unsent bytes. */
  bytes = 0;
  /** True when the reply is decided: the request changes and reads nothing more. */
  isDecided = false;
  /** True if the request waited for its turn when the service began to stop: it is still served. */
  isUnderWay = false;
  /** When its request came, if that had to wait for its turn: it was sent before an earlier reply had come. */
  cameAt: number | undefined;
  /** The request's context; only `handle` knows its type. */
  exchange: unknown;
}

/** A body that is still arriving, for the bound on the memory of all bodies. */
export interface Body {
  giveUp(): void;
}

/** The owner of all connections of a server: counts and bounds that hold for all of them. */
interface ConnectionOwner {
  unanswered: number;
  unsent: number;
  readonly areFull: boolean;
  readonly unwanted: UnwantedReads;
  readonly pipelined: PipelinedBegins;
  /** True when the service is stopping, and its time for that is over. */
  readonly isOverdue: boolean;
  begin(res: Outgoing): void;
  trust(connection: Connection, isTrusted: boolean): void;
  hold(body: Body, bytes: number): void;
  letGo(body: Body): void;
  closed(connection: Connection): void;
}

/** A safe request changes nothing, so several may run at once (RFC 9110, 9.2.1). */
const isSafe = ({ req: { method } }: Outgoing): boolean =>
  method === 'GET' || method === 'HEAD' || method === 'OPTIONS';

export class Connection {
  /** The number of the connection; each server counts from 1. */
  readonly number: number;
  readonly socket: Socket;
  /** Requests without a complete reply, oldest first: node:http sends the replies in this order. */
  readonly pending: Outgoing[] = [];
  /** Set if input is refused outside a handler. due: the reply waits for earlier ones; sent: it is written. */
  refusal: 'none' | 'due' | 'sent' = 'none';
  /** True when the last reply is decided: no bytes after it are taken for a request (RFC 9112, 9.6). */
  isEnding = false;
  /** True when the parser has stopped, since nobody wants what comes: node:http then emits `upgrade`. */
  hasStopped = false;
  /** The newest request that was answered before all of it had come. */
  early: { readonly complete: boolean } | undefined;
  readonly openedAt: number;
  /** True once a request has come. */
  isUsed = false;
  /** When the newest request was answered, or before that, when the connection was opened. */
  quietSince: number;
  /** True when one of its requests has come with a valid key, within its limits or not. */
  hasShownKey = false;
  /** True when the newest request that needs a key had a valid one, and was within its limits. */
  isTrusted = false;
  /** While it is not trusted: since when. It is not trusted when it is opened. */
  strangerSince: number;
  readonly owner: ConnectionOwner;
  /** Requests in `pending` that must wait until earlier replies are decided. */
  readonly #waiting: Outgoing[] = [];
  #unsent = 0;
  #unwanted: { bytes: number; pieces: number } | undefined;
  #unmuteBody = () => {};
  #stuck = { bytes: 0, since: 0 };
  /** Called when the oldest reply is written, or never will be. */
  readonly #settle = () => {
    const res = this.pending.shift();
    if (res === undefined) return; // the connection is closed
    this.#unsent -= res.bytes;
    this.owner.unsent -= res.bytes;
    this.owner.unanswered--;
  };

  readonly #beginWaiting = () => {
    let isOurTurn = false;
    while (this.#waiting.length > 0 && this.#mayBegin(this.#waiting[0])) {
      if (this.isEnding || this.socket.destroyed) this.#waiting.length = 0;
      else {
        isOurTurn ||= this.owner.pipelined.mayBegin(this.#beginWaiting);
        if (!isOurTurn) return;
        this.owner.pipelined.count(this.hasShownKey);
        this.owner.begin(this.#waiting.shift() as Outgoing);
      }
    }
  };

  /**
   * The socket's `destroySoon`, which is called behind the last reply. Node's own closes the socket: whatever the client
   * then sends gets a reset, which may overtake the reply. So: half-close, and read on until the client closes too, or
   * for a while.
   */
  readonly #endBehindReply = () => {
    const { socket } = this;
    // When a client has ended its side, node:http takes the newest reply for the last: a refusal may follow it.
    if (this.refusal === 'due' && !this.isEnding) return;
    this.isEnding = true;
    this.throwAwayRest();
    const timer = setTimeout(() => socket.destroy(), LINGER_MS).unref();
    socket.once('close', () => clearTimeout(timer)).end();
    socket.resume();
  };

  constructor(number: number, socket: Socket, owner: ConnectionOwner, now: number) {
    this.number = number;
    this.socket = socket;
    this.owner = owner;
    this.openedAt = this.quietSince = this.strangerSince = now;
    Object.assign(socket, { [CONNECTION]: this, destroySoon: this.#endBehindReply });
    stopParser(socket, () => (this.hasStopped = this.#unwanted !== undefined));
    void socket.remoteAddress; // the getter caches it: logs need it when the client is gone
    socket.once('close', () => {
      for (const { req } of this.pending) req.destroy(); // node:http does so too, unless its parser has stopped
      while (this.pending.length > 0) this.#settle();
      this.#unmuteBody(); // node:http puts the parser back into its pool next
      owner.closed(this);
    });
  }

  /** True if no further message may become a request: the last reply is decided, or too much waits. */
  get isFull(): boolean {
    const unanswered = this.pending.length;
    if (this.isEnding || unanswered >= MAX_UNANSWERED || this.#unsent > MAX_UNSENT_BYTES) return true;
    return this.#unwanted !== undefined || (unanswered > 0 && this.owner.areFull) || this.owner.isOverdue;
  }

  /** Adds a request. True if it can be begun at once; otherwise it is begun in its turn. */
  addPending(res: Outgoing): boolean {
    this.isUsed = true;
    this.pending.push(res);
    this.owner.unanswered++;
    res.on('finish', this.#settle);
    if (this.pending.length === 1) return true;
    // It waits until its packet is parsed: a packet with too many requests ends the connection before they are begun.
    if (this.#waiting.push(res) === 1) process.nextTick(this.#beginWaiting);
    return false;
  }

  /** Safe requests may run together; an unsafe request, and every request after it, waits (RFC 9112, 9.3.2). */
  #mayBegin(res: Outgoing): boolean {
    const isInTheWay = (before: Outgoing) => !before.isDecided && !(isSafe(before) && isSafe(res));
    return !this.pending.slice(0, this.pending.indexOf(res)).some(isInTheWay);
  }

  /** Called when the reply to this request is decided: requests that waited for it are begun. */
  replyDecided(res: Outgoing): void {
    res.isDecided = true;
    if (this.#waiting.length > 0) process.nextTick(this.#beginWaiting);
  }

  /** Called when the service begins to stop: requests that wait here still count as under way. */
  keepWaiting(): void {
    for (const res of this.#waiting) res.isUnderWay = true;
  }

  /** Counts the bytes of a reply that is now written. */
  countUnsent(res: Outgoing, bytes: number): void {
    res.bytes = bytes;
    this.#unsent += bytes;
    this.owner.unsent += bytes;
  }

  /** Makes the reply to this request the last of its connection. */
  endWith(res: Outgoing): void {
    res.shouldKeepAlive = false; // node:http then writes `Connection: close`
    this.isEnding = true;
  }

  /**
   * Called when a message arrives beyond the bounds. If the last reply is decided, or input is dropped already, the
   * replies that are due are still sent. Otherwise the connection is destroyed at once.
   */
  endFlood(): void {
    if (!this.isEnding && this.#unwanted === undefined) return void this.socket.destroy();
    this.socket.on('error', () => {});
    this.#unmuteBody(); // node:http has just put the parser back into its pool, for another connection
    this.throwAwayRest();
    if (this.pending.length > 0) this.socket.pause();
    else this.socket.resume();
  }

  /** Called when more comes behind input that is refused: the parser would fail at each packet. */
  ignorePackets(): void {
    if (this.owner.isOverdue) this.socket.destroy();
    else this.throwAwayRest();
  }

  /**
   * Reads further input and drops it, up to a bound. The parser is skipped: it would call JavaScript for each piece of
   * a body. If nobody read the input, the kernel would send a reset, which may overtake the reply.
   */
  throwAwayRest(): void {
    if (this.#unwanted !== undefined) return;
    const { socket } = this;
    const unwanted = { bytes: 0, pieces: 0 };
    this.#unwanted = unwanted;
    this.#unmuteBody = muteBody(socket);
    const toParser = socket.listeners('data') as (() => void)[];
    socket.on('data', ({ length }: Buffer) => {
      unwanted.bytes += length;
      const isTooMuch = unwanted.bytes > MAX_UNWANTED_BYTES || ++unwanted.pieces > MAX_UNWANTED_PIECES;
      if (isTooMuch || this.owner.isOverdue) return void socket.destroy();
      if (this.owner.unwanted.enqueue(socket)) socket.pause();
    });
    for (const listener of toParser) socket.off('data', listener);
    socket.resume();
  }

  /** Ends the connection if its client has taken none of the unsent bytes for `ms`. */
  endIfStuck(at: number, ms: number): void {
    const bytes = this.socket.writableLength;
    if (bytes === 0 || bytes !== this.#stuck.bytes) this.#stuck = { bytes, since: at };
    // Resets: after a mere close, the kernel would keep the unsent bytes and go on trying to send them.
    else if (at - this.#stuck.since >= ms) this.socket.resetAndDestroy();
  }
}
