/**
 * When to send, when to send again, and when to stop.
 *
 * Sent again is only what is safe to repeat: GET; POST, which goes under an Idempotency-Key; PUT, which sets what it
 * sets. PATCH (closing an order) only while it is sure that nothing was done. Of all calls together no more are under
 * way than the service last said remain (one, until it has said so), and none is sent before its time: many at once do
 * not collect the refusals that lead to a ban.
 */
import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { Agent } from 'undici';
import { type ClientCode, isPassing, mayBeDone, PetstoreError } from './errors.ts';
import { type Asked, exchange, type Limits, limitsIn, type Reply } from './exchange.ts';

const MAX_TRIES = 6;
const MAX_IN_FLIGHT = 16;
/** A page of 100 animals with the longest names, every character escaped, is well below. */
export const MAX_REPLY_BYTES = 1_048_576;
/** Twelve days; timers of twice that fire at once. */
const MAX_BUDGET_MS = 2 ** 30;
const BACKOFF_BASE_MS = 200;

const REAL = {
  silenceMs: 15_000, // longer, and a try is given up
  now: () => performance.now(),
  // One more, as a timer may fire a fraction early.
  sleep: (ms: number, signal: AbortSignal): Promise<unknown> => delay(Math.ceil(ms) + 1, undefined, { signal }),
};

/** At most `size` hold it at once; the others wait, first come, first served. */
class Semaphore {
  size = 1;
  #held = 0;
  readonly #waiting: (() => void)[] = [];

  async acquire(): Promise<void> {
    if (this.#held < this.size) this.#held++;
    else await new Promise<void>((go) => this.#waiting.push(go));
  }

  release(): void {
    for (this.#held--; this.#held < this.size && this.#waiting.length > 0; this.#held++) this.#waiting.shift()?.();
  }
}

/** What has become of a call so far: told with its error. */
type Story = { tries: number; outcomeUnknown: boolean };

export class Calls {
  limits: Limits | undefined;
  readonly #key: string;
  readonly #budgetMs: number;
  readonly #timing: typeof REAL; // tests have another, by an option that `ClientOptions` does not tell
  readonly #agent: Agent;
  readonly #turns = new Semaphore();
  /** Nothing is sent before this time, for this reason. */
  #hold = { until: 0, code: '', why: '' };
  readonly #closing = new AbortController();

  constructor(key: string, { budgetMs = 90_000, timing }: { budgetMs?: number; timing?: Partial<typeof REAL> }) {
    if (!Number.isInteger(budgetMs) || budgetMs < 1 || budgetMs > MAX_BUDGET_MS) {
      throw new RangeError(`budgetMs must be a whole number from 1 to ${MAX_BUDGET_MS} (got ${budgetMs})`);
    }
    this.#key = key;
    this.#budgetMs = budgetMs;
    this.#timing = { ...REAL, ...timing };
    const { silenceMs } = this.#timing;
    this.#agent = new Agent({ maxResponseSize: MAX_REPLY_BYTES, headersTimeout: silenceMs, bodyTimeout: silenceMs });
  }

  /**
   * What comes of the call, unless its time is over, or it is stopped: then what is under way is told, and not waited
   * for. Not by AbortSignal.any: each one leaves something behind in a signal that lives long.
   */
  async run(asked: Asked, signal: AbortSignal | undefined): Promise<Reply> {
    const story: Story = { tries: 0, outcomeUnknown: false };
    const whole = new AbortController();
    const end = (code: ClientCode, why: string, cause?: unknown) =>
      whole.abort(new PetstoreError(code, why, { cause }));
    const timer = setTimeout(end, this.#budgetMs, 'timeout', `nothing came of it within ${this.#budgetMs} ms`);
    const closing = this.#closing.signal;
    const stop = () =>
      closing.aborted ? end('closed', 'the client is closed') : end('aborted', 'the signal fired', signal?.reason);
    const signals = signal === undefined ? [closing] : [closing, signal];
    for (const one of signals) one.addEventListener('abort', stop);
    setMaxListeners(0, ...signals); // one signal for a thousand calls is no leak, so Node need not warn of it
    try {
      const ended = new Promise<never>((_, reject) => {
        whole.signal.addEventListener('abort', () => reject(whole.signal.reason));
      });
      if (signals.some(({ aborted }) => aborted)) stop();
      return await Promise.race([ended, this.#repeat(asked, story, whole.signal)]);
    } catch (error) {
      throw Object.assign(error as PetstoreError, story, { idempotencyKey: asked.idempotencyKey });
    } finally {
      clearTimeout(timer);
      for (const one of signals) one.removeEventListener('abort', stop);
    }
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#agent.destroy();
  }

  async #repeat(asked: Asked, story: Story, whole: AbortSignal): Promise<Reply> {
    const deadline = this.#timing.now() + this.#budgetMs;
    for (;;) {
      await this.#turns.acquire();
      const reply = await this.#send(asked, story, whole).finally(() => this.#turns.release());
      const { fault } = reply;
      if (fault === undefined) return reply;
      const againAt = fault.status === 429 ? this.#hold.until : this.#timing.now() + this.#waitMs(fault, story.tries);
      const isSafe = asked.method !== 'PATCH' || !mayBeDone(fault);
      if (againAt > deadline || story.tries === MAX_TRIES || !isPassing(fault) || !isSafe) throw fault;
      await this.#timing.sleep(againAt - this.#timing.now(), whole);
    }
  }

  /** One try, where it is time for one. Throws only where the whole call is over. */
  async #send(asked: Asked, story: Story, whole: AbortSignal): Promise<Reply> {
    whole.throwIfAborted();
    const { until, code, why } = this.#hold;
    const retryAfter = Math.ceil((until - this.#timing.now()) / 1_000);
    if (retryAfter > 0) return { headers: {}, fault: new PetstoreError(code, why, { status: 429, retryAfter }) };
    const changes = asked.method !== 'GET';
    const before = story.outcomeUnknown;
    story.tries++;
    story.outcomeUnknown = changes; // nobody knows while it is under way
    const reply = await exchange(this.#agent, this.#key, asked, whole);
    story.outcomeUnknown = before || (changes && reply.fault !== undefined && mayBeDone(reply.fault));
    this.#heed(reply);
    return reply;
  }

  /** What a reply says to the calls after it. */
  #heed({ headers, fault }: Reply): void {
    if (fault?.status === 429) this.#holdFor(this.#waitMs(fault, 1), fault.code, fault.message);
    const limits = limitsIn(headers);
    if (limits === undefined) return;
    this.limits = limits;
    const { minute, day } = limits;
    this.#turns.size = Math.max(1, Math.min(MAX_IN_FLIGHT, minute.remaining, day.remaining));
    for (const { remaining, resetsInSeconds } of [minute, day]) {
      if (remaining === 0) this.#holdFor(resetsInSeconds * 1_000, 'rate_limited', 'no request is left');
    }
  }

  #holdFor(ms: number, code: string, message: string): void {
    const until = this.#timing.now() + ms;
    if (until > this.#hold.until) this.#hold = { until, code, why: `not sent, as was said before: ${message}` };
  }

  /** As told; else exponential, the last quarter random, so that who failed together does not come back together. */
  #waitMs({ retryAfter }: PetstoreError, tries: number): number {
    if (retryAfter !== undefined) return retryAfter * 1_000;
    return (0.75 + 0.25 * Math.random()) * BACKOFF_BASE_MS * 2 ** (tries - 1);
  }
}
