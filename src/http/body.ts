/** The body of a request, gathered in one buffer of bounded size. */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { ApiError, badRequest, bodyTooLarge, headersTooLarge, MAX_BODY_BYTES, MAX_HEADER_PAIRS } from './errors.ts';

/** The most memory of all bodies under way. */
const MAX_BODY_BYTES_IN_ALL = 64 * 1024 * 1024;
/** The most pieces of one body: each costs a call from the parser. A body of more bytes must come in larger pieces. */
const MAX_BODY_PIECES = 4_096;
const LEAST_BUFFER_BYTES = 1_024;
export const NO_BODY: Uint8Array = Buffer.alloc(0);

const bodyInTooManyPieces = () =>
  new ApiError('body_too_large', `the body may come in at most ${MAX_BODY_PIECES} pieces`, [], true);
const tooManyBodies = () =>
  new ApiError('unavailable', 'too many request bodies are under way', ['Retry-After', '1'], true);

/** The memory of all bodies under way in this process. */
let bytesInAll = 0;

export class Body {
  /** Why the rest will not come, or is not wanted. */
  failure: ApiError | undefined;
  /** True if the handler has asked for it. */
  isWanted = false;
  #buffer = Buffer.alloc(0);
  #bytes = 0;
  #pieces = 0;
  #hasEnded = false;
  #isDiscarded = false;
  #isPausing = false;
  #settle: (() => void) | undefined;

  constructor(message: IncomingMessage) {
    message.on('data', (part: Buffer) => {
      if (this.failure === undefined && !this.#isDiscarded) this.#add(part);
      if (this.failure !== undefined && !this.#isDiscarded) this.#pause(message.socket);
    });
    message.on('end', () => this.#end(message.rawTrailers));
    message.on('close', () => this.#hasEnded || this.fail(badRequest('the body ended early')));
  }

  /** Resolves with the whole body, rejects when it is refused or has broken off. */
  whole(): Promise<Uint8Array> {
    this.isWanted = true;
    return new Promise((resolve, reject) => {
      this.#settle = () => {
        if (this.failure !== undefined) reject(this.failure);
        else if (this.#hasEnded) resolve(this.#buffer.subarray(0, this.#bytes));
      };
      this.#settle();
    });
  }

  fail(why: ApiError): void {
    this.failure ??= why;
    this.#settle?.();
  }

  /** Frees it, and drops what is still to come. */
  discard(): void {
    this.#isDiscarded = true;
    bytesInAll -= this.#buffer.length;
    this.#buffer = Buffer.alloc(0);
    this.#settle = undefined; // it holds the promise, and so the bytes
  }

  /**
   * Reads no further until the refusal is sent, which drops the rest: otherwise a client that leaves earlier replies
   * unread could send for ever. It waits for `setImmediate`, since the stream of the body resumes the socket in the next
   * tick, and node:http at the end of the packet.
   */
  #pause(socket: Socket): void {
    if (this.#isPausing) return;
    this.#isPausing = true;
    setImmediate(() => {
      this.#isPausing = false;
      if (!this.#isDiscarded) socket.pause();
    });
  }

  #add(part: Buffer): void {
    const bytes = this.#bytes + part.length;
    if (bytes > MAX_BODY_BYTES) this.fail(bodyTooLarge());
    else if (++this.#pieces > MAX_BODY_PIECES) this.fail(bodyInTooManyPieces());
    else if (!this.#grow(bytes)) this.fail(tooManyBodies());
    else {
      part.copy(this.#buffer, this.#bytes);
      this.#bytes = bytes;
    }
  }

  /**
   * Makes room for so many bytes, in one buffer: a list of pieces, which may have one byte each, would take hundreds of
   * times the memory. False if all bodies together would take too much.
   */
  #grow(bytes: number): boolean {
    const before = this.#buffer.length;
    if (bytes <= before) return true;
    const size = before === 0 ? bytes : Math.min(Math.max(2 * bytes, LEAST_BUFFER_BYTES), MAX_BODY_BYTES);
    if (bytesInAll + size - before > MAX_BODY_BYTES_IN_ALL) return false;
    bytesInAll += size - before;
    const larger = Buffer.allocUnsafeSlow(size);
    this.#buffer.copy(larger);
    this.#buffer = larger;
    return true;
  }

  #end(trailers: readonly string[]): void {
    this.#hasEnded = true;
    if (trailers.length > 2 * MAX_HEADER_PAIRS) this.fail(headersTooLarge());
    else this.#settle?.();
  }
}
