import { once, setMaxListeners } from 'node:events';
import { PetstoreError } from './errors.ts';

/** At most `size` hold it at once; the others wait, first come, first served. */
export class Semaphore {
  size = 1;
  #held = 0;
  readonly #waiting: (() => void)[] = [];

  async take(): Promise<void> {
    if (this.#held < this.size) this.#held++;
    else await new Promise<void>((go) => this.#waiting.push(go));
  }

  release(): void {
    for (this.#held--; this.#held < this.size && this.#waiting.length > 0; this.#held++) this.#waiting.shift()?.();
  }
}

/**
 * What comes of the work, unless the time is over or one of the signals fires before: then the work is told by its own
 * signal, and not waited for. Not AbortSignal.any: each one leaves something behind in a signal that lives long.
 */
export async function within<T>(
  ms: number,
  signals: AbortSignal[],
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const inner = new AbortController();
  const late = new PetstoreError('timeout', `nothing came of it within the ${ms} ms of the call`);
  const timer = setTimeout(() => inner.abort(late), ms);
  const stop = ({ target }: Pick<Event, 'target'>) => {
    const { reason } = target as AbortSignal;
    const aborted = new PetstoreError('aborted', 'the signal was aborted', { cause: reason });
    inner.abort(reason instanceof PetstoreError ? reason : aborted);
  };
  for (const signal of signals) {
    setMaxListeners(0, signal); // one signal for a thousand calls is no leak, so Node need not warn of it
    signal.addEventListener('abort', stop);
    if (signal.aborted) stop({ target: signal });
  }
  try {
    inner.signal.throwIfAborted();
    const ended = once(inner.signal, 'abort').then(() => Promise.reject(inner.signal.reason));
    return await Promise.race([work(inner.signal), ended]);
  } finally {
    clearTimeout(timer);
    for (const signal of signals) signal.removeEventListener('abort', stop);
  }
}
