/**
 * The rows as they will be when a batch is durable: what its transactions have put, over the tables. They use the same
 * `tx` in turn.
 */
import { type Id, type Row, schemaOf, TABLE_NAMES, type TableName, type Transaction } from './model.ts';
import { CountedRows, type RowMap } from './rows.ts';
import type { TableSchema } from './schema.ts';
import { bytesIn, type Changes, type TableChanges, type Tables } from './tables.ts';

type CountedRow = Row & { readonly id: number };

interface Put {
  readonly row: Row;
  /** The row as JSON. */
  readonly text: string;
}

export class Draft {
  /** The bytes of all that was put, as JSON. */
  bytes = 0;
  /** Of these, the bytes of rows that are new. */
  addedBytes = 0;
  readonly #tables: readonly DraftTable[];
  readonly #tx: Transaction;
  /** For each change, the oldest first, what takes it back. */
  readonly undo: (() => void)[] = [];

  constructor(tables: Tables) {
    this.#tables = TABLE_NAMES.map((name) => new DraftTable(name, tables.of(name), this));
    this.#tx = Object.fromEntries(this.#tables.map((table) => [table.name, table])) as unknown as Transaction;
  }

  /** Runs the work, then `check` with the bytes that it has put. If either throws, its changes are undone. */
  run<T>(work: (tx: Transaction) => T, check: (bytes: number, addedBytes: number) => void): T {
    const { bytes, addedBytes } = this;
    const { length } = this.undo;
    try {
      const result = work(this.#tx);
      if (result instanceof Promise) throw new Error('the work of a transaction must be synchronous');
      check(this.bytes - bytes, this.addedBytes - addedBytes);
      return result;
    } catch (error) {
      for (const undo of this.undo.splice(length).reverse()) undo();
      [this.bytes, this.addedBytes] = [bytes, addedBytes];
      throw error;
    }
  }

  get isChanged(): boolean {
    return this.undo.length > 0;
  }

  get changes(): Changes {
    return this.#tables.map((table) => table.changes).filter((changes) => changes !== undefined);
  }
}

class DraftTable {
  readonly name: TableName;
  readonly #schema: TableSchema<Row>;
  readonly #table: RowMap<Row>;
  readonly #draft: Draft;
  /** What was put; undefined: removed. */
  #changed = new Map<Id, Put | undefined>();
  #clears = false;
  #lastId: number | undefined;

  constructor(name: TableName, table: RowMap<Row>, draft: Draft) {
    [this.name, this.#schema, this.#table, this.#draft] = [name, schemaOf(name), table, draft];
    if (table instanceof CountedRows) this.#lastId = table.lastId;
  }

  get(id: Id): Row | undefined {
    const put = this.#changed.get(id);
    if (put !== undefined) return put.row;
    return this.#clears || this.#changed.has(id) ? undefined : this.#table.get(id);
  }

  /** Of a table with an index: the row with that value in it. */
  find(value: unknown): Row | undefined {
    const table = this.#table as CountedRows<CountedRow, unknown>;
    for (const put of this.#changed.values())
      if (put && table.valuesOf!(put.row as CountedRow).includes(value)) return put.row;
    const found = this.#clears ? undefined : table.find(value);
    return found === undefined || this.#changed.has(found.id) ? undefined : found;
  }

  put(given: Row): void {
    const row = this.#schema.read({ ...given });
    if (this.#lastId !== undefined && this.get(row.id) === undefined) {
      throw new Error(`${this.name} ${row.id}: only add gives an id`);
    }
    this.#set(row.id, row);
  }

  add(given: object): Row {
    const id = this.#lastId! + 1;
    const row = this.#schema.read({ id, ...given }); // `id` behind `...` would be ten times slower
    this.#set(id, row);
    this.#lastId = id;
    return row;
  }

  delete(id: Id): void {
    if (this.get(id) !== undefined) this.#set(id, undefined);
  }

  clear(): void {
    const [changed, clears, lastId] = [this.#changed, this.#clears, this.#lastId];
    this.#draft.undo.push(() => ([this.#changed, this.#clears, this.#lastId] = [changed, clears, lastId]));
    [this.#changed, this.#clears] = [new Map(), true];
    if (lastId !== undefined) this.#lastId = 0;
  }

  /** Undefined: there are none. */
  get changes(): TableChanges | undefined {
    if (!this.#clears && this.#changed.size === 0) return undefined;
    const puts: Put[] = [];
    const deleted: Id[] = [];
    for (const [id, put] of this.#changed) put ? puts.push(put) : deleted.push(id);
    return {
      name: this.name,
      clears: this.#clears,
      rows: puts.map(({ row }) => row),
      texts: puts.map(({ text }) => text),
      deleted,
    };
  }

  #set(id: Id, row: Row | undefined): void {
    const changed = this.#changed;
    const lastId = this.#lastId;
    const isAgain = changed.has(id);
    const before = changed.get(id);
    this.#draft.undo.push(() => {
      if (isAgain) changed.set(id, before);
      else changed.delete(id);
      this.#lastId = lastId;
    });
    if (row === undefined) {
      changed.set(id, undefined);
      return;
    }
    const text = this.#schema.json(row);
    const bytes = bytesIn([text]);
    this.#draft.bytes += bytes;
    if (this.get(id) === undefined) this.#draft.addedBytes += bytes;
    changed.set(id, { row, text });
  }
}
