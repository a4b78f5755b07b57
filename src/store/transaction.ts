/**
 * The rows as they will be when a batch is durable: what its transactions have put, over the tables. It is the `tx` of
 * each of them, one after the other.
 */
import type { ApiKey, Category, Id, Order, Pet, Replay, Row, TableName, Transaction, Usage } from './model.ts';
import { schemaOf, TABLE_NAMES } from './model.ts';
import { CountedRows, IndexedRows, type RowMap } from './rows.ts';
import type { Changes, Tables } from './tables.ts';

interface Put<R> {
  readonly row: R;
  readonly text: string;
}

export class Draft implements Transaction {
  readonly pets: DraftTable<Pet>;
  readonly orders: DraftTable<Order>;
  readonly categories: DraftTable<Category>;
  readonly keys: DraftTable<ApiKey>;
  readonly replays: DraftTable<Replay>;
  readonly usage: DraftTable<Usage>;
  /** The bytes of all that was put, as JSON. */
  bytes = 0;
  /** Of these, the ones of rows that were not there before. */
  addedBytes = 0;
  /** False while no transaction runs: a `tx` that outlives its transaction must not slip in changes. */
  isOpen = false;
  /** What takes back each change, in their order. */
  readonly #undo: (() => void)[] = [];

  constructor(tables: Tables) {
    this.pets = new DraftTable('pets', tables.pets, this);
    this.orders = new DraftTable('orders', tables.orders, this);
    this.categories = new DraftTable('categories', tables.categories, this);
    this.keys = new DraftTable('keys', tables.keys, this);
    this.replays = new DraftTable('replays', tables.replays, this);
    this.usage = new DraftTable('usage', tables.usage, this);
  }

  /** Does the work, or nothing if it throws, or `check` of how many bytes it has put, and how many of these are new. */
  run<T>(work: (tx: Transaction) => T, check: (bytes: number, addedBytes: number) => void): T {
    const { count, bytes, addedBytes } = this;
    this.isOpen = true;
    try {
      const result = work(this);
      if (result instanceof Promise) throw new Error('the work of a transaction must be synchronous');
      check(this.bytes - bytes, this.addedBytes - addedBytes);
      return result;
    } catch (error) {
      for (const undo of this.#undo.splice(count).reverse()) undo();
      [this.bytes, this.addedBytes] = [bytes, addedBytes];
      throw error;
    } finally {
      this.isOpen = false;
    }
  }

  /** How many changes there are. */
  get count(): number {
    return this.#undo.length;
  }

  onRollback(undo: () => void): void {
    this.#undo.push(undo);
  }

  get changes(): Changes {
    return TABLE_NAMES.filter((name) => this[name].isChanged).map((name) => this[name].changes);
  }
}

class DraftTable<R extends Row> {
  readonly #name: TableName;
  readonly #table: RowMap<R>;
  readonly #draft: Draft;
  /** What was put; undefined: removed. */
  #changed = new Map<Id, Put<R> | undefined>();
  #clears = false;
  #lastId: number | undefined;

  constructor(name: TableName, table: RowMap<R>, draft: Draft) {
    [this.#name, this.#table, this.#draft] = [name, table, draft];
    if (table instanceof CountedRows) this.#lastId = table.lastId;
  }

  get(id: Id): R | undefined {
    const put = this.#changed.get(id);
    if (put !== undefined) return put.row;
    return this.#clears || this.#changed.has(id) ? undefined : this.#table.get(id);
  }

  /** The row with that value of the table's index. */
  find(value: unknown): R | undefined {
    const table = this.#table;
    if (!(table instanceof IndexedRows)) throw new Error(`${this.#name}: there is no index`);
    for (const put of this.#changed.values()) if (put && table.valuesOf(put.row).includes(value)) return put.row;
    const found = this.#clears ? undefined : table.find(value);
    return found === undefined || this.#changed.has(found.id) ? undefined : found;
  }

  put(given: R): void {
    const row = this.#checked({ ...given });
    if (this.#lastId !== undefined && this.get(row.id) === undefined) {
      throw new Error(`${this.#name} ${row.id}: only add gives an id`);
    }
    this.#set(row.id, row);
  }

  add(given: Omit<R, 'id'>): R {
    const before = this.#lastId!;
    const row = this.#checked({ id: before + 1, ...given } as unknown as R); // `id` behind `...` would be ten times slower
    this.#set(row.id, row);
    this.#lastId = before + 1;
    return row;
  }

  delete(id: R['id']): void {
    if (this.get(id) !== undefined) this.#set(id, undefined);
  }

  clear(): void {
    this.#mustBeOpen();
    const [changed, clears, lastId] = [this.#changed, this.#clears, this.#lastId];
    this.#draft.onRollback(() => ([this.#changed, this.#clears, this.#lastId] = [changed, clears, lastId]));
    [this.#changed, this.#clears] = [new Map(), true];
    if (lastId !== undefined) this.#lastId = 0;
  }

  get isChanged(): boolean {
    return this.#clears || this.#changed.size > 0;
  }

  get changes(): Changes[number] {
    const puts: Put<R>[] = [];
    const deleted: Id[] = [];
    for (const [id, put] of this.#changed) put ? puts.push(put) : deleted.push(id);
    const [rows, texts] = [puts.map(({ row }) => row), puts.map(({ text }) => text)];
    return { name: this.#name, clears: this.#clears, rows, texts, deleted };
  }

  #set(id: Id, row: R | undefined): void {
    this.#mustBeOpen();
    const changed = this.#changed;
    const lastId = this.#lastId;
    const isAgain = changed.has(id);
    const before = changed.get(id);
    this.#draft.onRollback(() => {
      if (isAgain) changed.set(id, before);
      else changed.delete(id);
      this.#lastId = lastId;
    });
    if (row === undefined) {
      changed.set(id, undefined);
      return;
    }
    const text = schemaOf(this.#name).json(row);
    const bytes = Buffer.byteLength(text) + 1;
    this.#draft.bytes += bytes;
    if (this.get(id) === undefined) this.#draft.addedBytes += bytes;
    changed.set(id, { row, text });
  }

  #checked(row: R): R {
    try {
      return schemaOf(this.#name).read(row) as R;
    } catch (error) {
      throw new Error(`${this.#name} ${row.id}: ${(error as Error).message}`);
    }
  }

  #mustBeOpen(): void {
    if (!this.#draft.isOpen) throw new Error('this transaction has ended');
  }
}
