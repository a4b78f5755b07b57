/**
 * A queue with a throttle. The calls of one client stand in one queue, in the order in which they were made; each is
 * sent when it is its time and fewer calls are under way than allowed. A refusal holds all calls that it concerns until
 * the time that it gave. Then they come back one after the other, slowly at first, whether they were sent before or
 * not: calls that were refused together, or waited together, do not return together.
 */
import { PetstoreError } from './errors.ts';

/** The most calls under way, however many requests remain. */
export const MAX_IN_FLIGHT = 16;
/** The most before a reply says how many requests remain; above 1, so that a slow call does not hold up the others. */
const FIRST_IN_FLIGHT = 4;
/** The time between two calls that failed before, and between the first calls after a hold. */
const SPACING_MS = 120;
/** Calls that come back at this distance; as many again come at half of it, then at a third, … */
const RETURNING_AT_A_PACE = 16;
/** … which takes some 5 s: then the rest goes without spacing. */
const MAX_RETURNING = 8 * RETURNING_AT_A_PACE;
/** The most that is added, at random, to a time that the service gave: other clients were given the same. */
const MAX_SPREAD_MS = 1_000;

/** The clock of a client: tests set another. */
export interface Timing {
  now(): number;
  sleep(ms: number, signal: AbortSignal): Promise<unknown>;
}

export interface Turn {
  /** The call's place in the order in which calls were made. */
  readonly place: number;
  readonly operation: string;
  readonly deadline: number; // by the clock of `Timing`, as is the next
  notBefore: number;
  /** The number of times it was sent. */
  tries: number;
  go?(): void;
  refuse?(reason: PetstoreError): void;
}

/**
 * `told`: the time that a refusal gave; `until`: the same with its random addition; `fault`: the refusal. Since then
 * `returned` calls have come back, and the next may at `nextAt`.
 */
type Hold = { told: number; until: number; fault: PetstoreError; returned: number; nextAt: number };

const spacing = (returned: number) => SPACING_MS / (1 + Math.floor(returned / RETURNING_AT_A_PACE));

/** In place of an operation's name: all operations. */
export const ALL = '';

export class Turns {
  size = FIRST_IN_FLIGHT;
  /** How many calls were sent again since the last failure: the more there are, the faster. */
  sentAgain = 0;
  #underWay = 0;
  #nextRetryAt = 0;
  readonly #queue: Turn[] = [];
  readonly #holds = new Map<string, Hold>();
  readonly #timing: Timing;
  /** The one timer, until the first waiting call has its time. */
  #alarm = { at: Number.POSITIVE_INFINITY, ended: new AbortController() };

  constructor(timing: Timing) {
    this.#timing = timing;
  }

  /** Resolves when it is the call's turn, which `release` ends; rejects if a refusal holds it beyond its deadline. */
  take(turn: Turn): Promise<void> {
    return new Promise((go, refuse) => {
      if (this.#queue.length === 0) this.#forgetHolds();
      this.#queue.splice(this.#queue.findLastIndex(({ place }) => place < turn.place) + 1, 0, turn);
      Object.assign(turn, { go, refuse });
      if (!this.#isTooLate(turn) && this.#timeOf(turn) < this.#alarm.at) this.#next();
    });
  }

  /** Takes the call out of the queue, if it is there. */
  leave(turn: Turn): void {
    const at = this.#queue.indexOf(turn);
    if (at !== -1) this.#queue.splice(at, 1);
    if (this.#queue.length === 0) this.#setAlarm(Number.POSITIVE_INFINITY); // a timer would hold the process
  }

  release(): void {
    this.#underWay--;
    this.#next();
  }

  /** Holds the calls of this operation, or of all, for so many milliseconds. */
  hold(operation: string, ms: number, fault: PetstoreError): void {
    const told = this.#timing.now() + ms;
    if (told <= (this.#holds.get(operation)?.told ?? 0)) return;
    const until = told + Math.random() * Math.min(ms, MAX_SPREAD_MS);
    this.#holds.set(operation, { told, until, fault, returned: 0, nextAt: 0 });
    for (const turn of [...this.#queue]) this.#isTooLate(turn);
  }

  /** Refuses a call that is held beyond its deadline. */
  #isTooLate(turn: Turn): boolean {
    const hold = this.#holdsOn(turn).find(({ told }) => told > turn.deadline);
    if (hold === undefined) return false;
    this.leave(turn);
    const { code, status, message } = hold.fault;
    const retryAfter = Math.ceil((hold.told - this.#timing.now()) / 1_000);
    turn.refuse?.(new PetstoreError(code, `not sent, after an earlier refusal: ${message}`, { status, retryAfter }));
    return true;
  }

  #holdsOn({ operation }: Turn): Hold[] {
    const holds = [this.#holds.get(ALL), this.#holds.get(operation)];
    return holds.filter((hold) => hold !== undefined && hold.returned < MAX_RETURNING) as Hold[];
  }

  #forgetHolds(): void {
    for (const [operation, { until }] of this.#holds) if (until <= this.#timing.now()) this.#holds.delete(operation);
  }

  #timeOf(turn: Turn): number {
    const isInHaste = ({ until }: Hold) => turn.deadline < until + MAX_SPREAD_MS; // no time for the random addition
    const times = this.#holdsOn(turn).map((hold) => Math.max(isInHaste(hold) ? hold.told : hold.until, hold.nextAt));
    return Math.max(turn.notBefore, turn.tries > 0 ? this.#nextRetryAt : 0, ...times);
  }

  /** Keeps a distance before the next call under the same holds, and before the next that failed too. */
  #spaceBehind(turn: Turn, now: number): void {
    if (turn.tries > 0) this.#nextRetryAt = now + spacing(this.sentAgain++);
    for (const hold of this.#holdsOn(turn)) {
      hold.nextAt = now + spacing(hold.returned++);
    }
  }

  #next(): void {
    const now = this.#timing.now();
    let alarmAt = Number.POSITIVE_INFINITY;
    for (let at = 0; at < this.#queue.length && this.#underWay < this.size; ) {
      const turn = this.#queue[at];
      const time = this.#timeOf(turn);
      if (time > now) {
        const { nextAt = 0 } = this.#holds.get(ALL) ?? {};
        alarmAt = nextAt > now ? nextAt : Math.min(alarmAt, time);
        if (nextAt > now) break; // no other goes earlier
        at++;
        continue;
      }
      this.#queue.splice(at, 1);
      this.#underWay++;
      this.#spaceBehind(turn, now);
      turn.go?.();
    }
    this.#setAlarm(alarmAt);
  }

  #setAlarm(at: number): void {
    if (at === this.#alarm.at) return;
    this.#alarm.ended.abort();
    const alarm = { at, ended: new AbortController() };
    this.#alarm = alarm;
    if (at === Number.POSITIVE_INFINITY) return;
    const ring = () => {
      if (this.#alarm !== alarm) return;
      alarm.at = Number.POSITIVE_INFINITY;
      this.#next();
    };
    this.#timing.sleep(at - this.#timing.now(), alarm.ended.signal).then(ring, () => {});
  }
}
