import { Bits } from './bits.ts';
import type { Page } from './model.ts';

/** Ids are places in arrays; a store with more rows than this would not fit into memory by far. */
export const MAX_ID = 2 ** 31 - 1;

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
  /** Grows with every change that a reader can see. */
  version = 0;
  readonly #statuses: readonly S[];
  readonly #columns: Columns<S, R>;
  readonly #ids = new Bits();
  readonly #byStatus: Bits[];
  #size = 0;
  /** Rows from this id on are not found yet. */
  #hiddenFrom = Number.POSITIVE_INFINITY;

  constructor(statuses: readonly S[], columns: Columns<S, R>) {
    this.#statuses = statuses;
    this.#columns = columns;
    this.#byStatus = statuses.map(() => new Bits());
  }

  get size(): number {
    return this.#size;
  }

  has(id: number): boolean {
    return id < this.#hiddenFrom && this.#ids.has(id);
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
    const id = ids.next(after + 1);
    return id < this.#hiddenFrom ? id : -1;
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
    const isFound = id < this.#hiddenFrom;
    if (isFound) this.version++;
    if (this.#ids.has(id)) for (const ids of this.#byStatus) ids.delete(id);
    else if (isFound) this.#size++;
    this.#ids.add(id);
    this.#byStatus[this.#statuses.indexOf(row.status)].add(id);
    this.#columns.write(row);
  }

  /** What is added from this id on is found only when it is shown. */
  hideFrom(id: number): void {
    this.#hiddenFrom = Math.min(this.#hiddenFrom, id);
  }

  show(rows: number): void {
    this.#hiddenFrom = Number.POSITIVE_INFINITY;
    this.#size += rows;
    this.version++;
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
  readonly #chunks: V[][] = [];
  readonly #nothing: V;

  /** `nothing`: what an id without a value has. */
  constructor(nothing: V) {
    this.#nothing = nothing;
  }

  get(id: number): V {
    const chunk: V[] | undefined = this.#chunks[Math.floor(id / CHUNK_ROWS)];
    return chunk ? chunk[id % CHUNK_ROWS] : this.#nothing;
  }

  set(id: number, value: V): void {
    const at = Math.floor(id / CHUNK_ROWS);
    const chunk = (this.#chunks[at] ??= new Array<V>(CHUNK_ROWS).fill(this.#nothing));
    chunk[id % CHUNK_ROWS] = value;
  }
}
