/** Rows as JSON, by ascending id. */
import type { Page } from './model.ts';

/** The most rows of a chunk. */
const FULL = 512;

interface Chunk<I> {
  readonly ids: I[];
  readonly texts: string[];
}

/**
 * They stand in chunks, none of which is empty unless it is the only one: to insert or to remove a row moves no more than
 * the rows of its chunk.
 */
export class SortedTexts<I extends number | bigint | string> {
  size = 0;
  readonly #chunks: Chunk<I>[] = [{ ids: [], texts: [] }];

  get(id: I): string | undefined {
    const { ids, texts } = this.#chunks[this.#numberOf(id)];
    const at = countBelow(ids, id);
    return ids[at] === id ? texts[at] : undefined;
  }

  /** Returns the text that was there, as `delete` does. */
  set(id: I, text: string): string | undefined {
    const number = this.#numberOf(id);
    const { ids, texts } = this.#chunks[number];
    const at = countBelow(ids, id);
    if (ids[at] === id) {
      const before = texts[at];
      texts[at] = text;
      return before;
    }
    this.size++;
    if (at === ids.length) {
      ids.push(id); // most rows are added at the end, and a start takes less by that
      texts.push(text);
    } else {
      ids.splice(at, 0, id);
      texts.splice(at, 0, text);
    }
    if (ids.length <= FULL) return undefined;
    const kept = at === FULL ? FULL : FULL / 2; // full chunks are left behind
    this.#chunks.splice(number + 1, 0, { ids: ids.splice(kept), texts: texts.splice(kept) });
    return undefined;
  }

  delete(id: I): string | undefined {
    const number = this.#numberOf(id);
    const { ids, texts } = this.#chunks[number];
    const at = countBelow(ids, id);
    if (ids[at] !== id) return undefined;
    this.size--;
    ids.splice(at, 1);
    const [before] = texts.splice(at, 1);
    if (ids.length === 0 && this.#chunks.length > 1) this.#chunks.splice(number, 1);
    return before;
  }

  page(after: I | undefined, limit: number): Page<I> {
    const texts: string[] = [];
    let last: I | undefined;
    let number = after === undefined ? 0 : this.#numberOf(after);
    const { ids } = this.#chunks[number];
    let at = after === undefined ? 0 : countBelow(ids, after);
    if (at < ids.length && ids[at] === after) at++;
    for (; number < this.#chunks.length; number++) {
      const chunk = this.#chunks[number];
      const end = Math.min(chunk.ids.length, at + limit - texts.length);
      texts.push(...chunk.texts.slice(at, end)); // a start takes all placed orders at once: no new list for each chunk
      if (end > at) last = chunk.ids[end - 1];
      if (end < chunk.ids.length) return { texts, next: last };
      at = 0;
    }
    return { texts, next: undefined };
  }

  texts(): string[] {
    return this.#chunks.flatMap(({ texts }) => texts);
  }

  /** The number of the chunk in which the id stands or belongs: of the last that does not begin with a higher id, or 0. */
  #numberOf(id: I): number {
    return Math.max(0, countFirst(this.#chunks.length, (number) => this.#chunks[number].ids[0] <= id) - 1);
  }
}

/** How many of the sorted ids are lower. */
const countBelow = <I>(ids: readonly I[], id: I): number => countFirst(ids.length, (at) => ids[at] < id);

/** How many of the numbers from 0 hold, of which none holds after one that does not. */
function countFirst(length: number, holds: (number: number) => boolean): number {
  if (length > 0 && holds(length - 1)) return length; // most rows are added at the end
  let [from, to] = [0, length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (holds(middle)) from = middle + 1;
    else to = middle;
  }
  return from;
}
