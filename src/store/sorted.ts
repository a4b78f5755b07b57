/** Rows as JSON, by ascending id. */
import type { Page } from './model.ts';

/** The most rows of a chunk. */
const FULL = 512;

interface Chunk<I> {
  readonly ids: I[];
  readonly texts: string[];
}

/** They stand in chunks, none of which is empty: to insert or to remove a row moves no more than the rows of its chunk. */
export class SortedTexts<I extends number | bigint | string> {
  size = 0;
  readonly #chunks: Chunk<I>[] = [];

  get(id: I): string | undefined {
    const chunk = this.#chunks[this.#numberOf(id)];
    if (chunk === undefined) return undefined;
    const at = countBelow(chunk.ids, id);
    return chunk.ids[at] === id ? chunk.texts[at] : undefined;
  }

  set(id: I, text: string): void {
    const last = this.#chunks.at(-1);
    if (last !== undefined && last.ids.length < FULL && last.ids[last.ids.length - 1] < id) {
      last.ids.push(id); // as most rows are added: a start takes a tenth less by that
      last.texts.push(text);
      this.size++;
      return;
    }
    if (last === undefined) this.#chunks.push({ ids: [], texts: [] });
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
    if (ids.length <= FULL) return;
    const kept = at === FULL ? FULL : FULL / 2; // full chunks are left behind
    this.#chunks.splice(number + 1, 0, { ids: ids.splice(kept), texts: texts.splice(kept) });
  }

  delete(id: I): void {
    const number = this.#numberOf(id);
    const { ids, texts } = this.#chunks[number] ?? { ids: [], texts: [] };
    const at = countBelow(ids, id);
    if (ids[at] !== id) return;
    this.size--;
    ids.splice(at, 1);
    texts.splice(at, 1);
    if (ids.length === 0) this.#chunks.splice(number, 1);
  }

  page(after: I | undefined, limit: number): Page<I> {
    const texts: string[] = [];
    let last: I | undefined;
    let number = after === undefined ? 0 : this.#numberOf(after);
    const { ids } = this.#chunks[number] ?? { ids: [] };
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
