/** Our class of requests, which `createServer` uses in place of node:http's. */
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { type Connection, connectionOf, type Outgoing } from './connection.ts';
import {
  ApiError,
  badRequest,
  bodyInTooManyPieces,
  bodyTooLarge,
  headersTooLarge,
  MAX_BODY_BYTES,
  MAX_BODY_PIECES,
  MAX_HEADER_PAIRS,
} from './errors.ts';
import { type RequestHeaders, readHeaders } from './headers.ts';
import { readsItself } from './private.ts';

const NOTHING = new Uint8Array(0);
const LEAST_GROWTH_BYTES = 1_024;
const nobodyWaits = () => {};

/**
 * A request whose body is gathered as the parser finds it. A stream would cost every request three microseconds, even
 * one without a body, and would end up in one Buffer all the same.
 */
export class Incoming extends IncomingMessage {
  readonly from: Connection;
  #headers: RequestHeaders | undefined;
  /** The body so far, in a buffer with room to grow; `#bytes` of it are filled. */
  #body: Uint8Array = NOTHING;
  #bytes = 0;
  #pieces = 0;
  /** The error with which the body is refused. */
  #refusal: ApiError | undefined;
  /** True when the request is answered without its body. */
  #isUnwanted = false;
  /** Called when the body's state changes: settles the promise of `body()` once the body is whole, refused or lost. */
  #settleBody = nobodyWaits;

  constructor(from: Connection) {
    super(from.socket);
    this.from = from;
    readsItself(this);
  }

  // @ts-expect-error: the type declares a property, which TypeScript lets no getter override.
  override get headers(): RequestHeaders {
    this.#headers ??= readHeaders(this.rawHeaders);
    return this.#headers;
  }

  /** Makes node:http treat `Upgrade` and CONNECT as any other request, unless the parser has stopped. */
  get upgrade(): boolean {
    return this.from.hasStopped;
  }

  set upgrade(_: boolean) {}

  // @ts-expect-error: the type declares a property, which TypeScript lets no getter override.
  override get readableEnded(): boolean {
    return this.complete; // the body was gathered: nothing is left to read
  }

  /**
   * Resolves with the whole body when it has come. Rejects as soon as the body is refused, or has broken off. Once a
   * 408 was sent it never resolves.
   */
  body(): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      this.#settleBody = () => {
        if (this.#refusal !== undefined) reject(this.#refusal);
        // The client is gone, or has its reply already (408): nobody will read this error.
        else if (!this.complete && this.destroyed) reject(badRequest('the body ended early'));
        // After a 408 in the middle of the body, the request must not be executed.
        else if (this.complete && this.from.refusal !== 'sent') {
          this.#settleBody = nobodyWaits; // else the promise would keep the body in memory until the reply
          resolve(this.#take());
        }
      };
      this.#settleBody();
    });
  }

  /** True if the rest of the body is not read. */
  get isCutShort(): boolean {
    return this.#refusal !== undefined;
  }

  /** The request is answered before all of its body has come: the rest is read and dropped. */
  discard(): void {
    this.from.early = this;
    this.#isUnwanted = true;
    this.#take();
    if (this.from.isEnding) this.from.throwAwayRest();
  }

  override push(part: Uint8Array | null): boolean {
    if (part !== null) this.#add(part);
    else if (this.rawTrailers.length > 2 * MAX_HEADER_PAIRS && !this.#isUnwanted) this.#refuse(headersTooLarge());
    this.#settleBody();
    return true;
  }

  /**
   * Adds to one buffer: a chunk may have one byte, and a list of such chunks would take hundreds of times the memory.
   */
  #add(part: Uint8Array): void {
    if (this.from.owner.isOverdue) return void this.from.socket.destroy();
    if (this.#refusal !== undefined) return; // the rest of the same packet
    const bytes = this.#bytes + part.length;
    if (bytes > MAX_BODY_BYTES) this.#refuse(bodyTooLarge());
    else if (++this.#pieces > MAX_BODY_PIECES) this.#refuse(bodyInTooManyPieces());
    else if (!this.#isUnwanted) this.#gather(part, bytes);
  }

  #gather(part: Uint8Array, bytes: number): void {
    if (this.#bytes === 0) this.#body = part;
    else {
      if (bytes > this.#body.length) {
        const larger = Buffer.allocUnsafeSlow(Math.min(Math.max(2 * bytes, LEAST_GROWTH_BYTES), MAX_BODY_BYTES));
        larger.set(this.#body);
        this.#body = larger;
      }
      this.#body.set(part, this.#bytes);
    }
    this.#bytes = bytes;
    this.from.owner.hold(this, this.#body.length);
  }

  /** Called for the oldest of all bodies when their memory reaches its bound. */
  giveUp(): void {
    this.#refuse(new ApiError('unavailable', 'too many request bodies are under way just now', ['Retry-After', '1']));
    this.#settleBody();
  }

  #refuse(why: ApiError): void {
    this.#refusal = why;
    this.#take();
    if (this.#isUnwanted) this.from.socket.destroy();
    else this.from.throwAwayRest();
  }

  /** Returns the body, and keeps no reference to it. */
  #take(): Uint8Array {
    if (this.#bytes === 0) return NOTHING;
    const body = this.#body.subarray(0, this.#bytes);
    this.#body = NOTHING;
    this.#bytes = 0;
    this.from.owner.letGo(this);
    return body;
  }

  /** Called when the reply is decided: frees the body, and lets requests begin that waited for this one. */
  replyDecided(res: Outgoing): void {
    this.#take();
    if (this.isCutShort) this.from.endWith(res);
    this.from.replyDecided(res);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#settleBody();
    this.from.owner.letGo(this); // a complete body is still counted if nobody has taken it
    super._destroy(error, done);
  }
}

/**
 * Stands for every message of a connection beyond its bounds. It pretends to be an upgrade to another protocol: then
 * node:http stops parsing, at the latest after the bytes that have come already, and leaves the rest to `endFlood`.
 */
const FLOOD: IncomingMessage = Object.defineProperties(new IncomingMessage(new Socket()), {
  upgrade: { get: () => true, set: () => {} },
  method: { get: () => 'GET', set: () => {} }, // for CONNECT, node:http would emit another event
  push: { value: () => true },
  complete: { get: () => true, set: () => {} },
});

/**
 * Called by node:http for each message. If floods were refused in a handler, a request and a response would have been
 * made for each message of a flood.
 */
function make(socket: Socket): object {
  const from = connectionOf(socket);
  return from.isFull ? FLOOD : new Incoming(from);
}
export const RequestClass = make as unknown as typeof IncomingMessage & (new (socket: Socket) => Incoming);
