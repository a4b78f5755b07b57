import { Bits } from './bits.ts';
import { Bytes } from './columns.ts';
import type { Page } from './model.ts';

/** Ids are places in arrays; a store with more rows than this would not fit into memory by far. */
export const MAX_ID = 2 ** 31 - 1;

/**
 * Which ids there are, and the status of each. A row may be written unseen and shown later. For every status, and for
 * all rows, a set of ids finds the next one without looking at what lies between.
 */
export class Table<S extends string> {
  readonly #statuses: readonly S[];
  /** The place of the status in the list; what it says of an id without a row means nothing. */
  readonly #places = new Bytes();
  readonly #seen = new Bits();
  readonly #byStatus: Bits[];
  readonly #unseen: Bits[];

  constructor(statuses: readonly S[]) {
    this.#statuses = statuses;
    this.#byStatus = statuses.map(() => new Bits());
    this.#unseen = statuses.map(() => new Bits());
  }

  get size(): number {
    return this.#seen.size;
  }

  has(id: number): boolean {
    return this.#seen.has(id);
  }

  status(id: number): S {
    return this.#statuses[this.#places.get(id)];
  }

  /** The smallest id above `after` (of that status); -1 when there is none. */
  nextAfter(after: number, status?: S): number {
    const set = status === undefined ? this.#seen : this.#byStatus[this.#statuses.indexOf(status)];
    return set.next(after + 1);
  }

  page<T>(after: number, limit: number, status: S | undefined, row: (id: number) => T): Page<T> {
    const items: T[] = [];
    let id = this.nextAfter(after, status);
    for (; id !== -1 && items.length < limit; id = this.nextAfter(id, status)) items.push(row(id));
    return { items, more: id !== -1 };
  }

  add(id: number, status: S): void {
    const place = this.#statuses.indexOf(status);
    this.#places.set(id, place);
    this.#seen.add(id);
    this.#byStatus[place].add(id);
  }

  /** Keeps the row where no reader finds it. */
  addUnseen(id: number, status: S): void {
    const place = this.#statuses.indexOf(status);
    this.#unseen[this.#places.get(id)].delete(id);
    this.#places.set(id, place);
    this.#unseen[place].add(id);
  }

  /** Shows every unseen row of `first` … `end - 1`: a million in about a millisecond, 32 at a time. */
  show(first: number, end: number): void {
    this.#takeUnseen(first, end, (place, word, mask) => {
      this.#byStatus[place].addWord(word, mask);
      this.#seen.addWord(word, mask);
    });
  }

  /** Forgets every unseen row of `first` … `end - 1`. */
  forget(first: number, end: number): void {
    this.#takeUnseen(first, end, () => {});
  }

  #takeUnseen(first: number, end: number, take: (place: number, word: number, mask: number) => void): void {
    for (let word = first >>> 5; word * 32 < end; word++) {
      const from = Math.max(0, first - word * 32);
      const rest = word * 32 + 32 - end;
      const range = (-1 << from) & (rest > 0 ? -1 >>> rest : -1);
      for (let place = 0; place < this.#unseen.length; place++) {
        const mask = this.#unseen[place].word(word) & range;
        if (mask === 0) continue;
        this.#unseen[place].deleteWord(word, mask);
        take(place, word, mask);
      }
    }
  }

  setStatus(id: number, status: S): void {
    this.#byStatus[this.#places.get(id)].delete(id);
    this.add(id, status);
  }

  /** Throws where sets and statuses do not tell the same. */
  check(name: string): void {
    let sum = 0;
    for (const status of this.#statuses) {
      for (let id = this.nextAfter(-1, status); id !== -1; id = this.nextAfter(id, status)) {
        sum++;
        if (!this.#seen.has(id)) throw new Error(`${name} ${id}: in the set '${status}', but not seen`);
        if (this.status(id) !== status) throw new Error(`${name} ${id}: in the set '${status}', is ${this.status(id)}`);
      }
    }
    let seen = 0;
    for (let id = this.nextAfter(-1); id !== -1; id = this.nextAfter(id)) seen++;
    if (sum !== seen || seen !== this.size)
      throw new Error(`${name}: ${sum} by status, ${seen} seen, ${this.size} told`);
  }
}
