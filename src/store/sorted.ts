/** Rows as JSON, by ascending id. */

/** The most rows of a chunk. */
const FULL = 512;

export interface Page<I> {
  readonly texts: readonly string[];
  /** The `after` of the next page; undefined: no row follows. */
  readonly next: I | undefined;
}

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
    if (this.#isLast(id)) {
      this.#append(id, text);
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
    if (ids.length <= FULL) return;
    const half = FULL / 2;
    const second = { ids: ids.splice(half), texts: texts.splice(half) };
    this.#chunks.splice(number + 1, 0, second);
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
    let at = after === undefined ? 0 : countUpTo(this.#chunks[number]?.ids ?? [], after);
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

  /** Most rows are added at the end. */
  #isLast(id: I): boolean {
    const last = this.#chunks.at(-1);
    return last === undefined || last.ids[last.ids.length - 1] < id;
  }

  #append(id: I, text: string): void {
    let last = this.#chunks.at(-1);
    if (last === undefined || last.ids.length >= FULL) this.#chunks.push((last = { ids: [], texts: [] }));
    last.ids.push(id);
    last.texts.push(text);
    this.size++;
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

const countUpTo = <I>(ids: readonly I[], id: I): number => {
  const below = countBelow(ids, id);
  return ids[below] === id ? below + 1 : below;
};
