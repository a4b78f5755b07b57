/**
 * What connections do in turn, so that no turn of the event loop is long. A turn accepts only one connection, so a
 * client behind a few dozen others that connect waits for a few dozen turns. That would be long if each turn read from
 * all sockets whose bytes nobody wants, or began all pipelined requests.
 */
import type { Socket } from 'node:net';

/** The most sockets that are read in one turn. */
const MAX_UNWANTED_READ_AT_ONCE = 4;
/** The most sockets that wait for their turn: each of them keeps a packet in memory meanwhile. */
const MAX_UNWANTED_WAITING = 256;

/** The most pipelined requests that are begun in one turn, of all connections that have not shown a valid key yet. */
const MAX_PIPELINED_AT_ONCE = 16;

export class UnwantedReads {
  readonly #waiting: Socket[] = [];
  readonly #readSome = () => {
    for (const socket of this.#waiting.splice(0, MAX_UNWANTED_READ_AT_ONCE)) socket.resume();
    if (this.#waiting.length > 0) setImmediate(this.#readSome);
  };

  /**
   * Puts a socket that was just read from at the end of the queue. True: the caller must pause it, and here it is
   * resumed in its turn. False: the queue is full, and the socket is read on.
   */
  enqueue(socket: Socket): boolean {
    if (this.#waiting.length >= MAX_UNWANTED_WAITING) return false;
    if (this.#waiting.push(socket) === 1) setImmediate(this.#readSome);
    return true;
  }
}

export class PipelinedBegins {
  #left = MAX_PIPELINED_AT_ONCE;
  #endOfTurn: NodeJS.Immediate | undefined;
  readonly #waiting = new Set<() => void>();
  readonly #nextTurn = () => {
    this.#left = MAX_PIPELINED_AT_ONCE;
    this.#endOfTurn = undefined;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const goOn of waiting) goOn();
  };

  /** True if one more request may begin in this turn. Otherwise `goOn` is called in a later one. */
  mayBegin(goOn: () => void): boolean {
    // `unref`: while no request waits, this alone makes the loop begin no further turn, which would do nothing.
    this.#endOfTurn ??= setImmediate(this.#nextTurn).unref();
    if (this.#left === 0) {
      this.#endOfTurn.ref();
      this.#waiting.add(goOn);
      return false;
    }
    this.#left--;
    return true;
  }
}
