import { Bits } from './bits.ts';
import type { Page } from './model.ts';

/** Ids are places in arrays; a store with more rows than this would not fit into memory by far. */
export const MAX_ID = 2 ** 31 - 1;

/** Ids from some first one to `end - 1` whose rows no reader finds yet, and how many rows those are. */
export interface Hidden {
  end: number;
  rows: number;
}

/** Where the members of a row are kept besides its id and status. */
interface Columns<S, R> {
  read(id: number, status: S): R;
  write(row: R): void;
}

/**
 * Which ids there are, and the status of each. For every status, and for all rows, a set of ids finds the next one
 * without looking at what lies between.
 */
export class Table<S extends string, R extends { id: number; status: S }> {
  /** By the first id. A reader steps over each of them at once, so that showing a million rows costs nothing. */
  readonly hidden = new Map<number, Hidden>();
  /** Grows with every change that a reader can see. */
  version = 0;
  readonly #statuses: readonly S[];
  readonly #columns: Columns<S, R>;
  readonly #ids = new Bits();
  readonly #byStatus: Bits[];
  #size = 0;

  constructor(statuses: readonly S[], columns: Columns<S, R>) {
    this.#statuses = statuses;
    this.#columns = columns;
    this.#byStatus = statuses.map(() => new Bits());
  }

  get size(): number {
    return this.#size;
  }

  has(id: number): boolean {
    return this.#ids.has(id) && !this.#hiddenAt(id);
  }

  /** Of an id that has a row. */
  status(id: number): S {
    let place = 0;
    while (!this.#byStatus[place].has(id)) place++;
    return this.#statuses[place];
  }

  get(id: number): R | undefined {
    return this.has(id) ? this.#columns.read(id, this.status(id)) : undefined;
  }

  /** The smallest id above `after` (of that status); -1 when there is none. */
  nextAfter(after: number, status?: S): number {
    const ids = status === undefined ? this.#ids : this.#byStatus[this.#statuses.indexOf(status)];
    let id = ids.next(after + 1);
    let over: Hidden | undefined;
    while ((over = this.#hiddenAt(id))) id = ids.next(over.end);
    return id;
  }

  page(after: number, limit: number, status?: S): Page<R> {
    const items: R[] = [];
    let id = this.nextAfter(after, status);
    for (; id !== -1 && items.length < limit; id = this.nextAfter(id, status)) {
      items.push(this.#columns.read(id, status ?? this.status(id)));
    }
    return { items, more: id !== -1 };
  }

  /** Adds the row, or puts it in place of the one with that id. */
  set(id: number, row: R): void {
    const hidden = this.#hiddenAt(id);
    if (!hidden) this.version++;
    if (this.#ids.has(id)) for (const ids of this.#byStatus) ids.delete(id);
    else if (hidden) hidden.rows++;
    else this.#size++;
    this.#ids.add(id);
    this.#byStatus[this.#statuses.indexOf(row.status)].add(id);
    this.#columns.write(row);
  }

  show(first: number): void {
    this.#size += this.hidden.get(first)!.rows;
    this.hidden.delete(first);
    this.version++;
  }

  /** Removes what is hidden there. */
  clear(first: number): void {
    for (const ids of [this.#ids, ...this.#byStatus]) ids.clear(first, this.hidden.get(first)!.end);
    this.hidden.delete(first);
  }

  #hiddenAt(id: number): Hidden | undefined {
    if (this.hidden.size === 0) return undefined;
    for (const [first, hidden] of this.hidden) if (id >= first && id < hidden.end) return hidden;
    return undefined;
  }

  /** Throws where the sets do not tell the same, or an id is not below the next one. */
  check(name: string, nextId: number): void {
    let rows = 0;
    for (let id = this.nextAfter(-1); id !== -1; id = this.nextAfter(id)) {
      rows++;
      const statuses = this.#statuses.filter((_, place) => this.#byStatus[place].has(id));
      if (statuses.length !== 1) throw new Error(`${name} ${id}: its status is [${statuses}]`);
      if (id < 1 || id >= nextId) throw new Error(`${name} ${id}: not below the next id ${nextId}`);
    }
    let byStatus = 0;
    for (const status of this.#statuses) {
      for (let id = this.nextAfter(-1, status); id !== -1; id = this.nextAfter(id, status)) byStatus++;
    }
    const told = `${name}: ${byStatus} by status, ${rows} found, ${this.size} told`;
    if (byStatus !== rows || rows !== this.size) throw new Error(told);
  }
}

/** Rows of a chunk. Chunks are allocated as ids reach them, so that nothing large is ever copied to grow. */
const CHUNK_ROWS = 1024;

/** A value for each id, in chunks. */
export class Column<V> {
  readonly #chunks: (V[] | undefined)[] = [];
  readonly #nothing: V;

  /** `nothing`: what an id without a value has. */
  constructor(nothing: V) {
    this.#nothing = nothing;
  }

  get(id: number): V {
    const chunk = this.#chunks[Math.floor(id / CHUNK_ROWS)];
    return chunk ? chunk[id % CHUNK_ROWS] : this.#nothing;
  }

  set(id: number, value: V): void {
    const at = Math.floor(id / CHUNK_ROWS);
    const chunk = (this.#chunks[at] ??= new Array<V>(CHUNK_ROWS).fill(this.#nothing));
    chunk[id % CHUNK_ROWS] = value;
  }

  /** Ids `first` … `end - 1` have no value again. */
  clear(first: number, end: number): void {
    const last = Math.min(Math.ceil(end / CHUNK_ROWS), this.#chunks.length);
    for (let at = Math.floor(first / CHUNK_ROWS); at < last; at++) {
      const from = Math.max(0, first - at * CHUNK_ROWS);
      const to = Math.min(CHUNK_ROWS, end - at * CHUNK_ROWS);
      if (from === 0 && to === CHUNK_ROWS) this.#chunks[at] = undefined;
      else this.#chunks[at]?.fill(this.#nothing, from, to);
    }
  }
}
