/** Rows in memory, by id and page by page. */
import type { Int64 } from '../json/int64.ts';
import type { KeptCategory, Page } from './model.ts';

/** The most rows of a chunk. One large array would be copied whenever it grows; chunks are not. */
const CHUNK_ROWS = 512;
/** Fewer rows than this are added one by one, not as a chunk of their own. */
const FEW_ROWS = 64;

/** Rows of consecutive ids, and the number of rows with each status. */
class Chunk<R extends { status: string }> {
  readonly first: number;
  readonly counts: { [status: string]: number } = {};
  #rows: R[] | (() => R[]);
  #statuses: R['status'][];

  /** `rows`: the rows, or a function that makes them when one is first needed; `statuses`: those of the rows. */
  constructor(first: number, rows: R[] | (() => R[]) = [], statuses: R['status'][] = []) {
    this.first = first;
    this.#rows = rows;
    this.#statuses = statuses;
  }

  get rows(): R[] {
    if (typeof this.#rows === 'function') this.#rows = this.#rows();
    return this.#rows;
  }

  statusAt(place: number): R['status'] | undefined {
    return typeof this.#rows === 'function' ? this.#statuses[place] : this.#rows[place]?.status;
  }

  count(status: R['status']): void {
    this.counts[status] = (this.counts[status] ?? 0) + 1;
  }
}

/** Rows by id. A single row is never removed; `clear` removes all. */
export class Table<R extends { id: number; status: string }> {
  size = 0;
  /** Grows with every change. */
  version = 0;
  /** The chunks by ascending ids. A gap begins another chunk. */
  #chunks: Chunk<R>[] = [];
  /** The chunk of the row whose status was last asked for: the next row is often in it. */
  #asked: Chunk<R> | undefined;

  get(id: number): R | undefined {
    const chunk = this.#chunks[this.#chunkOf(id)];
    return chunk?.rows[id - chunk.first];
  }

  /** The status of a row, without making the rows of a chunk that was only loaded. */
  statusOf(id: number): R['status'] | undefined {
    const found = this.#asked?.statusAt(id - this.#asked.first);
    if (found !== undefined) return found;
    this.#asked = this.#chunks[this.#chunkOf(id)];
    return this.#asked?.statusAt(id - this.#asked.first);
  }

  /** Puts the row in place of the one with that id, or adds it after all others. */
  set(id: number, row: R): void {
    let chunk: Chunk<R> | undefined = this.#chunks[this.#chunkOf(id)];
    const before = chunk?.rows[id - chunk.first];
    if (before) chunk.counts[before.status]!--;
    else {
      this.size++;
      if (!chunk || chunk.rows.length === CHUNK_ROWS || chunk.rows.length !== id - chunk.first) {
        chunk = new Chunk<R>(id);
        this.#chunks.push(chunk);
      }
    }
    chunk.rows[id - chunk.first] = row;
    chunk.count(row.status);
    this.version++;
  }

  /**
   * Adds rows after all others. If they are many, they are made only when one is first needed, so that no start or
   * import waits for them.
   */
  load(first: number, statuses: R['status'][], rowAt: (i: number) => R): void {
    if (statuses.length < FEW_ROWS) {
      for (let i = 0; i < statuses.length; i++) this.set(first + i, rowAt(i));
      return;
    }
    for (let from = 0; from < statuses.length; from += CHUNK_ROWS) {
      const some = statuses.slice(from, from + CHUNK_ROWS);
      const chunk = new Chunk(first + from, () => some.map((_, i) => rowAt(from + i)), some);
      for (const status of some) chunk.count(status);
      this.#chunks.push(chunk);
    }
    this.size += statuses.length;
    this.version++;
  }

  /** Rows with ids above `after`, ascending; with `status`, only rows of that status. Chunks without it are skipped. */
  page(after: number, limit: number, status?: R['status']): Page<R> {
    const items: R[] = [];
    for (let i = Math.max(0, this.#chunkOf(after + 1)); i < this.#chunks.length; i++) {
      const chunk = this.#chunks[i];
      if (status !== undefined && !chunk.counts[status]) continue;
      const { first, rows } = chunk;
      for (let at = Math.max(0, after + 1 - first); at < rows.length; at++) {
        if (status !== undefined && rows[at].status !== status) continue;
        if (items.length === limit) return { items, more: true };
        items.push(rows[at]);
      }
    }
    return { items, more: false };
  }

  clear(): void {
    this.#chunks = [];
    this.#asked = undefined;
    this.size = 0;
    this.version++;
  }

  /** All rows, by ascending ids. */
  *rows(): Generator<R> {
    for (const { rows } of this.#chunks) yield* rows;
  }

  /** The last chunk that begins at this id or before; -1 when there is none. */
  #chunkOf(id: number): number {
    return placeIn(this.#chunks, ({ first }) => first <= id) - 1;
  }
}

/** Categories by ascending ids. Numbers and bigints compare by value. */
export class Categories {
  #sorted: KeptCategory[] = [];

  get size(): number {
    return this.#sorted.length;
  }

  get(id: Int64): KeptCategory | undefined {
    const category = this.#sorted[this.#place(id)];
    return category?.id === id ? category : undefined;
  }

  set(id: Int64, category: KeptCategory): void {
    this.#sorted.splice(this.#place(id), this.get(id) ? 1 : 0, category);
  }

  page(after: Int64 = Number.NEGATIVE_INFINITY, limit = Number.POSITIVE_INFINITY): Page<KeptCategory> {
    const from = placeIn(this.#sorted, ({ id }) => id <= after);
    return { items: this.#sorted.slice(from, from + limit), more: from + limit < this.size };
  }

  clear(): void {
    this.#sorted = [];
  }

  #place(id: Int64): number {
    return placeIn(this.#sorted, (category) => category.id < id);
  }
}

/** The number of items for which `isBefore` holds, in a list that begins with those: binary search. */
function placeIn<T>(sorted: readonly T[], isBefore: (item: T) => boolean): number {
  let low = 0;
  for (let high = sorted.length; low < high; ) {
    const middle = (low + high) >>> 1;
    if (isBefore(sorted[middle])) low = middle + 1;
    else high = middle;
  }
  return low;
}
