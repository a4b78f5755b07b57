/** The lab's memory of each key: its newest requests, the counts of the checks, its faults. All have a maximum. */
import { Faults } from './faults.ts';
import { type Grade, gradeOf, Tallies } from './grade.ts';
import type { RequestRecord } from './request-record.ts';

export const MAX_REQUESTS = 256;
const MAX_POSTS = 64;
export const MAX_KEYS = 1_024;
/** Pages named by Links, a key. */
export const MAX_LINKS = 4_096;

/** The newest pages named by Links; as numbers, to save memory, since a key has many. */
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
  /**
   * In order of arrival: first those POSTs that are older than the newest requests, then these. A failed POST may still
   * come again, even after many other requests.
   */
  readonly #known: RequestRecord[] = [];
  #olderPosts = 0;
  readonly #tallies = new Tallies();

  begin(request: RequestRecord): void {
    if (this.#known.length - this.#olderPosts === MAX_REQUESTS) this.#makeRoom(request.at);
    this.#known.push(request);
  }

  #makeRoom(now: number): void {
    if (this.#known[this.#olderPosts].method !== 'POST') this.#known.splice(this.#olderPosts, 1);
    else this.#olderPosts++;
    if (this.#olderPosts <= MAX_POSTS) return;
    // Judged now: a request that is forgotten cannot be judged later.
    this.#tallies.settle(this.#known, now);
    this.#known.shift();
    this.#olderPosts--;
  }

  /** Judges a request that has ended. One that outlived 256 others is forgotten already. */
  end(request: RequestRecord): void {
    const place = this.#known.lastIndexOf(request);
    if (place < this.#olderPosts) return;
    this.#tallies.count(request, this.#known.slice(0, place), this.#known.slice(place + 1));
  }

  /** The requests that have ended, oldest first. */
  ended(): RequestRecord[] {
    return this.#known.slice(this.#olderPosts).filter(({ endedAt }) => Number.isFinite(endedAt));
  }

  /** `now`: a moment of the key's own clock. `openMs`: the time in which a failed POST may still come again. */
  grade(now: number): Grade & { openMs: number } {
    const openMs = this.#tallies.settle(this.#known, now) - now;
    return { ...gradeOf(this.#tallies), openMs };
  }
}

export class KeyState {
  readonly history = new History();
  readonly faults = new Faults();
  /** Resolves when the last change of its clock is done. */
  clockTurn: Promise<void> = Promise.resolve();
}

/** The keys in memory. Beyond the maximum, the one that was silent for longest is forgotten. */
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
