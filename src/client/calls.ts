import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { Agent, type Dispatcher } from 'undici';
import { Failure, PetstoreError } from './errors.ts';
import { type Asked, exchange, factsOf, header, type Reply, refusalIn, wholeNumber } from './exchange.ts';
import { Turns } from './turns.ts';

const BACKOFF_BASE_MS = 200;
const MAX_BACKOFF_MS = 10_000;
/** Longer timers than this fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export interface ClientOptions {
  /** Ends in `/v1`, as `petstore serve` prints it. */
  baseUrl: string | URL;
  key: string;
  /** How often one call is sent at most. Default 6. */
  tries?: number;
  /** How long one call may take, waits and all tries together. Default 90,000: it outlives a minute window. */
  budgetMs?: number;
  /** How long one try may take, from connecting to the last byte. Default 15,000. */
  tryTimeoutMs?: number;
  /** Wait for the end of a ban, if the budget allows, instead of throwing at once. Default false. */
  waitOutBans?: boolean;
  /** An undici dispatcher of your own (a proxy, other TLS settings); you close it. */
  dispatcher?: Dispatcher;
  /** Told once about each deprecated operation. Default: `process.emitWarning`. */
  onWarning?: (message: string) => void;
  /** For tests: monotonic milliseconds, the wait (which must end early when the signal fires), 0 <= random < 1. */
  clock?: { now(): number };
  sleep?: (ms: number, signal: AbortSignal) => Promise<unknown>;
  random?: () => number;
}

/** A call as the policy below sees it; `read` throws where the reply is not what it should be. */
export interface Call<T> extends Asked {
  name: string;
  signal?: AbortSignal;
  read(reply: Reply): T;
}

/**
 * When to send again, and when to stop.
 *
 * Every call of this client may be sent again: GET changes nothing; POST goes under an Idempotency-Key; PUT of a
 * category sets what it sets; an order that is closed stays closed. What is lost by that is told, not hidden: an
 * order whose closing got no reply may answer `order_closed` the second time, which is thrown with
 * `outcomeUnknown`.
 *
 * undici's are the connections, their reuse, and HTTP itself. Not its interceptors: docs/decisions.md says why not
 * `retry`; with `dump` and `responseError` error bodies would be lost, which are wanted, bounded and with exact integers.
 */
export class Calls {
  readonly #options: Required<Omit<ClientOptions, 'baseUrl' | 'dispatcher'>>;
  readonly #dispatcher: Dispatcher;
  readonly #own: Agent | undefined;
  readonly #turns = new Turns();
  readonly #closing = new AbortController();
  readonly #warned = new Set<string>();

  constructor(options: ClientOptions) {
    const { key, tries = 6, budgetMs = 90_000, tryTimeoutMs = 15_000, waitOutBans = false } = options;
    const { clock = performance, random = Math.random } = options;
    const { sleep = (ms, signal) => delay(ms, undefined, { signal }) } = options;
    const { onWarning = (message) => process.emitWarning(message, 'DeprecationWarning') } = options;
    for (const [name, value] of Object.entries({ tries, budgetMs, tryTimeoutMs })) {
      if (Number.isInteger(value) && value >= 1 && value <= MAX_TIMER_MS) continue;
      throw new RangeError(`${name} is to be a whole number from 1 to ${MAX_TIMER_MS}, not ${value}`);
    }
    this.#options = { key, tries, budgetMs, tryTimeoutMs, waitOutBans, clock, random, sleep, onWarning };
    this.#own = options.dispatcher ? undefined : new Agent();
    this.#dispatcher = options.dispatcher ?? (this.#own as Agent);
  }

  async run<T>(call: Call<T>): Promise<T> {
    const { budgetMs, clock } = this.#options;
    const late = `nothing came of it within the ${budgetMs} ms of the call`;
    const limit = limited(budgetMs, late, call.signal, this.#closing.signal);
    const deadline = clock.now() + budgetMs;
    let tries = 0;
    let unclear = false;
    try {
      for (;;) {
        await this.#turn(limit.signal, deadline);
        tries++;
        const result = await this.#try(call, tries, limit.signal);
        if (!(result instanceof Failure)) return result;
        unclear ||= result.facts.unclear === true && call.method !== 'GET';
        if (tries === this.#options.tries || !isWorthWaiting(result, deadline)) throw result;
        await this.#sleepUntil(result.againAt, limit.signal);
      }
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      throw new PetstoreError(error, tries, unclear, call.idempotencyKey);
    } finally {
      limit.end();
    }
  }

  async close(): Promise<void> {
    this.#closing.abort(new Failure('closed', 'the client is closed', { unclear: true }));
    await this.#own?.destroy();
  }

  /** Comes back with a turn, at a time when sending is allowed. */
  async #turn(signal: AbortSignal, deadline: number): Promise<void> {
    for (;;) {
      await this.#turns.take(signal);
      const { refusal } = this.#turns;
      const now = this.#options.clock.now();
      if (refusal === undefined || refusal.againAt <= now) return;
      this.#turns.giveBack();
      if (!isWorthWaiting(refusal, deadline)) {
        const facts = { ...refusal.facts, retryAfter: Math.ceil((refusal.againAt - now) / 1_000) };
        throw new Failure(refusal.code, `not sent, as an earlier reply said: ${refusal.message}`, facts);
      }
      await this.#sleepUntil(refusal.againAt, signal);
    }
  }

  async #try<T>(call: Call<T>, tries: number, whole: AbortSignal): Promise<T | Failure> {
    try {
      return await this.#send(call, whole);
    } catch (failure) {
      if (!(failure instanceof Failure)) throw failure;
      const { status, retryAfter } = failure.facts;
      const waitMs = retryAfter === undefined ? this.#backoffMs(tries) : retryAfter * 1_000;
      failure.againAt = this.#options.clock.now() + waitMs;
      if (status === 429) this.#turns.refused(failure);
      return failure;
    } finally {
      this.#turns.giveBack();
    }
  }

  async #send<T>(call: Call<T>, whole: AbortSignal): Promise<T> {
    const { key, tryTimeoutMs, waitOutBans, onWarning } = this.#options;
    const limit = limited(tryTimeoutMs, `no whole reply within ${tryTimeoutMs} ms`, whole);
    const reply = await exchange(this.#dispatcher, key, call, limit.signal).finally(limit.end);
    this.#turns.remaining(wholeNumber(header(reply, 'x-ratelimit-remaining')));
    if (header(reply, 'deprecation') !== undefined && !this.#warned.has(call.name)) {
      this.#warned.add(call.name);
      onWarning(`${call.name} is deprecated; it ends on ${header(reply, 'sunset') ?? 'a day not named'}`);
    }
    const refusal = refusalIn(reply, waitOutBans);
    if (refusal !== undefined) throw refusal;
    try {
      return call.read(reply);
    } catch (cause) {
      const said = `not a reply of ${call.name}: ${(cause as Error).message}`;
      throw new Failure('bad_reply', said, { ...factsOf(reply), cause, unclear: true });
    }
  }

  /** Exponential with full jitter: callers that failed together do not come back together. */
  #backoffMs(tries: number): number {
    return this.#options.random() * Math.min(MAX_BACKOFF_MS, BACKOFF_BASE_MS * 2 ** (tries - 1));
  }

  /** Asks the clock again after the wait, because a timer may fire a fraction early. */
  async #sleepUntil(time: number, signal: AbortSignal): Promise<void> {
    const { clock, sleep } = this.#options;
    for (let leftMs = time - clock.now(); leftMs > 0; leftMs = time - clock.now()) {
      try {
        await sleep(Math.ceil(leftMs), signal);
      } finally {
        signal.throwIfAborted();
      }
    }
  }
}

const isWorthWaiting = ({ facts, againAt }: Failure, deadline: number): boolean =>
  facts.again === true && againAt <= deadline;

/**
 * A signal that fires when the time is over or one of the others fires, with a Failure for its reason; `end` is for when
 * it is no longer needed. Not AbortSignal.any: on Node 20 each one leaves something behind in a signal that lives long.
 */
function limited(ms: number, late: string, ...others: (AbortSignal | undefined)[]) {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(new Failure('timeout', late, { again: true, unclear: true })), ms);
  const release = [() => clearTimeout(timer)];
  for (const other of others) {
    if (other === undefined) continue;
    const stop = () => {
      const cause = other.reason; // a Failure already, but for the signal that the caller gave
      const aborted = new Failure('aborted', 'the signal was aborted', { cause, unclear: true });
      controller.abort(cause instanceof Failure ? cause : aborted);
    };
    if (other.aborted) stop();
    // One signal for a thousand calls is no leak, so Node need not warn of it.
    setMaxListeners(0, other);
    other.addEventListener('abort', stop);
    release.push(() => other.removeEventListener('abort', stop));
  }
  return { signal: controller.signal, end: () => release.forEach((undo) => void undo()) };
}
