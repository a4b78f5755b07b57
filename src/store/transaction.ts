/**
 * The rows as they will be when a batch is durable: what its transactions have put, over the tables. They use the same
 * `tx` in turn.
 */
import { type Id, type Row, StoreError, schemaOf, TABLE_NAMES, type TableName, type Transaction } from './model.ts';
import { CountedRows, type RowMap } from './rows.ts';
import { bytesOf, bytesOfRow, type Changes, type Put, type TableChanges, type Tables } from './tables.ts';

/** Added to a batch of almost `FULL_BATCH_BYTES`, it stays below `MAX_LINE_BYTES`, the most that a reader takes. */
const MAX_TRANSACTION_BYTES = 24 * 1024 * 1024;

/** The tables in which a row that grows counts against the maximum, as a new row does in every table. */
const GROWING: readonly TableName[] = ['pets', 'categories'];
/** Whoever changes a row of these may pass the maximum: orders are closed and keys revoked in a full store too. */
const PASSING: readonly TableName[] = ['orders', 'keys', 'usage'];

type CountedRow = Row & { readonly id: number };

export class Draft {
  /** The bytes of all that was put, as JSON. */
  bytes = 0;
  /** The bytes that count against the maximum: of new rows, and those by which animals and categories grow. */
  addedBytes = 0;
  /** True if the transaction may pass the maximum. */
  mayPass = false;
  readonly #drafts: readonly DraftTable[];
  readonly #tx: Transaction;
  readonly #tables: Tables;
  readonly #maxBytes: number;
  /** For each change, the oldest first, what takes it back. */
  readonly undo: (() => void)[] = [];

  /** `maxBytes`: the most that all tables may have. */
  constructor(tables: Tables, maxBytes = Number.POSITIVE_INFINITY) {
    [this.#tables, this.#maxBytes] = [tables, maxBytes];
    this.#drafts = TABLE_NAMES.map((name) => new DraftTable(name, tables.of(name), this));
    this.#tx = Object.fromEntries(this.#drafts.map((table) => [table.name, table])) as unknown as Transaction;
  }

  /** Runs the work. If it throws, or there is no room for what it has put, its changes are undone. */
  run<T>(work: (tx: Transaction) => T): T {
    const { bytes, addedBytes } = this;
    const { length } = this.undo;
    this.mayPass = false;
    try {
      const result = work(this.#tx);
      if (result instanceof Promise) throw new Error('the work of a transaction must be synchronous');
      if (this.bytes - bytes > MAX_TRANSACTION_BYTES) throw new Error('a transaction is too large');
      const isOver = this.addedBytes > addedBytes && this.#tables.bytes + this.addedBytes > this.#maxBytes;
      if (isOver && !this.mayPass) {
        const mb = Math.floor(this.#maxBytes / 2 ** 20);
        throw new StoreError('full', `the store has reached its maximum of ${mb} MB`, true);
      }
      return result;
    } catch (error) {
      for (const undo of this.undo.splice(length).reverse()) undo();
      [this.bytes, this.addedBytes] = [bytes, addedBytes];
      throw error;
    }
  }

  /** Whether a transaction has changed anything: what those behind it see may be lost with the batch. */
  get hasChanges(): boolean {
    return this.undo.length > 0;
  }

  get changes(): Changes {
    return this.#drafts.filter(({ clears, rows }) => clears || rows.size > 0);
  }
}

class DraftTable implements TableChanges {
  readonly name: TableName;
  clears = false;
  rows = new Map<Id, Put | null>();
  readonly #table: RowMap<Row>;
  readonly #draft: Draft;
  #lastId: number | undefined;

  constructor(name: TableName, table: RowMap<Row>, draft: Draft) {
    [this.name, this.#table, this.#draft] = [name, table, draft];
    if (table instanceof CountedRows) this.#lastId = table.lastId;
  }

  get(id: Id): Row | undefined {
    const put = this.rows.get(id);
    if (put !== undefined) return put?.row;
    return this.clears ? undefined : this.#table.get(id);
  }

  /** Of a table with an index: the row with that value in it. */
  find(value: unknown): Row | undefined {
    const table = this.#table as CountedRows<CountedRow, unknown>;
    for (const put of this.rows.values())
      if (put && table.valuesOf!(put.row as CountedRow).includes(value)) return put.row;
    const found = this.clears ? undefined : table.find(value);
    return found === undefined || this.rows.has(found.id) ? undefined : found;
  }

  get pending(): number {
    return this.rows.size;
  }

  undurable(): Row[] {
    return [...this.rows.values()].flatMap((put) => put?.row ?? []);
  }

  put(given: Row): void {
    const row = schemaOf(this.name).read({ ...given });
    if (this.#lastId !== undefined && this.get(row.id) === undefined) {
      throw new Error(`${this.name} ${row.id}: only add gives an id`);
    }
    this.#set(row.id, row);
  }

  add(given: object): Row {
    const id = this.#lastId! + 1;
    const row = schemaOf(this.name).read({ id, ...given }); // `id` behind `...` would be ten times slower
    this.#set(id, row);
    this.#lastId = id;
    return row;
  }

  delete(id: Id): void {
    if (this.get(id) !== undefined) this.#set(id, undefined);
  }

  clear(): void {
    const [rows, clears, lastId] = [this.rows, this.clears, this.#lastId];
    this.#draft.undo.push(() => ([this.rows, this.clears, this.#lastId] = [rows, clears, lastId]));
    if (!clears) for (const row of this.#table.all()) this.#draft.addedBytes -= bytesOfRow(this.name, row);
    [this.rows, this.clears] = [new Map(), true];
    if (lastId !== undefined) this.#lastId = 0;
  }

  #set(id: Id, row: Row | undefined): void {
    const [rows, lastId] = [this.rows, this.#lastId];
    const before = rows.get(id);
    this.#draft.undo.push(() => {
      if (before === undefined) rows.delete(id);
      else rows.set(id, before);
      this.#lastId = lastId;
    });
    const put = row ? { row, text: schemaOf(this.name).json(row) } : null;
    if (put) this.#countBytes(id, bytesOf(put.text));
    rows.set(id, put);
  }

  /** Before the row is put: `bytes` is its new length. */
  #countBytes(id: Id, bytes: number): void {
    const draft = this.#draft;
    const before = this.get(id);
    draft.bytes += bytes;
    if (before === undefined) draft.addedBytes += bytes;
    else if (GROWING.includes(this.name)) draft.addedBytes += bytes - bytesOfRow(this.name, before);
    if (before !== undefined && PASSING.includes(this.name)) draft.mayPass = true;
  }
}
