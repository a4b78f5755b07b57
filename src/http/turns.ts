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

/** When so many pipelined requests were begun in one turn, no further connection begins any in it. */
const MAX_PIPELINED_AT_ONCE = 512;
/** A request on a connection that has shown no valid key counts as so many: a refusal costs more than most replies. */
const STRANGER_COUNTS = 32;

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
    for (const goOn of this.#waiting) {
      if (this.#left <= 0) break;
      this.#waiting.delete(goOn);
      goOn();
    }
    if (this.#waiting.size > 0) (this.#endOfTurn ??= setImmediate(this.#nextTurn)).ref();
  };

  /**
   * True if a connection may begin in this turn what waits on it: all of it, since node:http sends replies that are
   * made together in one write. Otherwise `goOn` is called in a later turn.
   */
  mayBegin(goOn: () => void): boolean {
    // `unref`: while no request waits there is nothing to do in a next turn, so the loop need not begin one for it.
    this.#endOfTurn ??= setImmediate(this.#nextTurn).unref();
    if (this.#left <= 0) {
      this.#endOfTurn.ref();
      this.#waiting.add(goOn);
      return false;
    }
    return true;
  }

  count(hasShownKey: boolean): void {
    this.#left -= hasShownKey ? 1 : STRANGER_COUNTS;
  }
}
