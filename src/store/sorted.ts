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

  set(id: I, text: string): void {
    let last = this.#chunks[this.#chunks.length - 1];
    if (last.ids.length === 0 || last.ids[last.ids.length - 1] < id) {
      // Most rows are added at the end: a start takes a tenth less by that, and full chunks are left behind.
      if (last.ids.length === FULL) this.#chunks.push((last = { ids: [], texts: [] }));
      last.ids.push(id);
      last.texts.push(text);
      this.size++;
      return;
    }
    const number = this.#numberOf(id);
    const { ids, texts } = this.#chunks[number];
    const at = countBelow(ids, id);
    if (ids[at] === id) {
      texts[at] = text;
      return;
    }
    ids.splice(at, 0, id);
    texts.splice(at, 0, text);
    this.size++;
    const half = FULL / 2;
    if (ids.length > FULL) this.#chunks.splice(number + 1, 0, { ids: ids.splice(half), texts: texts.splice(half) });
  }

  delete(id: I): void {
    const number = this.#numberOf(id);
    const { ids, texts } = this.#chunks[number];
    const at = countBelow(ids, id);
    if (ids[at] !== id) return;
    this.size--;
    ids.splice(at, 1);
    texts.splice(at, 1);
    if (ids.length === 0 && this.#chunks.length > 1) this.#chunks.splice(number, 1);
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
      texts.push(...chunk.texts.slice(at, end));
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
    let [from, to] = [0, this.#chunks.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      if (this.#chunks[middle].ids[0] > id) to = middle;
      else from = middle + 1;
    }
    return Math.max(0, from - 1);
  }
}

/** How many of the sorted ids are lower. */
function countBelow<I>(ids: readonly I[], id: I): number {
  let [from, to] = [0, ids.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (ids[middle] < id) from = middle + 1;
    else to = middle;
  }
  return from;
}
