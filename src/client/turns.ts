/**
 * Whose turn it is. The calls of one client stand in one queue, in the order in which they were made; each goes when it
 * is its time and fewer are under way than may be. A refusal holds all calls that it concerns until the time that it
 * told, and those that failed come back one after the other: many that were refused together do not return together.
 */
import { PetstoreError } from './errors.ts';

/** The most that are under way, whatever remains. */
export const MAX_IN_FLIGHT = 16;
/** Until the service has said how many requests remain: so one slow call does not hold up all others. */
const FIRST_IN_FLIGHT = 4;
/** Between two calls that failed before. */
const RETRY_SPACING_MS = 120;
/** What is added to a time that was told is up to this, at random: other clients were told the same. */
const MAX_SPREAD_MS = 1_000;

/** How time passes: tests have another. */
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
  /** How often it was sent. */
  tries: number;
  go?(): void;
  refuse?(reason: PetstoreError): void;
}

/** `told`: the time that a refusal named; `until`: with what was added to it; `fault`: what it said. */
type Hold = { told: number; until: number; fault: PetstoreError };

/** In place of an operation's name: it holds all. */
export const ALL = '';

export class Turns {
  size = FIRST_IN_FLIGHT;
  #underWay = 0;
  #lastRetryAt = Number.NEGATIVE_INFINITY;
  readonly #queue: Turn[] = [];
  readonly #holds = new Map<string, Hold>();
  readonly #timing: Timing;
  /** The one sleep, until the first that waits for its time has it. */
  #alarm = { at: Number.POSITIVE_INFINITY, ended: new AbortController() };

  constructor(timing: Timing) {
    this.#timing = timing;
  }

  /** Resolves when it is the call's turn, which `release` ends; rejects with what holds it beyond its deadline. */
  take(turn: Turn): Promise<void> {
    return new Promise((go, refuse) => {
      this.#queue.splice(this.#queue.findLastIndex(({ place }) => place < turn.place) + 1, 0, turn);
      Object.assign(turn, { go, refuse });
      if (!this.#isTooLate(turn) && this.#timeOf(turn) < this.#alarm.at) this.#next();
    });
  }

  /** It waits no more, if it did. */
  leave(turn: Turn): void {
    const at = this.#queue.indexOf(turn);
    if (at !== -1) this.#queue.splice(at, 1);
  }

  release(): void {
    this.#underWay--;
    this.#next();
  }

  /** Nothing of this operation, or of all, is sent before so many milliseconds are over. */
  hold(operation: string, ms: number, fault: PetstoreError): void {
    const told = this.#timing.now() + ms;
    if (told <= (this.#holds.get(operation)?.told ?? 0)) return;
    this.#holds.set(operation, { told, until: told + Math.random() * Math.min(ms, MAX_SPREAD_MS), fault });
    for (const turn of [...this.#queue]) this.#isTooLate(turn);
  }

  /** Refuses what is held for too long. */
  #isTooLate(turn: Turn): boolean {
    const hold = this.#holdsOn(turn).find(({ told }) => told > turn.deadline);
    if (hold === undefined) return false;
    this.leave(turn);
    const { code, status, message } = hold.fault;
    const retryAfter = Math.ceil((hold.told - this.#timing.now()) / 1_000);
    turn.refuse?.(new PetstoreError(code, `not sent, as was said before: ${message}`, { status, retryAfter }));
    return true;
  }

  #holdsOn({ operation }: Turn): Hold[] {
    return [this.#holds.get(ALL), this.#holds.get(operation)].filter((hold) => hold !== undefined);
  }

  #timeOf(turn: Turn): number {
    const isInHaste = ({ until }: Hold) => turn.deadline < until + MAX_SPREAD_MS; // no time for more than was told
    const times = this.#holdsOn(turn).map((hold) => (isInHaste(hold) ? hold.told : hold.until));
    return Math.max(turn.notBefore, ...times);
  }

  #next(): void {
    const now = this.#timing.now();
    let alarmAt = Number.POSITIVE_INFINITY;
    for (let at = 0; at < this.#queue.length && this.#underWay < this.size; ) {
      const turn = this.#queue[at];
      const time = this.#timeOf(turn);
      const spaced = turn.tries > 0 ? Math.max(time, this.#lastRetryAt + RETRY_SPACING_MS) : time;
      if (spaced <= now) {
        this.#queue.splice(at, 1);
        this.#underWay++;
        if (turn.tries > 0) this.#lastRetryAt = now;
        turn.go?.();
        continue;
      }
      alarmAt = Math.min(alarmAt, spaced);
      if (time <= now) break; // nobody overtakes those that come back one by one
      at++;
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
