/**
 * When to send again, and when to stop.
 *
 * Only requests that are safe to repeat are sent again: GET; POST, under its Idempotency-Key; PUT, which is idempotent;
 * PATCH (closing an order) only if it is certain that nothing was done. `turns.ts` decides when it is a call's turn.
 */
import { type ClientCode, isPassing, mayBeDone, PetstoreError } from './errors.ts';
import type { Try } from './exchange.ts';
import { type Asked, endOf, exchange, type Fetch, type Limits, limitsIn, type Reply, requestIdIn } from './exchange.ts';
import type { CallOptions, ClientOptions } from './options.ts';
import { ALL, MAX_IN_FLIGHT, type Timing, type Turn, Turns } from './turns.ts';

const BACKOFF_BASE_MS = 200;
/** The service asks for no longer wait than a day. A longer one, say of a proxy, holds for the budget of one call. */
const MAX_TOLD_MS = 25 * 3_600_000;

/** One more millisecond, as a timer may fire a fraction early. Beyond 2^31 it would fire at once. */
function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((wake) => {
    const timer = setTimeout(wake, Math.min(Math.ceil(ms) + 1, 2 ** 31 - 1));
    signal.addEventListener('abort', () => clearTimeout(timer));
  });
}
const REAL: Timing = { now: () => performance.now(), sleep };

/** A call on its way: the request, and its state so far. */
type Ongoing = Try & Turn & { budgetMs: number; retries: number; outcomeUnknown: boolean };

const nothing = (): Reply => ({ status: 0, headers: new Headers() });

export type Done = { reply: Reply; tries: number };
type CallsOptions = Omit<ClientOptions, 'baseUrl' | 'key' | 'headers'> & {
  fetch: Fetch;
  timing: Partial<Timing> | undefined;
};

export class Calls {
  limits: Limits | undefined;
  readonly #options: CallsOptions;
  readonly #timing: Timing;
  readonly #turns: Turns;
  #calls = 0;
  /** A function to end it, for each call that is not over. */
  readonly #open = new Set<(code: ClientCode, why: string) => void>();
  #isClosed = false;

  constructor(options: CallsOptions) {
    this.#options = options;
    this.#timing = { ...REAL, ...options.timing };
    this.#turns = new Turns(this.#timing);
  }

  /**
   * The result of the call. If its time is over or it is stopped, the try under way is aborted, and not waited for.
   * AbortSignal.any is not used: each use would leave something behind in a signal that lives long.
   */
  async run(asked: Asked, { signal, ...own }: CallOptions): Promise<Done> {
    const { budgetMs = 90_000, timeoutMs = 15_000, retries = 5 } = { ...this.#options, ...own };
    const notBefore = this.#timing.now();
    const turn = { place: this.#calls++, deadline: notBefore + budgetMs, notBefore, tries: 0 };
    const call: Ongoing = { ...asked, ...turn, seen: nothing(), budgetMs, timeoutMs, retries, outcomeUnknown: false };
    const whole = new AbortController();
    const end = (code: ClientCode, why: string, cause?: unknown) =>
      whole.abort(new PetstoreError(code, why, { cause }));
    const ended = endOf(whole.signal);
    const timer = setTimeout(end, budgetMs, 'timeout', `no result within ${budgetMs} ms`);
    const forget = signal && onAbort(signal, () => end('aborted', 'the signal fired', signal.reason));
    this.#open.add(end);
    try {
      if (this.#isClosed) end('closed', 'the client is closed');
      return await Promise.race([ended, this.#repeat(call, whole.signal)]);
    } catch (error) {
      const { tries, outcomeUnknown, seen } = call;
      const idempotencyKey = asked.headers.get('idempotency-key') ?? undefined;
      const status = seen.status || (error as PetstoreError).status;
      const told = { status, requestId: requestIdIn(seen.headers), tries, outcomeUnknown, idempotencyKey };
      throw Object.assign(error as object, told);
    } finally {
      clearTimeout(timer);
      forget?.();
      this.#turns.leave(call);
      this.#open.delete(end);
    }
  }

  close(): void {
    this.#isClosed = true;
    for (const end of this.#open) end('closed', 'the client is closed');
  }

  async #repeat(call: Ongoing, whole: AbortSignal): Promise<Done> {
    for (;;) {
      whole.throwIfAborted();
      await this.#turns.take(call);
      const sentAt = this.#timing.now();
      const reply = await this.#send(call, whole).finally(() => this.#turns.release());
      const { fault } = reply;
      const waitMs = fault && waitFor(fault, call.tries);
      call.notBefore = this.#timing.now() + (waitMs ?? 0);
      const isSafe = fault !== undefined && isPassing(fault) && (call.method !== 'PATCH' || !mayBeDone(fault));
      const isOver = !isSafe || call.notBefore > call.deadline || call.tries > call.retries;
      this.#tell(call, reply, this.#timing.now() - sentAt, isOver ? undefined : waitMs);
      if (fault === undefined) return { reply, tries: call.tries };
      if (isOver) throw fault;
    }
  }

  /** One try. Throws only if the whole call is over. */
  async #send(call: Ongoing, whole: AbortSignal): Promise<Reply> {
    whole.throwIfAborted();
    const changes = call.method !== 'GET';
    const before = call.outcomeUnknown;
    call.tries++;
    call.outcomeUnknown = changes; // unknown while under way, and for a caller that stops the call in its hook
    call.seen = nothing();
    const reply = await exchange(this.#options.fetch, call, whole);
    call.outcomeUnknown = before || (changes && (reply.fault === undefined || mayBeDone(reply.fault)));
    this.#heed(call, reply);
    return reply;
  }

  /** Holds later calls as a reply demands: after a 429 all of them, after another refusal those of its operation. */
  #heed({ operation, tries, budgetMs }: Ongoing, { headers, fault }: Reply): void {
    const hold = (concerned: string, ms: number, fault: PetstoreError) =>
      this.#turns.hold(concerned, ms > MAX_TOLD_MS ? budgetMs : ms, fault);
    if (fault?.status === 429) hold(ALL, waitFor(fault, tries), fault);
    else if (fault?.retryAfter) hold(operation, waitFor(fault, tries), fault);
    if (fault && isPassing(fault)) this.#turns.sentAgain = 0;
    const limits = limitsIn(headers);
    if (limits === undefined && this.limits !== undefined) return;
    this.limits = limits;
    const windows = limits === undefined ? [] : [limits.minute, limits.day];
    // A proxy may drop the headers of the two windows, or all headers about limits.
    const told = Number(headers.get('x-ratelimit-remaining') ?? MAX_IN_FLIGHT);
    const least = Math.min(MAX_IN_FLIGHT, ...(limits ? windows.map(({ remaining }) => remaining) : [told || 0]));
    this.#turns.size = Math.max(1, least);
    const spent = new PetstoreError('rate_limited', 'no request is left', { status: 429 });
    for (const { remaining, resetsInSeconds } of windows)
      if (remaining === 0) hold(ALL, resetsInSeconds * 1_000, spent);
  }

  #tell({ operation, method, tries }: Ongoing, { status, headers, fault }: Reply, ms: number, waitMs?: number): void {
    const requestId = requestIdIn(headers);
    const told = { operation, method, tries, status, code: fault?.code, requestId, ms, waitMs, limits: this.limits };
    try {
      this.#options.onExchange?.(told);
    } catch (error) {
      // An error of the caller's function is not the call's: it becomes an uncaught error.
      queueMicrotask(() => {
        throw error;
      });
    }
  }
}

/** Retry-After; else exponential, the last quarter random, so that calls that failed together return apart. */
function waitFor({ retryAfter }: PetstoreError, tries: number): number {
  if (retryAfter) return retryAfter * 1_000;
  return (0.75 + 0.25 * Math.random()) * BACKOFF_BASE_MS * 2 ** (tries - 1);
}

const stopsOf = new WeakMap<AbortSignal, Set<() => void>>();
function stopAll(this: AbortSignal): void {
  for (const stop of stopsOf.get(this) ?? []) stop();
}

/** Returns a function to undo it. A signal gets one listener for all its calls: Node warns of more than ten. */
function onAbort(signal: AbortSignal, stop: () => void): () => void {
  const stops = stopsOf.get(signal) ?? new Set();
  stopsOf.set(signal, stops.add(stop));
  signal.addEventListener('abort', stopAll);
  if (signal.aborted) stop();
  return () => {
    stops.delete(stop);
    if (stops.size === 0) signal.removeEventListener('abort', stopAll);
  };
}
