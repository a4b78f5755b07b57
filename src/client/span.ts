import { setMaxListeners } from 'node:events';
import { Failure } from './errors.ts';

/**
 * A piece of work that ends early for whichever reason comes first; the reason is always a Failure.
 * Not AbortSignal.any: on Node 20 each one leaves something behind in a signal that lives long.
 */
export class Span {
  readonly #controller = new AbortController();
  readonly #timer: NodeJS.Timeout;
  readonly #release: (() => void)[] = [];

  constructor(ms: number, late: string) {
    this.#timer = setTimeout(
      () => this.#controller.abort(new Failure('timeout', late, { again: true, unclear: true })),
      ms,
    );
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Ends with another signal; the reason given is that signal's own, or the one made of it. */
  with(other: AbortSignal | undefined, reason: (theirs: unknown) => unknown = (theirs) => theirs): this {
    if (other === undefined) return this;
    const stop = () => this.#controller.abort(reason(other.reason));
    if (other.aborted) stop();
    // One signal for a thousand calls is no leak, so Node need not warn of it.
    setMaxListeners(0, other);
    other.addEventListener('abort', stop);
    this.#release.push(() => other.removeEventListener('abort', stop));
    return this;
  }

  end(): void {
    clearTimeout(this.#timer);
    for (const release of this.#release) release();
  }
}
