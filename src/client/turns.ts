import { Failure } from './errors.ts';

const MAX_IN_FLIGHT = 16;
export const MAX_WAITING_CALLS = 10_000;

/**
 * Every call of a client takes a turn for each try, so that many at once do not collect the refusals that lead to a
 * ban: no more are under way than the service last said remain (one always may, to hear it again), and after a 429
 * none is sent before its time.
 */
export class Turns {
  /** The 429 that ends last: nothing is sent before its `againAt`. */
  refusal: Failure | undefined;
  /** One, until the first reply tells what remains. */
  #allowed = 1;
  #inFlight = 0;
  readonly #waiting = new Set<() => void>();

  async take(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#inFlight < this.#allowed) {
      this.#inFlight++;
      return;
    }
    if (this.#waiting.size >= MAX_WAITING_CALLS) {
      throw new Failure('too_many_calls', `${MAX_WAITING_CALLS} calls are waiting already: wait for some of them`);
    }
    await new Promise<void>((resolve, reject) => {
      const stop = () => {
        this.#waiting.delete(go);
        reject(signal.reason);
      };
      const go = () => {
        signal.removeEventListener('abort', stop);
        resolve();
      };
      this.#waiting.add(go);
      signal.addEventListener('abort', stop);
    });
  }

  giveBack(): void {
    this.#inFlight--;
    for (const go of this.#waiting) {
      if (this.#inFlight >= this.#allowed) break;
      this.#waiting.delete(go);
      this.#inFlight++;
      go();
    }
  }

  /** What a reply said; who is not limited says nothing. */
  remaining(requests = MAX_IN_FLIGHT): void {
    this.#allowed = Math.min(Math.max(requests, 1), MAX_IN_FLIGHT);
  }

  refused(refusal: Failure): void {
    if (this.refusal === undefined || refusal.againAt > this.refusal.againAt) this.refusal = refusal;
  }
}
