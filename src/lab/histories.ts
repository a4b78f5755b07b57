/** What is remembered of each key: its newest requests, what the checks have counted, its faults. All has a maximum. */
import { Faults } from './faults.ts';
import { type Grade, gradeOf, Tallies } from './grade.ts';
import type { RequestRecord } from './request-record.ts';

export const MAX_REQUESTS = 256;
export const MAX_KEYS = 1_024;
/** Pages that Links have led to. */
export const MAX_LINKS = 4_096;

/** The newest pages that Links have led to, as numbers: a key has many. */
class Links {
  readonly #pages: number[] = [];
  #next = 0;

  add(page: number): void {
    if (this.#pages.includes(page)) return;
    this.#pages[this.#next] = page;
    this.#next = (this.#next + 1) % MAX_LINKS;
  }

  has(page: number): boolean {
    return this.#pages.includes(page);
  }
}

class History {
  readonly links = new Links();
  /** In order of arrival. */
  readonly #requests: RequestRecord[] = [];
  readonly #tallies = new Tallies();

  begin(request: RequestRecord): void {
    if (this.#requests.length === MAX_REQUESTS) {
      // What is forgotten can no longer be judged later.
      if (this.#requests[0].method === 'POST') this.#tallies.settle(this.#requests, request.at);
      this.#requests.shift();
    }
    this.#requests.push(request);
  }

  /** A request has ended: now it can be judged. One that outlived 256 others is beyond that. */
  end(request: RequestRecord): void {
    const place = this.#requests.lastIndexOf(request);
    if (place !== -1) this.#tallies.count(request, this.#requests.slice(0, place));
  }

  /** Those that have ended, oldest first. */
  ended(): RequestRecord[] {
    return this.#requests.filter(({ endedAt }) => Number.isFinite(endedAt));
  }

  /** At a moment of the key's own clock. `openMs`: how long a POST that failed may still come again. */
  grade(now: number): Grade & { openMs: number } {
    const openMs = this.#tallies.settle(this.#requests, now) - now;
    return { ...gradeOf(this.#tallies), openMs };
  }
}

export class KeyState {
  readonly history = new History();
  readonly faults = new Faults();
  /** A ban has begun; the request that brought it is about to be told. */
  hasBanBegun = false;
  /** When the last change of its clock is done. */
  clockTurn: Promise<void> = Promise.resolve();
  /** Where its newest request was sent, as it said. */
  host = 'localhost';
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
