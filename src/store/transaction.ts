/**
 * The rows as they will be when a batch is durable. Its transactions run one after the other. Each has its own changes,
 * over those of the batch so far, over the rows of the tables; when it ends, they become the batch's. One that throws has
 * changed nothing: its changes are forgotten with it.
 */
import { type Row, StoreError, schemaOf, TABLE_NAMES, type TableName, type Transaction } from './model.ts';
import type { Schema } from './schema.ts';
import { bytesOf, type Change, type Changes, type Table, type Tables } from './tables.ts';

/**
 * The most bytes that one transaction puts. A batch that is almost full (`FULL_BATCH_BYTES`) still takes a transaction
 * of this size, and its line is then no longer than `MAX_LINE_BYTES`, the longest that is read.
 */
const MAX_TRANSACTION_BYTES = 24 * 1024 * 1024;

export class Draft {
  /** The bytes of all rows that were put, as JSON. */
  bytes = 0;
  /** The bytes by which the rows have become more. */
  #growth = 0;
  readonly #drafts: readonly TableDraft<Row>[];
  readonly #tx: Transaction;
  readonly #tables: Tables;
  readonly #maxBytes: number;

  /** `maxBytes`: the most that all tables may have. */
  constructor(tables: Tables, maxBytes = Number.POSITIVE_INFINITY) {
    this.#tables = tables;
    this.#maxBytes = maxBytes;
    this.#drafts = TABLE_NAMES.map((name) => new TableDraft(name, tables[name] as unknown as Table<Row, unknown>));
    this.#tx = Object.fromEntries(this.#drafts.map((draft) => [draft.name, draft])) as unknown as Transaction;
  }

  /** Runs the work. If it throws, or there is no room for what it has put, its changes are forgotten. */
  run<T>(work: (tx: Transaction) => T): T {
    try {
      const result = work(this.#tx);
      if (result instanceof Promise) throw new Error('the work of a transaction must be synchronous');
      const { bytes, growth, mayPass } = this.#sizes();
      if (bytes > MAX_TRANSACTION_BYTES) throw new Error('a transaction is too large');
      if (growth > 0 && !mayPass && this.#tables.bytes + this.#growth + growth > this.#maxBytes) {
        const mb = Math.floor(this.#maxBytes / 2 ** 20);
        throw new StoreError('full', `the store has reached its maximum of ${mb} MB`, true);
      }
      for (const draft of this.#drafts) draft.keep();
      this.bytes += bytes;
      this.#growth += growth;
      return result;
    } finally {
      for (const draft of this.#drafts) draft.forget();
    }
  }

  get changes(): Changes {
    const changed = this.#drafts.filter(({ rows }) => rows.size > 0);
    return changed.map(({ name, rows }) => ({ name, rows: [...rows.values()] }));
  }

  /**
   * What the transaction has put, and by how much the rows become more (less, if some become shorter or are removed). A
   * full store refuses what makes it grow: a new row, or one that becomes longer. `mayPass`: it still takes the change of
   * an order or a key, so that orders can be closed and keys revoked. Usage does not count: each key has one row of it.
   */
  #sizes() {
    let [bytes, growth, mayPass] = [0, 0, false];
    for (const draft of this.#drafts) {
      for (const { id, text } of draft.own.values()) {
        const [before, now] = [draft.bytesBefore(id), bytesOf(text)];
        bytes += now;
        if (draft.name !== 'usage') growth += now - before;
        if (before > 0 && (draft.name === 'orders' || draft.name === 'keys')) mayPass = true;
      }
    }
    return { bytes, growth, mayPass };
  }
}

/** One table, as a transaction sees and changes it. */
export class TableDraft<R extends Row> {
  readonly name: TableName;
  /** What the transactions before this one in the batch have changed. */
  readonly rows = new Map<R['id'], Change<R>>();
  /** What this transaction has changed. */
  readonly own = new Map<R['id'], Change<R>>();
  readonly #table: Table<R, unknown>;
  readonly #schema: Schema<R>;
  #lastId: number;
  #keptLastId: number;

  constructor(name: TableName, table: Table<R, unknown>) {
    this.name = name;
    this.#table = table;
    this.#schema = schemaOf(name) as unknown as Schema<R>;
    this.#lastId = this.#keptLastId = table.lastId;
  }

  get(id: R['id']): R | undefined {
    const change = this.#changed(id);
    return change === undefined ? this.#table.get(id) : change.row;
  }

  /** The row as JSON. */
  text(id: R['id']): string | undefined {
    const change = this.#changed(id);
    return change === undefined ? this.#table.text(id) : change.text;
  }

  /** As `Table.find`. Looks at all rows that the batch has changed: 80 ms for a full queue that all put and look. */
  find(value: unknown): R | undefined {
    for (const id of [...this.own.keys(), ...this.rows.keys()]) {
      const row = this.#changed(id)?.row;
      if (row !== undefined && this.#table.valuesOf(row).includes(value)) return row;
    }
    const durable = this.#table.find(value);
    return durable === undefined || this.#changed(durable.id) !== undefined ? undefined : durable;
  }

  /** The rows that the batch has put, which the reads do not show yet. */
  undurable(): R[] {
    return [...this.rows.values(), ...this.own.values()].flatMap(({ row }) => row ?? []);
  }

  /** Returns the row as JSON. */
  put(given: R): string {
    const row = this.#schema.read(given);
    const text = this.#schema.json(row);
    this.own.set(row.id, { id: row.id, row, text });
    return text;
  }

  /** Puts a row with the next id, and returns it. */
  add(given: Omit<R, 'id'>): R {
    this.put({ id: this.#lastId + 1, ...given } as R); // `id` first: with it last, V8 takes ten times as long
    this.#lastId++;
    return this.get(this.#lastId)!;
  }

  delete(id: R['id']): void {
    if (this.text(id) !== undefined) this.own.set(id, { id });
  }

  /** The length of the row before this transaction. */
  bytesBefore(id: R['id']): number {
    const kept = this.rows.get(id);
    return bytesOf(kept === undefined ? this.#table.text(id) : kept.text);
  }

  /** The transaction has ended well: the next ones see what it has changed. */
  keep(): void {
    for (const [id, change] of this.own) this.rows.set(id, change);
    this.#keptLastId = this.#lastId;
  }

  /** What was not kept is gone. */
  forget(): void {
    if (this.own.size > 0) this.own.clear(); // to clear an empty Map is not free
    this.#lastId = this.#keptLastId;
  }

  /** Undefined: the batch has not changed it. */
  #changed(id: R['id']): Change<R> | undefined {
    return this.own.get(id) ?? this.rows.get(id);
  }
}
