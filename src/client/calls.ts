import { setTimeout as delay } from 'node:timers/promises';
import { Agent, type Dispatcher } from 'undici';
import { Failure, PetstoreError } from './errors.ts';
import { type Asked, exchange, type Reply } from './exchange.ts';
import { Gate } from './gate.ts';
import { Span } from './span.ts';
import type { ClientOptions } from './types.ts';
import { brokenOff, factsOf, refusalIn, wholeNumber } from './verdicts.ts';

const BACKOFF_BASE_MS = 200;
const MAX_BACKOFF_MS = 10_000;
/** Longer timers than this fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** A call as the policy below sees it; `read` throws where the reply is not what it should be. */
export interface Call<T> extends Omit<Asked, 'headers'> {
  name: string;
  idempotencyKey?: string;
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
 * Not undici's retry interceptor: it waits `maxTimeout` where Retry-After says more, so it sends too early; it sees
 * status and headers but not the body, where `key_banned` and `outcome_unknown` stand; it resumes half a reply with
 * a Range that this service does not serve; and its budget is a number of tries, not a time. Giving it a `retry`
 * function of our own would mend the waits only. Nor `dump` and `responseError`: error bodies are wanted, bounded
 * and with exact integers. undici's are the connections, their reuse, and HTTP itself.
 */
export class Calls {
  readonly #options: Required<Omit<ClientOptions, 'baseUrl' | 'dispatcher'>>;
  readonly #dispatcher: Dispatcher;
  readonly #own: Agent | undefined;
  readonly #gate = new Gate();
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
    const span = new Span(budgetMs, `nothing came of it within the ${budgetMs} ms of the call`)
      .with(call.signal, (cause) => new Failure('aborted', 'the signal was aborted', { cause, unclear: true }))
      .with(this.#closing.signal);
    const deadline = clock.now() + budgetMs;
    let tries = 0;
    let unclear = false;
    try {
      for (;;) {
        await this.#turn(span.signal, deadline);
        tries++;
        const result = await this.#try(call, tries, span.signal);
        if (!(result instanceof Failure)) return result;
        unclear ||= result.facts.unclear === true && call.method !== 'GET';
        if (!result.facts.again || tries === this.#options.tries || result.againAt > deadline) throw result;
        await this.#sleepUntil(result.againAt, span.signal);
      }
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      throw new PetstoreError(error, tries, unclear, call.idempotencyKey);
    } finally {
      span.end();
    }
  }

  async close(): Promise<void> {
    this.#closing.abort(new Failure('closed', 'the client is closed', { unclear: true }));
    await this.#own?.destroy();
  }

  /** Comes back with a place in the gate, at a time when sending is allowed. */
  async #turn(signal: AbortSignal, deadline: number): Promise<void> {
    for (;;) {
      await this.#gate.enter(signal);
      const { closedUntil, closedBy } = this.#gate;
      const leftMs = closedUntil - this.#options.clock.now();
      if (leftMs <= 0) return;
      this.#gate.leave();
      if (closedBy !== undefined && !(closedBy.facts.again && closedUntil <= deadline)) {
        const facts = { ...closedBy.facts, retryAfter: Math.ceil(leftMs / 1_000) };
        throw new Failure(closedBy.code, `not sent, as an earlier reply said: ${closedBy.message}`, facts);
      }
      await this.#sleepUntil(closedUntil, signal);
    }
  }

  async #try<T>(call: Call<T>, tries: number, whole: AbortSignal): Promise<T | Failure> {
    try {
      const reply = await this.#send(call, whole);
      const result = reply instanceof Failure ? reply : this.#judge(call, reply);
      if (result instanceof Failure) {
        const { status, retryAfter } = result.facts;
        result.againAt =
          this.#options.clock.now() + (retryAfter === undefined ? this.#backoffMs(tries) : retryAfter * 1_000);
        if (status === 429) this.#gate.close(result.againAt, result);
      }
      return result;
    } finally {
      this.#gate.leave();
    }
  }

  async #send(call: Call<unknown>, whole: AbortSignal): Promise<Reply | Failure> {
    const { key, tryTimeoutMs } = this.#options;
    const headers: Record<string, string> = { authorization: `Bearer ${key}`, accept: 'application/json' };
    if (call.body !== undefined) headers['content-type'] = 'application/json';
    if (call.idempotencyKey !== undefined) headers['idempotency-key'] = call.idempotencyKey;
    const span = new Span(tryTimeoutMs, `no whole reply within ${tryTimeoutMs} ms`).with(whole);
    try {
      return await exchange(this.#dispatcher, { ...call, headers }, span.signal);
    } catch (error) {
      if (span.signal.aborted) return span.signal.reason;
      return error instanceof Failure ? error : brokenOff(error as Error & { code?: string });
    } finally {
      span.end();
    }
  }

  #judge<T>(call: Call<T>, reply: Reply): T | Failure {
    const { headers } = reply;
    this.#gate.remaining(wholeNumber(headers.get('x-ratelimit-remaining')));
    if (headers.has('deprecation') && !this.#warned.has(call.name)) {
      this.#warned.add(call.name);
      this.#options.onWarning(`${call.name} is deprecated; it ends on ${headers.get('sunset') ?? 'a day not named'}`);
    }
    const refusal = refusalIn(reply, this.#options.waitOutBans);
    if (refusal !== undefined) return refusal;
    try {
      return call.read(reply);
    } catch (cause) {
      const flaw = (cause as Error).message;
      return new Failure('bad_reply', `not a reply of ${call.name}: ${flaw}`, {
        ...factsOf(reply),
        cause,
        unclear: true,
      });
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
