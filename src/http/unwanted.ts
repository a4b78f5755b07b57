/**
 * Sockets whose bytes nobody wants are read in turn. A turn of the event loop accepts only one connection: if every
 * turn read from all such sockets, a client that has just come would wait long behind a few dozen of them.
 */
import type { Socket } from 'node:net';

/** The most sockets that are read in one turn. */
const MAX_UNWANTED_READ_AT_ONCE = 4;
/** The most sockets that wait for their turn: each of them keeps a packet in memory meanwhile. */
const MAX_UNWANTED_WAITING = 256;

export class UnwantedReads {
  readonly #waiting: Socket[] = [];
  readonly #readSome = () => {
    for (const socket of this.#waiting.splice(0, MAX_UNWANTED_READ_AT_ONCE)) socket.resume();
    if (this.#waiting.length > 0) setImmediate(this.#readSome);
  };

  /** True if the caller must pause this socket, which was just read from: here it is resumed in its turn. */
  takesTurns(socket: Socket): boolean {
    if (this.#waiting.length >= MAX_UNWANTED_WAITING) return false;
    if (this.#waiting.push(socket) === 1) setImmediate(this.#readSome);
    return true;
  }
}
