/** Requests of our own: `createServer` takes the class in place of node:http's. */
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
 * A request whose body is gathered as the parser finds it. A stream costs every request three microseconds, also where
 * there is no body, and would end up in one Buffer all the same.
 */
export class Incoming extends IncomingMessage {
  readonly from: Connection;
  #headers: RequestHeaders | undefined;
  /** What has come of the body, and how many of its bytes are that. */
  #body: Uint8Array = NOTHING;
  #bytes = 0;
  #pieces = 0;
  /** Why the body is not taken. */
  #refusal: ApiError | undefined;
  /** Nobody will ask for the body: it is answered without. */
  #isUnwanted = false;
  /** Lets whoever waits for the body know how it stands with it. */
  #settleBody = nobodyWaits;

  constructor(from: Connection) {
    super(from.socket);
    this.from = from;
    readsItself(this);
  }

  // @ts-expect-error: the type has a property here, which no getter may stand for.
  override get headers(): RequestHeaders {
    this.#headers ??= readHeaders(this.rawHeaders);
    return this.#headers;
  }

  /** Neither `Upgrade` nor CONNECT is heeded: nothing else is spoken here. */
  get upgrade(): boolean {
    return false;
  }

  set upgrade(_: boolean) {}

  // @ts-expect-error: the type has a property here, which no getter may stand for.
  override get readableEnded(): boolean {
    return this.complete; // nothing is left to read of what was gathered
  }

  /** The whole body, once it has come; refused as soon as it is known to be too long. */
  body(): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      this.#settleBody = () => {
        if (this.#refusal !== undefined) reject(this.#refusal);
        // The client is gone, or node:http has answered in its own way: nobody is left to read what is said here.
        else if (!this.complete && this.destroyed) reject(badRequest('the body ended early'));
        // Where it was refused while it came (408), it must not be done any more.
        else if (this.complete && this.from.refusal !== 'sent') resolve(this.#take());
      };
      this.#settleBody();
    });
  }

  /** Whether the rest of it is not read. */
  get isCutShort(): boolean {
    return this.#refusal !== undefined;
  }

  /** It is answered before all of it has come: nobody will ask for the body, and what still comes of it is not kept. */
  discard(): void {
    this.from.early = this;
    this.#isUnwanted = true;
    this.#take();
    if (this.from.isEnding) this.from.endGently();
  }

  override push(part: Uint8Array | null): boolean {
    if (part !== null) this.#add(part);
    else if (this.rawTrailers.length > 2 * MAX_HEADER_PAIRS && !this.#isUnwanted) this.#refuse(headersTooLarge());
    this.#settleBody();
    return true;
  }

  /** A chunk may hold one byte: a list of what comes would take hundreds of times the memory of the body. */
  #add(part: Uint8Array): void {
    if (this.from.all.isOverdue) return void this.from.socket.destroy();
    if (this.#refusal !== undefined) return; // what is left of the packet
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
    this.from.all.hold(this, this.#body.length);
  }

  /** Too much is under way, and this for longer than all the rest. */
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

  /** What is taken is no longer held here. */
  #take(): Uint8Array {
    if (this.#bytes === 0) return NOTHING;
    const body = this.#body.subarray(0, this.#bytes);
    this.#body = NOTHING;
    this.#bytes = 0;
    this.from.all.letGo(this);
    return body;
  }

  /** Its reply is decided: nobody asks for its body any more, and what waited behind it may begin. */
  decide(res: Outgoing): void {
    this.#take();
    if (this.isCutShort) this.from.endWith(res);
    this.from.decide(res);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#settleBody();
    this.from.all.letGo(this); // one that came whole is done all the same
    super._destroy(error, done);
  }
}

/**
 * Stands for every message of a connection that has asked for too much. As an upgrade to another protocol it makes
 * node:http read no further, or no further than what has come already, and hand the connection over.
 */
const FLOOD: IncomingMessage = Object.defineProperties(new IncomingMessage(new Socket()), {
  upgrade: { get: () => true, set: () => {} },
  method: { get: () => 'GET', set: () => {} }, // node:http has a listener of its own for CONNECT
  push: { value: () => true },
  complete: { get: () => true, set: () => {} },
});

/** What node:http makes of a message. Refused only in a handler, a flood would cost a request and a response each. */
function make(socket: Socket): object {
  const from = connectionOf(socket);
  return from.isFull ? FLOOD : new Incoming(from);
}
export const RequestClass = make as unknown as typeof IncomingMessage & (new (socket: Socket) => Incoming);
