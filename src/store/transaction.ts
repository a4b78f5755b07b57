/**
 * The rows as they will be when a batch is durable. Its transactions run one after the other. Each has changes of its own
 * over those of the batch so far, which lie over the rows of the tables; when it ends, they become the batch's. One that
 * throws has changed nothing: its changes are forgotten with it.
 */
import { type Row, type Rows, StoreError, TABLE_NAMES, type TableName, type Transaction } from './model.ts';
import type { Schema } from './schema.ts';
import { bytesOf, type Change, type Changes, type Table, type Tables } from './tables.ts';

type TableDrafts = { readonly [T in TableName]: TableDraft<Rows[T]> };
/** What a draft lies over: the table, or the draft of the batch. */
type Below<R extends Row> = Table<R> | TableDraft<R>;

const draftsOver = (below: { readonly [T in TableName]: Below<Rows[T]> }): TableDrafts => ({
  pets: new TableDraft(below.pets),
  orders: new TableDraft(below.orders),
  categories: new TableDraft(below.categories),
  keys: new TableDraft(below.keys),
  replays: new TableDraft(below.replays),
  usage: new TableDraft(below.usage),
});

export class Draft {
  /** By how many bytes the rows may still become more. */
  #room: number;
  readonly #batch: TableDrafts;
  readonly #maxBytes: number;

  /** `maxBytes`: the most that all tables may have. */
  constructor(tables: Tables, maxBytes = Number.POSITIVE_INFINITY) {
    this.#room = maxBytes - tables.bytes;
    this.#maxBytes = maxBytes;
    this.#batch = draftsOver(tables);
  }

  /**
   * Runs the work. If it throws, or there is no room for what it has put, its changes are forgotten. A full store refuses
   * what makes it grow, but takes the change of an order or a key: so orders can be closed, and keys revoked.
   */
  run<T>(work: (tx: Transaction) => T): T {
    const own = draftsOver(this.#batch);
    const result = work(own);
    if (result instanceof Promise) throw new Error('the work of a transaction must be synchronous');
    const growth = growthOf(own);
    if (growth > 0 && growth > this.#room && !own.orders.changesRows() && !own.keys.changesRows()) {
      const mb = Math.floor(this.#maxBytes / 2 ** 20);
      throw new StoreError('bound', `the store has reached its maximum of ${mb} MB`);
    }
    for (const draft of Object.values(own)) draft.keep();
    this.#room -= growth;
    return result;
  }

  get changes(): Changes {
    const all = TABLE_NAMES.map((name) => ({ name, rows: [...this.#batch[name].changes.values()] }));
    return all.filter(({ rows }) => rows.length > 0);
  }
}

/** By how many bytes the rows become more. Usage does not count: each key has one row of it. */
function growthOf(drafts: TableDrafts): number {
  const { pets, orders, categories, keys, replays } = drafts;
  return [pets, orders, categories, keys, replays].reduce((sum, draft) => sum + draft.growth(), 0);
}

/** One table, as a transaction or the batch so far leaves it. */
export class TableDraft<R extends Row> {
  readonly changes = new Map<R['id'], Change<R>>();
  readonly schema: Schema<R>;
  lastId: number;
  readonly #below: Below<R>;

  constructor(below: Below<R>) {
    this.schema = below.schema;
    this.lastId = below.lastId;
    this.#below = below;
  }

  get(id: R['id']): R | undefined {
    const change = this.changes.get(id);
    return change === undefined ? this.#below.get(id) : change.row;
  }

  /** The row as JSON. */
  text(id: R['id']): string | undefined {
    const change = this.changes.get(id);
    return change === undefined ? this.#below.text(id) : change.text;
  }

  /** As `Table.find`. Looks at all rows that the batch has changed: 80 ms for a full queue that all put and look. */
  find(value: unknown): R | undefined {
    for (const { row } of this.changes.values()) {
      if (row !== undefined && this.schema.valuesOf(row).includes(value)) return row;
    }
    const found = this.#below.find(value);
    return found === undefined || this.changes.has(found.id) ? undefined : found;
  }

  /** The rows that the batch has put, which the reads do not show yet. */
  undurable(): R[] {
    const before = this.#below instanceof TableDraft ? this.#below.undurable() : [];
    return [...before, ...[...this.changes.values()].flatMap(({ row }) => row ?? [])];
  }

  /** Returns the row as JSON. */
  put(given: R): string {
    const row = this.schema.read(given);
    const text = this.schema.json(row);
    this.set({ id: row.id, row, text });
    return text;
  }

  /** Puts a row with the next id, and returns it. */
  add(given: Omit<R, 'id'>): R {
    this.put({ id: this.lastId + 1, ...given } as R); // `id` first: with it last, V8 takes ten times as long
    return this.get(this.lastId)!;
  }

  delete(id: R['id']): void {
    if (this.text(id) !== undefined) this.set({ id });
  }

  /** The transaction has ended well: the next ones see what it has changed. */
  keep(): void {
    for (const change of this.changes.values()) this.#below.set(change);
  }

  /** By how many bytes the rows become more; less than 0, if they become fewer or shorter. */
  growth(): number {
    let bytes = 0;
    for (const { id, text } of this.changes.values()) bytes += bytesOf(text) - bytesOf(this.#below.text(id));
    return bytes;
  }

  /** Whether a row that was there has changed. */
  changesRows(): boolean {
    return [...this.changes.keys()].some((id) => this.#below.text(id) !== undefined);
  }

  set(change: Change<R>): void {
    this.changes.set(change.id, change);
    if (typeof change.id === 'number' && change.id > this.lastId) this.lastId = change.id;
  }
}
