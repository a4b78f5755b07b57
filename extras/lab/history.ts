/** What the lab has in memory of each key: its newest requests, counts of older ones, its faults. All are bounded. */
import { RULES } from './checks.ts';
import { Faults } from './faults.ts';
import { type Grade, gradeOf } from './grade.ts';
import { openMs } from './post-retries.ts';
import { hasEnded, type RequestRecord } from './record.ts';
import { Counts, judge } from './rule.ts';

/** The newest requests of a key: those that are shown. */
export const MAX_REQUESTS = 256;
/** Older POSTs that are still judged: one that failed may come again after many other requests. */
const MAX_OLDER_POSTS = 64;
/** Requests are dropped many at a time, since all are judged before. */
const MAX_RECORDS = MAX_REQUESTS + 2 * MAX_OLDER_POSTS;
export const MAX_KEYS = 1_024;
export const MAX_LINKS = 4_096;

/** `openMs`: how long a failed POST may still come again, which the grade does not know yet. */
export type CurrentGrade = Grade & { openMs: number };

class History {
  /** In order of arrival. */
  #requests: RequestRecord[] = [];
  readonly #dropped = new Counts();
  /** The pages that the newest Links led to. */
  readonly #links: number[] = [];

  add(request: RequestRecord): void {
    if (this.#requests.length === MAX_RECORDS) this.#dropOldest(request.at);
    this.#requests.push(request);
  }

  #dropOldest(now: number): void {
    judge(this.#requests, now, RULES);
    const older = this.#requests.slice(0, -MAX_REQUESTS);
    const posts = older.filter(({ method }) => method === 'POST').slice(-MAX_OLDER_POSTS);
    for (const one of older) if (!posts.includes(one)) this.#dropped.add(one);
    this.#requests = [...posts, ...this.#requests.slice(-MAX_REQUESTS)];
  }

  addLink(page: number): void {
    if (!this.#links.includes(page) && this.#links.push(page) > MAX_LINKS) this.#links.shift();
  }

  hasLink(page: number): boolean {
    return this.#links.includes(page);
  }

  /** The newest requests that have ended, oldest first. */
  ended(): RequestRecord[] {
    return this.#requests.slice(-MAX_REQUESTS).filter(hasEnded);
  }

  /** `now`: a moment of the key's own clock. */
  grade(now: number): CurrentGrade {
    judge(this.#requests, now, RULES);
    const counts = this.#dropped.copy();
    for (const one of this.#requests) counts.add(one);
    return { ...gradeOf(counts), openMs: openMs(this.#requests, now) };
  }
}

export class KeyState {
  readonly history = new History();
  readonly faults = new Faults();
  /** How far its clock is ahead, for as long as this process runs. */
  aheadMs = 0;
  /** Resolves when the latest advance of its clock is done. */
  advanced: Promise<void> = Promise.resolve();
}

/** The keys in memory. Beyond the maximum, the least recently used is dropped. */
export class KeyStates {
  readonly #states = new Map<number, KeyState>();

  of(id: number): KeyState {
    const state = this.#states.get(id) ?? new KeyState();
    this.#states.delete(id); // so that it stands last
    if (this.#states.size === MAX_KEYS) this.#states.delete(this.#states.keys().next().value as number);
    this.#states.set(id, state);
    return state;
  }

  drop(id: number): void {
    this.#states.delete(id);
  }
}
