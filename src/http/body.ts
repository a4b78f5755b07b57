/** The body of a request, gathered in one buffer of bounded size. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { excerpt } from '../text.ts';
import { ApiError, badRequest, bodyTooLarge, type HeaderList, MAX_BODY_BYTES } from './errors.ts';
import { expectOf } from './message.ts';

/** The most memory of all bodies under way. */
const MAX_BODY_BYTES_IN_ALL = 64 * 1024 * 1024;
/** The most pieces of one body: each costs a call from the parser. A body of more bytes must come in larger pieces. */
const MAX_BODY_PIECES = 4_096;
export const NO_BODY = Buffer.alloc(0);
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
  /** True once somebody has asked for it. */
  isWanted = false;
  readonly #req: IncomingMessage;
  readonly #onRefused: () => void;
  readonly #ended: Promise<void>;
  #reject: (why: ApiError) => void = () => {};
  #buffer = NO_BODY;
  #bytes = 0;
  #pieces = 0;

  /** `onRefused` is called when more has come than is taken. */
  constructor(req: IncomingMessage, onRefused: () => void) {
    this.#req = req;
    this.#onRefused = onRefused;
    this.#ended = new Promise((resolve, reject) => {
      this.#reject = reject;
      req.on('end', resolve);
    });
    this.#ended.catch(() => {}); // where nobody has asked for it
    req.on('data', this.#add);
    req.on('close', () => req.readableEnded || this.fail(badRequest('the body ended early')));
    req.on('error', () => {}); // it closes too
  }

  /** All of it. Throws if it is refused, or has broken off. */
  async whole(): Promise<Uint8Array> {
    this.isWanted = true;
    await this.#ended;
    return this.#buffer.subarray(0, this.#bytes);
  }

  fail(why: ApiError): void {
    this.failure ??= why;
    this.#reject(this.failure);
  }

  /** Frees it, and drops what is still to come. */
  discard(): void {
    this.#req.off('data', this.#add);
    bytesInAll -= this.#buffer.length;
    this.#buffer = NO_BODY;
  }

  readonly #add = (piece: Buffer): void => {
    if (this.failure !== undefined) return;
    const bytes = this.#bytes + piece.length;
    if (bytes > MAX_BODY_BYTES || ++this.#pieces > MAX_BODY_PIECES) {
      this.fail(bytes > MAX_BODY_BYTES ? bodyTooLarge() : bodyInTooManyPieces());
      this.#onRefused();
    } else if (this.#hasRoom(bytes)) {
      piece.copy(this.#buffer, this.#bytes);
      this.#bytes = bytes;
    } else this.fail(tooManyBodies());
  };

  /** Makes room for so many bytes, in one buffer. False if all bodies together would take too much. */
  #hasRoom(bytes: number): boolean {
    if (bytes <= this.#buffer.length) return true;
    const size = Math.min(2 * bytes, MAX_BODY_BYTES);
    const inAll = bytesInAll + size - this.#buffer.length;
    if (inAll > MAX_BODY_BYTES_IN_ALL) return false;
    bytesInAll = inAll;
    this.#buffer = Buffer.concat([this.#buffer], size);
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
