import type { Int64 } from './model.ts';

/** Rows of a chunk. Chunks are allocated as ids reach them, so that nothing large is ever copied to grow. */
const CHUNK_ROWS = 1024;

/** A value for each id, in chunks. `make` gives a new chunk, filled with what an id without a value has. */
class Column<A extends { [row: number]: V; fill(value: V, from: number, to: number): unknown }, V> {
  readonly #chunks: (A | undefined)[] = [];
  readonly #make: (rows: number) => A;
  readonly #nothing: V;

  constructor(make: (rows: number) => A, nothing: V) {
    this.#make = make;
    this.#nothing = nothing;
  }

  get(id: number): V {
    const chunk = this.#chunks[Math.floor(id / CHUNK_ROWS)];
    return chunk ? chunk[id % CHUNK_ROWS] : this.#nothing;
  }

  set(id: number, value: V): void {
    const at = Math.floor(id / CHUNK_ROWS);
    const chunk = (this.#chunks[at] ??= this.#make(CHUNK_ROWS));
    chunk[id % CHUNK_ROWS] = value;
  }

  /** Ids `first` … `end - 1` have no value again. */
  clear(first: number, end: number): void {
    for (let at = Math.floor(first / CHUNK_ROWS); at * CHUNK_ROWS < end; at++) {
      const from = Math.max(0, first - at * CHUNK_ROWS);
      const to = Math.min(CHUNK_ROWS, end - at * CHUNK_ROWS);
      if (from === 0 && to === CHUNK_ROWS) this.#chunks[at] = undefined;
      else this.#chunks[at]?.fill(this.#nothing, from, to);
    }
  }
}

export class Texts extends Column<string[], string> {
  constructor() {
    super((rows) => new Array<string>(rows).fill(''), '');
  }
}

export class Bytes extends Column<Uint8Array, number> {
  constructor() {
    super((rows) => new Uint8Array(rows), 0);
  }
}

export class Numbers extends Column<Float64Array, number> {
  constructor() {
    super((rows) => new Float64Array(rows), 0);
  }
}

/** Any int64 exactly: as a number where that is exact, aside as a bigint where it is not. */
export class Int64s {
  readonly #numbers = new Numbers();
  readonly #aside = new Map<number, bigint>();

  get(id: number): Int64 {
    const value = this.#numbers.get(id);
    return Number.isNaN(value) ? this.#aside.get(id)! : value;
  }

  set(id: number, value: Int64): void {
    if (typeof value === 'bigint') this.#aside.set(id, value);
    this.#numbers.set(id, typeof value === 'bigint' ? Number.NaN : value);
  }

  clear(first: number, end: number): void {
    this.#numbers.clear(first, end);
    for (const id of this.#aside.keys()) if (id >= first && id < end) this.#aside.delete(id);
  }
}
