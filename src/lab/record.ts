/** What is remembered of each key: its newest requests, what the checks have counted, its faults. All has a maximum. */
import { Faults } from './faults.ts';
import { count, type Grade, gradeOf, newTallies } from './grade.ts';
import type { Recorded } from './recorded.ts';

export const MAX_REQUESTS = 256;
export const MAX_KEYS = 1_024;

class KeyRecord {
  /** In order of arrival. */
  readonly #requests: Recorded[] = [];
  readonly #tallies = newTallies();

  begin(request: Recorded): void {
    if (this.#requests.length === MAX_REQUESTS) this.#requests.shift();
    this.#requests.push(request);
  }

  /** A request has ended: now it can be judged. One that outlived 256 others is beyond that. */
  end(request: Recorded): void {
    const place = this.#requests.lastIndexOf(request);
    if (place !== -1) count(this.#tallies, request, this.#requests.slice(0, place));
  }

  /** Those that have ended, newest first. */
  newest(limit: number): Recorded[] {
    const ended = this.#requests.filter(({ endedAt }) => Number.isFinite(endedAt));
    return ended.toReversed().slice(0, limit);
  }

  grade(): Grade {
    return gradeOf(this.#tallies);
  }
}

export class KeyState {
  readonly record = new KeyRecord();
  readonly faults = new Faults();
  /** A ban has begun; the request that brought it is about to be told. */
  hasBanBegun = false;
  /** When the last change of its clock is done. */
  clockTurn: Promise<void> = Promise.resolve();
}

/** Of too many keys, the one that was silent for longest is forgotten. */
export class KeyStates {
  readonly #states = new Map<string, KeyState>();

  of(id: string): KeyState {
    const state = this.#states.get(id) ?? new KeyState();
    this.#states.delete(id); // so that it stands last
    if (this.#states.size === MAX_KEYS) this.#states.delete(this.#states.keys().next().value as string);
    this.#states.set(id, state);
    return state;
  }

  forget(id: string): void {
    this.#states.delete(id);
  }
}
