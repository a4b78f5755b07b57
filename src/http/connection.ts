/** One connection: what was asked on it and is not yet answered, in which order it is begun, and how it ends. */
import { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { tellNoBody } from './private.ts';

/** Of one connection: requests that are not answered in full. No browser pipelines, load generators send 16 at once. */
const MAX_UNANSWERED = 24;
/** Of one connection: bytes of replies that the kernel has not taken. Sixteen of the largest pages are less. */
const MAX_UNSENT_BYTES = 2 * 1024 * 1024;
/** Behind the last reply of a connection: bytes that are read, and pieces in which they come, so that it may arrive. */
const MAX_UNWANTED_BYTES = 4 * 1024 * 1024;
const MAX_UNWANTED_PIECES = 4_096;

/** A socket that is told to close reads on for so long, so that its client sees the reply and not a reset. */
const LINGER_MS = 1_000;

/** Where a socket of our server keeps its connection: every request asks for it, and a WeakMap takes longer. */
const OWN = Symbol('connection');

/** Of a socket of our server, as whatever node:http hands it over. */
export const connectionOf = (socket: Duplex): Connection => (socket as Duplex & { [OWN]: Connection })[OWN];

export class Outgoing extends ServerResponse {
  /** How many of the unsent bytes of its connection are its own. */
  bytes = 0;
  /** Its reply is decided: nothing that this request does or reads is still to come. */
  isDecided = false;
  /** It came before the service began to stop, though it may be begun after. */
  isUnderWay = false;
  /** What `handle` knows of it. */
  exchange: unknown;
}

/** A body under way, as far as its memory goes. */
export interface Body {
  giveUp(): void;
}

/** All connections of a server, as each of them knows them. */
interface Together {
  unanswered: number;
  unsent: number;
  readonly areFull: boolean;
  /** The service stops, and its time for that is over. */
  readonly isOverdue: boolean;
  begin(res: Outgoing): void;
  trust(connection: Connection): void;
  hold(body: Body, bytes: number): void;
  letGo(body: Body): void;
  closed(connection: Connection): void;
}

/** What only reads overtakes nothing that only reads (RFC 9110, 9.2.1). */
const isSafe = ({ req: { method } }: Outgoing): boolean =>
  method === 'GET' || method === 'HEAD' || method === 'OPTIONS';

export class Connection {
  /** Counted from 1 by each server. */
  readonly number: number;
  readonly socket: Socket;
  /** What is to be answered, oldest first: node:http sends the replies in this order. */
  readonly pending: Outgoing[] = [];
  /** Whether node:http has given up on what comes in, and whether that was told. */
  refusal: 'none' | 'due' | 'sent' = 'none';
  /** IdempotencyKey the last reply is decided, nothing that comes behind it is taken for a request (RFC 9112, 9.6). */
  isEnding = false;
  /** The newest request that was answered before all of it had come. */
  early: { readonly complete: boolean } | undefined;
  readonly openedAt: number;
  /** When its newest request was answered, or it was opened: by the clock of whoever measures. */
  quietSince: number;
  /** A request on it came with a key that is good. */
  isTrusted = false;
  readonly all: Together;
  /** What of `pending` is not begun: something before it is undecided. */
  readonly #waiting: Outgoing[] = [];
  #unsent = 0;
  #ignoredPackets = 0;
  #unwanted: { bytes: number; pieces: number } | undefined;
  #tellBodyAgain = () => {};
  #stuck = { bytes: 0, since: 0 };
  /** The oldest reply has left, or never will. */
  readonly #settle = () => {
    const res = this.pending.shift();
    if (res === undefined) return; // the connection is closed
    this.#unsent -= res.bytes;
    this.all.unsent -= res.bytes;
    this.all.unanswered--;
  };

  readonly #beginWaiting = () => {
    while (this.#waiting.length > 0 && this.#mayBegin(this.#waiting[0])) {
      if (this.isEnding || this.socket.destroyed) this.#waiting.length = 0;
      else this.all.begin(this.#waiting.shift() as Outgoing);
    }
  };

  constructor(number: number, socket: Socket, all: Together, now: number) {
    this.number = number;
    this.socket = socket;
    this.all = all;
    this.openedAt = this.quietSince = now;
    Object.assign(socket, { [OWN]: this });
    void socket.remoteAddress; // keeps it: a client that is gone can be told by it
    socket.once('close', () => {
      while (this.pending.length > 0) this.#settle();
      this.#tellBodyAgain(); // before node:http puts the parser back for another connection
      all.closed(this);
    });
  }

  /** Whether no further message may become a request: the last is known, or too much is asked or unsent. */
  get isFull(): boolean {
    const waiting = this.pending.length;
    if (this.isEnding || waiting >= MAX_UNANSWERED || this.#unsent > MAX_UNSENT_BYTES) return true;
    return this.#unwanted !== undefined || (waiting > 0 && this.all.areFull) || this.all.isOverdue;
  }

  /** One more request. Whether it can be begun at once; else it is begun in its turn. */
  addPending(res: Outgoing): boolean {
    this.pending.push(res);
    this.all.unanswered++;
    res.on('finish', this.#settle);
    if (this.pending.length === 1) return true;
    // Behind another it waits until what came with it is parsed: were that too much, a reply would be in vain.
    if (this.#waiting.push(res) === 1) process.nextTick(this.#beginWaiting);
    return false;
  }

  /** Only safe requests are under way together; a write, and what is behind one, wait (RFC 9112, 9.3.2). */
  #mayBegin(res: Outgoing): boolean {
    const isInTheWay = (before: Outgoing) => !before.isDecided && !(isSafe(before) && isSafe(res));
    return !this.pending.slice(0, this.pending.indexOf(res)).some(isInTheWay);
  }

  /** The reply to this request is decided: what waited for that is begun. */
  decide(res: Outgoing): void {
    res.isDecided = true;
    if (this.#waiting.length > 0) process.nextTick(this.#beginWaiting);
  }

  /** The service begins to stop: what waits here is under way. */
  keepWaiting(): void {
    for (const res of this.#waiting) res.isUnderWay = true;
  }

  /** A reply is now written, of so many bytes. */
  countUnsent(res: Outgoing, bytes: number): void {
    res.bytes = bytes;
    this.#unsent += bytes;
    this.all.unsent += bytes;
  }

  /** Makes this reply, whatever it will be, the last of its connection. */
  endWith(res: Outgoing): void {
    res.shouldKeepAlive = false; // node:http then writes `Connection: close`
    this.isEnding = true;
  }

  /** On a message while it was full. Where the last reply is decided, that and those before it are still sent. */
  endFlood(): void {
    if (!this.isEnding && this.#unwanted === undefined) return void this.socket.destroy();
    this.socket.on('error', () => {});
    this.#tellBodyAgain(); // node:http has put the parser back for another connection
    if (this.isEnding) this.endGently();
    if (this.pending.length > 0) this.socket.pause();
    else this.socket.resume();
  }

  /** One more packet behind what was no request: node:http tells of each as of a fault. */
  ignorePacket(): void {
    if (this.all.isOverdue || ++this.#ignoredPackets > MAX_UNANSWERED) this.socket.destroy();
  }

  /**
   * Of what still comes nothing is wanted: it is read past the parser, to whom each piece of a body is a call, and only
   * so far; were it not read at all, the kernel would send a reset that may overtake the reply.
   */
  throwAwayRest(): void {
    if (this.#unwanted !== undefined) return;
    const { socket } = this;
    const unwanted = { bytes: 0, pieces: 0 };
    this.#unwanted = unwanted;
    this.#tellBodyAgain = tellNoBody(socket);
    const toParser = socket.listeners('data') as (() => void)[];
    socket.on('data', ({ length }: Buffer) => {
      unwanted.bytes += length;
      const isTooMuch = unwanted.bytes > MAX_UNWANTED_BYTES || ++unwanted.pieces > MAX_UNWANTED_PIECES;
      if (isTooMuch || this.all.isOverdue) socket.destroy();
    });
    for (const listener of toParser) socket.off('data', listener);
    socket.resume();
  }

  /**
   * Nothing comes behind the reply that is now sent. node:http closes by `destroySoon`; with bytes still to be read the
   * kernel then sends a reset, which may overtake the reply. So: say that no more will come, read on, then close.
   */
  endGently(): void {
    const { socket } = this;
    this.isEnding = true;
    this.throwAwayRest();
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
