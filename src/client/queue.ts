/**
 * The queue of a client's calls, in the order in which they were made.
 *
 * - A refusal holds all calls until one moment: the time that it named, and up to a second more, at random, because
 *   other clients were given the same time.
 * - The number of requests in flight is bounded by a window that grows by one with each success and halves with each
 *   failure (AIMD, as TCP does), and by what the newest reply says remains of the limits. So calls that failed together
 *   do not return together.
 */
import { PetstoreError } from './errors.ts';

export const MAX_IN_FLIGHT = 16;
/** Above 1, so that a slow call does not hold up the others. */
const FIRST_WINDOW = 4;
const MAX_JITTER_MS = 1_000;
/** The service asks for no longer wait. A longer one comes from elsewhere, and must not stop a client for good. */
const MAX_HOLD_MS = 86_400_000;

/** The clock of a client: tests set another. */
export interface Timing {
  now(): number;
  sleep(ms: number, signal: AbortSignal): Promise<unknown>;
}

/** What the queue knows of a call. Times are those of `Timing`. */
export interface Queued {
  /** The call's number: calls were made in this order. */
  readonly order: number;
  readonly deadline: number;
  /** Of a call that failed: the end of its own wait. */
  notBefore: number;
}

type Waiting = { call: Queued; start: () => void; refuse: (error: PetstoreError) => void };

export class Queue {
  /** The number of requests that the service's limits still admit, by its newest reply. */
  remaining = MAX_IN_FLIGHT;
  #window = FIRST_WINDOW;
  #inFlight = 0;
  readonly #waiting: Waiting[] = [];
  #hold = { until: 0, reason: new PetstoreError('rate_limited', '') };
  readonly #jitter = Math.random();
  readonly #timing: Timing;
  /** The one timer: the earliest moment at which a waiting call may go. */
  #alarm = { at: Number.POSITIVE_INFINITY, cancel: new AbortController() };

  constructor(timing: Timing) {
    this.#timing = timing;
  }

  /** Resolves when the call may be sent, which `release` ends; rejects if it is held beyond its deadline. */
  enter(call: Queued): Promise<void> {
    return new Promise((start, refuse) => {
      const at = this.#waiting.findLastIndex((other) => other.call.order < call.order) + 1;
      this.#waiting.splice(at, 0, { call, start, refuse });
      this.#refuseIfTooLate(this.#waiting[at]);
      this.#next();
    });
  }

  /** Takes the call out of the queue, if it is there. */
  leave(call: Queued): void {
    const at = this.#waiting.findIndex((waiting) => waiting.call === call);
    if (at !== -1) this.#waiting.splice(at, 1);
    if (this.#waiting.length === 0) this.#wakeAt(Number.POSITIVE_INFINITY); // a timer would keep the process running
  }

  /** A request is over: with a reply, or with a failure that may pass. */
  release(isFailure: boolean): void {
    this.#inFlight--;
    this.#window = isFailure ? Math.ceil(this.#window / 2) : Math.min(this.#window + 1, MAX_IN_FLIGHT);
    this.#next();
  }

  /** Holds all calls for so long. Those whose time is over before are refused at once, with the reason. */
  hold(ms: number, reason: PetstoreError): void {
    const wait = Math.min(ms, MAX_HOLD_MS);
    const until = this.#timing.now() + wait + this.#jitter * Math.min(wait, MAX_JITTER_MS);
    if (until <= this.#hold.until) return;
    this.#hold = { until, reason };
    for (const waiting of [...this.#waiting]) this.#refuseIfTooLate(waiting);
  }

  #refuseIfTooLate({ call, refuse }: Waiting): void {
    const { until, reason } = this.#hold;
    if (until <= call.deadline) return;
    this.leave(call);
    const { code, status, message } = reason;
    const retryAfter = Math.ceil((until - this.#timing.now()) / 1_000);
    const why = `its wait of ${retryAfter} s does not fit into what is left of budgetMs, since an earlier reply said`;
    refuse(new PetstoreError(code, `not sent: ${why}: ${message}`, { status, retryAfter }));
  }

  #next(): void {
    const now = this.#timing.now();
    const { until } = this.#hold;
    if (until > now && this.#waiting.length > 0) this.#wakeAt(until);
    if (until > now) return;
    const limit = Math.max(1, Math.min(this.#window, this.remaining));
    let wakeAt = Number.POSITIVE_INFINITY;
    for (let at = 0; at < this.#waiting.length && this.#inFlight < limit; ) {
      const { call, start } = this.#waiting[at];
      if (call.notBefore > now) {
        wakeAt = Math.min(wakeAt, call.notBefore);
        at++;
        continue;
      }
      this.#waiting.splice(at, 1);
      this.#inFlight++;
      start();
    }
    this.#wakeAt(wakeAt);
  }

  #wakeAt(at: number): void {
    if (at === this.#alarm.at) return;
    this.#alarm.cancel.abort();
    const alarm = { at, cancel: new AbortController() };
    this.#alarm = alarm;
    if (at === Number.POSITIVE_INFINITY) return;
    const ring = () => {
      if (this.#alarm !== alarm) return;
      alarm.at = Number.POSITIVE_INFINITY;
      this.#next();
    };
    this.#timing.sleep(at - this.#timing.now(), alarm.cancel.signal).then(ring, () => {});
  }
}
