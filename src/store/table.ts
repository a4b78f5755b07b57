import type { Page } from './model.ts';

/** Rows of a chunk, and of a line in a file. Nothing large is ever copied to grow. */
const CHUNK_ROWS = 1024;
/** The status of a place that no row has taken yet. */
const NONE = 255;

/**
 * Rows of consecutive ids: each one's status, as a place among all statuses, and two cells; and how many have each
 * status.
 */
interface Chunk<A, B> {
  first: number;
  statuses: Uint8Array;
  counts: number[];
  a: A[];
  b: B[];
}

/** What a row holds besides its id and status. */
interface Shape<S, R, A, B> {
  row(id: number, a: A, b: B, status: S): R;
  a(row: R): A;
  b(row: R): B;
}

/** Rows by id, none of which is ever removed: in columns, which take half of the memory of objects. */
export class Table<S extends string, R extends { id: number; status: S }, A, B> {
  size = 0;
  /** Grows with every change. */
  version = 0;
  readonly #statuses: readonly S[];
  readonly #shape: Shape<S, R, A, B>;
  /** By ascending ids. Where a repair has left ids out, the next chunk begins. */
  readonly #chunks: Chunk<A, B>[] = [];

  constructor(statuses: readonly S[], shape: Shape<S, R, A, B>) {
    this.#statuses = statuses;
    this.#shape = shape;
  }

  get(id: number): R | undefined {
    const chunk = this.#chunks[this.#chunkOf(id)];
    return chunk && id - chunk.first < chunk.a.length ? this.#row(chunk, id - chunk.first) : undefined;
  }

  /** Adds the row behind all others, or puts it in place of the one with that id. */
  set(id: number, row: R): void {
    const { a, b } = this.#shape;
    this.version++;
    const chunk: Chunk<A, B> | undefined = this.#chunks[this.#chunkOf(id)];
    const at = id - (chunk?.first ?? 0);
    if (!chunk || at >= chunk.a.length) {
      this.#append(id, row.status, a(row), b(row));
      return;
    }
    chunk.counts[chunk.statuses[at]]--;
    this.#setStatus(chunk, at, row.status);
    chunk.a[at] = a(row);
    chunk.b[at] = b(row);
  }

  /** Ascending ids above `after` (of that status). A chunk without the status is passed over. */
  page(after: number, limit: number, status?: S): Page<R> {
    const code = status === undefined ? undefined : this.#statuses.indexOf(status);
    const items: R[] = [];
    for (let i = Math.max(0, this.#chunkOf(after + 1)); i < this.#chunks.length; i++) {
      const chunk = this.#chunks[i];
      let at = next(chunk, Math.max(0, after + 1 - chunk.first), code);
      for (; at < chunk.a.length; at = next(chunk, at + 1, code)) {
        if (items.length === limit) return { items, more: true };
        items.push(this.#row(chunk, at));
      }
    }
    return { items, more: false };
  }

  clear(): void {
    this.#chunks.length = 0;
    this.size = 0;
    this.version++;
  }

  /** The whole table, with a letter for each status. */
  *columns(): Generator<{ first: number; statuses: string; a: A[]; b: B[] }> {
    for (const { first, statuses, a, b } of this.#chunks) {
      const letters = Array.from(statuses.subarray(0, a.length), (code) => this.#statuses[code][0]);
      yield { first, statuses: letters.join(''), a, b };
    }
  }

  load(first: number, statuses: string, a: A[], b: B[]): void {
    const byLetter = new Map(this.#statuses.map((status) => [status[0], status]));
    for (let i = 0; i < a.length; i++) this.#append(first + i, byLetter.get(statuses[i])!, a[i], b[i]);
    this.version++;
  }

  #append(id: number, status: S, a: A, b: B): void {
    let chunk: Chunk<A, B> | undefined = this.#chunks[this.#chunks.length - 1];
    if (chunk && id < chunk.first + chunk.a.length) throw new Error(`${id} comes after ids that are higher`);
    if (!chunk || chunk.a.length === CHUNK_ROWS || id !== chunk.first + chunk.a.length) {
      const counts = this.#statuses.map(() => 0);
      chunk = { first: id, statuses: new Uint8Array(CHUNK_ROWS).fill(NONE), counts, a: [], b: [] };
      this.#chunks.push(chunk);
    }
    this.#setStatus(chunk, chunk.a.length, status);
    chunk.a.push(a);
    chunk.b.push(b);
    this.size++;
  }

  #setStatus(chunk: Chunk<A, B>, at: number, status: S): void {
    const code = this.#statuses.indexOf(status);
    chunk.statuses[at] = code;
    chunk.counts[code]++;
  }

  #row({ first, a, b, statuses }: Chunk<A, B>, at: number): R {
    return this.#shape.row(first + at, a[at], b[at], this.#statuses[statuses[at]]);
  }

  /** The last chunk that begins at this id or before; -1 when there is none. */
  #chunkOf(id: number): number {
    let low = 0;
    let high = this.#chunks.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#chunks[middle].first <= id) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }
}

/** The first place from `at` on that has the status; beyond the last row when there is none. */
function next<A, B>({ statuses, counts }: Chunk<A, B>, at: number, code: number | undefined): number {
  if (code === undefined) return at;
  const found = counts[code] === 0 ? -1 : statuses.indexOf(code, at);
  return found === -1 ? CHUNK_ROWS : found;
}
