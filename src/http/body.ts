/** The body of a request, gathered in one buffer of bounded size. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { excerpt } from '../text.ts';
import {
  ApiError,
  badRequest,
  bodyTooLarge,
  type HeaderList,
  headersTooLarge,
  MAX_BODY_BYTES,
  MAX_HEADER_PAIRS,
} from './errors.ts';
import { expectOf } from './message.ts';

/** The most memory of all bodies under way. */
const MAX_BODY_BYTES_IN_ALL = 64 * 1024 * 1024;
/** The most pieces of one body: each costs a call from the parser. A body of more bytes must come in larger pieces. */
const MAX_BODY_PIECES = 4_096;
const LEAST_BUFFER_BYTES = 1_024;
export const NO_BODY: Uint8Array = Buffer.alloc(0);
export const JSON_TYPE = 'application/json';
/** With any parameters, but no other `charset`. */
const JSON_MEDIA_TYPE = /^application\/json[ \t]*(?:$|;(?!.*\bcharset[ \t]*=(?!(?:utf-8|"utf-8")[ \t]*(?:;|$))))/i;
const TYPE_WANTED = `the header Content-Type must be ${JSON_TYPE}, in utf-8 if it names a charset`;

const bodyInTooManyPieces = () =>
  new ApiError('body_too_large', `the body may come in at most ${MAX_BODY_PIECES} pieces`, [], true);
/** Not its sender's doing. */
const tooManyBodies = () =>
  new ApiError('unavailable', 'too many request bodies are under way', ['Retry-After', '1'], true);

/** The memory of all bodies under way in this process. */
let bytesInAll = 0;

/** It is gathered from the moment that its head has come: in node's own queue, pieces of one byte take 200 bytes each. */
export class Body {
  /** Why the rest will not come, or is not wanted. */
  failure: ApiError | undefined;
  readonly #req: IncomingMessage;
  readonly #onRefused: () => void;
  #buffer = Buffer.alloc(0);
  #bytes = 0;
  #pieces = 0;
  /** Settles the promise of who has asked for it. */
  #settle: (() => void) | undefined;

  /** `onRefused` is called when more has come than is taken. */
  constructor(req: IncomingMessage, onRefused: () => void) {
    this.#req = req;
    this.#onRefused = onRefused;
    req.on('data', this.#add);
    req.on('end', () => {
      if (req.rawTrailers.length > 2 * MAX_HEADER_PAIRS) this.fail(headersTooLarge());
      else this.#settle?.();
    });
    req.on('close', () => req.readableEnded || this.fail(badRequest('the body ended early')));
    req.on('error', () => {}); // it closes too
  }

  get isWanted(): boolean {
    return this.#settle !== undefined;
  }

  /** Resolves with the whole body, rejects when it is refused or has broken off. */
  whole(): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      this.#settle = () => {
        if (this.failure !== undefined) reject(this.failure);
        else if (this.#req.readableEnded) resolve(this.#buffer.subarray(0, this.#bytes));
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
    this.#req.off('data', this.#add);
    bytesInAll -= this.#buffer.length;
    this.#buffer = Buffer.alloc(0);
    this.#settle = undefined; // it holds the promise, and so the bytes
  }

  readonly #add = (piece: Buffer): void => {
    if (this.failure !== undefined) return;
    const bytes = this.#bytes + piece.length;
    if (bytes > MAX_BODY_BYTES) this.#refuse(bodyTooLarge());
    else if (++this.#pieces > MAX_BODY_PIECES) this.#refuse(bodyInTooManyPieces());
    else if (!this.#grow(bytes)) this.fail(tooManyBodies());
    else {
      piece.copy(this.#buffer, this.#bytes);
      this.#bytes = bytes;
    }
  };

  #refuse(why: ApiError): void {
    this.fail(why);
    this.#onRefused();
  }

  /** Makes room for so many bytes, in one buffer. False if all bodies together would take too much. */
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
}

/** The whole body of a request. Throws if the headers show that it cannot be taken. `body`: undefined if there is none. */
export async function readBody(req: IncomingMessage, res: ServerResponse, body: Body | undefined): Promise<Uint8Array> {
  const { 'content-encoding': encoding, 'content-type': type, 'content-length': length } = req.headers;
  if (encoding !== undefined) {
    const why = 'the header Content-Encoding is not supported: send the body as it is, without it';
    throw unsupported(req, why, ['Accept-Encoding', 'identity']);
  }
  if (!JSON_MEDIA_TYPE.test(type ?? (body === undefined ? JSON_TYPE : ''))) {
    const got = type ? `got ${excerpt(type)}` : 'none was sent';
    throw unsupported(req, `${TYPE_WANTED} (${got})`);
  }
  if (Number(length) > MAX_BODY_BYTES) throw bodyTooLarge();
  if (expectOf(req) !== undefined) res.writeContinue();
  return body?.whole() ?? NO_BODY;
}

function unsupported({ method }: IncomingMessage, why: string, more: HeaderList = []): ApiError {
  const patch = method === 'PATCH' ? ['Accept-Patch', JSON_TYPE] : [];
  return new ApiError('unsupported_media_type', why, ['Accept', JSON_TYPE, ...patch, ...more]);
}
