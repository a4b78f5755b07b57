/** Requests of our own: `createServer` takes the class in place of node:http's. */
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { type Connection, connectionOf } from './connection.ts';
import { badRequest, bodyTooLarge, MAX_BODY_BYTES } from './errors.ts';
import { readsItself } from './private.ts';

const nobodyWaits = () => {};

/**
 * A request whose body is gathered as the parser finds it. A stream costs every request three microseconds, also where
 * there is no body, and would end up in one Buffer all the same.
 */
export class Incoming extends IncomingMessage {
  readonly from: Connection;
  #parts: Uint8Array[] = [];
  #bytes = 0;
  /** Lets whoever waits for the body know how it stands with it. */
  #tell = nobodyWaits;

  constructor(socket: Socket) {
    super(socket);
    this.from = connectionOf(socket);
    readsItself(this);
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
      this.#tell = () => {
        const parts = this.#parts;
        if (this.#bytes > MAX_BODY_BYTES) reject(bodyTooLarge());
        // The client is gone, or node:http has answered in its own way: nobody is left to read what is said here.
        else if (!this.complete && this.destroyed) reject(badRequest('the body ended early'));
        // Where it was refused while it came (408), it must not be done any more.
        else if (this.complete && this.from.refusal !== 'sent')
          resolve(parts.length === 1 ? parts[0] : Buffer.concat(parts));
      };
      this.#tell();
    });
  }

  /** It is answered before all of it has come: nobody will ask for the body, and what still comes of it is not kept. */
  discard(): void {
    this.from.early = this;
    if (this.from.isEnding) this.from.endGently();
    this.#bytes = Number.POSITIVE_INFINITY;
    this.#parts = [];
  }

  override push(part: Uint8Array | null): boolean {
    if (part !== null && (this.#bytes += part.length) <= MAX_BODY_BYTES) this.#parts.push(part);
    this.#tell();
    return true;
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#tell();
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
function make(socket: Socket): IncomingMessage {
  return connectionOf(socket).isFull ? FLOOD : new Incoming(socket);
}
export const Message = make as unknown as typeof Incoming;
