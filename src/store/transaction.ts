/**
 * The rows as they will be when a batch is durable: what its transactions have put, over the rows of the tables. The
 * transactions run one after the other, and all of them on the same `tx`.
 */
import { type Id, type Row, type Rows, StoreError, TABLES, type TableName, type Transaction } from './model.ts';
import type { CountedRow, CountedRows, MemoryTable } from './rows.ts';
import type { TableSchema } from './schema.ts';
import { bytesOf, type Changes, type Put, type TableChanges, type Tables } from './tables.ts';

/**
 * The most bytes that one transaction puts. A batch that is almost full (`FULL_BATCH_BYTES`) still takes a transaction
 * of this size, and its line is then no longer than `MAX_LINE_BYTES`, the longest that is read.
 */
const MAX_TRANSACTION_BYTES = 24 * 1024 * 1024;

/** A new row counts against the maximum of the store in every table. In these, a row that becomes longer counts too. */
const GROWING: readonly TableName[] = ['pets', 'categories'];
/** A full store still takes a transaction that changes a row of these: so orders can be closed, and keys revoked. */
const CHANGED_WHEN_FULL: readonly TableName[] = ['orders', 'keys', 'usage'];

export class Draft {
  /** The bytes of all rows that were put, as JSON. */
  bytes = 0;
  /** The bytes that count against the maximum. */
  addedBytes = 0;
  /** True if the transaction that runs is taken although the store is full. */
  isTakenWhenFull = false;
  /** What undoes each change of the batch, the oldest first. */
  readonly undo: (() => void)[] = [];
  readonly #drafts: { readonly [T in TableName]: DraftTable<Rows[T]> } & Transaction;
  readonly #tables: Tables;
  readonly #maxBytes: number;

  /** `maxBytes`: the most that all tables may have. */
  constructor(tables: Tables, maxBytes = Number.POSITIVE_INFINITY) {
    this.#tables = tables;
    this.#maxBytes = maxBytes;
    this.#drafts = {
      pets: new CountedDraft('pets', TABLES.pets, tables.pets, this),
      orders: new CountedDraft('orders', TABLES.orders, tables.orders, this),
      categories: new DraftTable('categories', TABLES.categories, tables.categories, this),
      keys: new CountedDraft('keys', TABLES.keys, tables.keys, this),
      replays: new DraftTable('replays', TABLES.replays, tables.replays, this),
      usage: new DraftTable('usage', TABLES.usage, tables.usage, this),
    };
  }

  /** Runs the work. If it throws, or there is no room for what it has put, its changes are undone. */
  run<T>(work: (tx: Transaction) => T): T {
    const { bytes, addedBytes } = this;
    const { length } = this.undo;
    this.isTakenWhenFull = false;
    try {
      const result = work(this.#drafts);
      if (result instanceof Promise) throw new Error('the work of a transaction must be synchronous');
      if (this.bytes - bytes > MAX_TRANSACTION_BYTES) throw new Error('a transaction is too large');
      const isOver = this.addedBytes > addedBytes && this.#tables.bytes + this.addedBytes > this.#maxBytes;
      if (isOver && !this.isTakenWhenFull) {
        const mb = Math.floor(this.#maxBytes / 2 ** 20);
        throw new StoreError('full', `the store has reached its maximum of ${mb} MB`, true);
      }
      return result;
    } catch (error) {
      for (const undo of this.undo.splice(length).reverse()) undo();
      this.bytes = bytes;
      this.addedBytes = addedBytes;
      throw error;
    }
  }

  /** True once a transaction has changed something. What later ones see of it is lost if the batch is. */
  get hasChanges(): boolean {
    return this.undo.length > 0;
  }

  get changes(): Changes {
    return Object.values(this.#drafts).filter(({ clears, rows }) => clears || rows.size > 0);
  }
}

class DraftTable<R extends Row> implements TableChanges {
  readonly name: TableName;
  clears = false;
  rows = new Map<Id, Put<R> | null>();
  protected readonly schema: TableSchema<R>;
  protected readonly draft: Draft;
  readonly #table: MemoryTable<R>;

  constructor(name: TableName, schema: TableSchema<R>, table: MemoryTable<R>, draft: Draft) {
    this.name = name;
    this.schema = schema;
    this.draft = draft;
    this.#table = table;
  }

  get(id: R['id']): R | undefined {
    const put = this.rows.get(id);
    if (put !== undefined) return put?.row;
    return this.clears ? undefined : this.#table.get(id);
  }

  get pending(): number {
    return this.rows.size;
  }

  undurable(): R[] {
    return [...this.rows.values()].flatMap((put) => put?.row ?? []);
  }

  put(given: R): void {
    const row = this.schema.read({ ...given });
    this.set(row.id, row);
  }

  delete(id: R['id']): void {
    if (this.get(id) !== undefined) this.set(id, undefined);
  }

  clear(): void {
    const { rows, clears } = this;
    this.draft.undo.push(() => {
      this.rows = rows;
      this.clears = clears;
    });
    if (!clears) for (const row of this.#table.all()) this.draft.addedBytes -= this.#bytesOf(row);
    this.rows = new Map();
    this.clears = true;
  }

  protected set(id: R['id'], row: R | undefined): void {
    const { rows } = this;
    const before = rows.get(id);
    this.draft.undo.push(() => {
      if (before === undefined) rows.delete(id);
      else rows.set(id, before);
    });
    const put = row ? { row, text: this.schema.json(row) } : null;
    if (put) this.#countBytes(id, bytesOf(put.text));
    rows.set(id, put);
  }

  /** Before the row is put: `bytes` is its new length. */
  #countBytes(id: R['id'], bytes: number): void {
    const { draft, name } = this;
    const before = this.get(id);
    draft.bytes += bytes;
    if (before === undefined) draft.addedBytes += bytes;
    else if (GROWING.includes(name)) draft.addedBytes += bytes - this.#bytesOf(before);
    if (before !== undefined && CHANGED_WHEN_FULL.includes(name)) draft.isTakenWhenFull = true;
  }

  #bytesOf(row: R): number {
    return bytesOf(this.schema.json(row));
  }
}

/** A table whose ids the store gives. */
class CountedDraft<R extends CountedRow, V> extends DraftTable<R> {
  readonly #table: CountedRows<R, V>;
  #lastId: number;

  constructor(name: TableName, schema: TableSchema<R>, table: CountedRows<R, V>, draft: Draft) {
    super(name, schema, table, draft);
    this.#table = table;
    this.#lastId = table.lastId;
  }

  /** Looks at all rows that the batch has put: 80 ms for a full queue of transactions that all put and look. */
  find(value: V): R | undefined {
    for (const put of this.rows.values()) if (put && this.#table.valuesOf(put.row).includes(value)) return put.row;
    const found = this.clears ? undefined : this.#table.find(value);
    return found === undefined || this.rows.has(found.id) ? undefined : found;
  }

  override put(given: R): void {
    if (this.get(given.id) === undefined) throw new Error(`${this.name} ${given.id}: only add gives an id`);
    super.put(given);
  }

  add(given: Omit<R, 'id'>): R {
    const id = this.#lastId + 1;
    const row = this.schema.read({ id, ...given }); // for speed: with `id` last, this would take ten times as long
    this.set(id, row);
    this.#setLastId(id);
    return row;
  }

  override clear(): void {
    super.clear();
    this.#setLastId(0);
  }

  #setLastId(id: number): void {
    const before = this.#lastId;
    this.draft.undo.push(() => (this.#lastId = before));
    this.#lastId = id;
  }
}
