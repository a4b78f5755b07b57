/** All tables in memory, and what changes them. */
import {
  type ApiKey,
  type Category,
  COUNTED,
  type Counted,
  hasEnded,
  type Id,
  type Order,
  type Pet,
  type Reads,
  type Replay,
  type Row,
  type Rows,
  schemaOf,
  TABLE_NAMES,
  type TableName,
  type Usage,
} from './model.ts';
import { Replays } from './replays.ts';
import { CountedRows, IndexedRows, type RowMap, SortedRows } from './rows.ts';

/** What a transaction, or a batch of them, does to one table: `clears` first, then rows as they now are. */
export interface TableChanges {
  readonly name: TableName;
  readonly clears: boolean;
  readonly rows: readonly Row[];
  /** The rows as JSON, if that was made already. */
  readonly texts?: readonly string[];
  readonly deleted: readonly Id[];
}
export type Changes = readonly TableChanges[];

/** All rows as of one moment. */
export interface Snapshot {
  readonly lastIds: Readonly<Record<Counted, number>>;
  readonly rows: { readonly [T in TableName]: readonly Rows[T][] };
}

export class Tables implements Reads {
  readonly pets = new CountedRows<Pet>();
  readonly orders = new IndexedRows<Order, number>(({ status, petId }) => (status === 'placed' ? [petId] : []));
  readonly categories = new SortedRows<Category>();
  readonly keys = new IndexedRows<ApiKey, string>(({ secrets }) => secrets.map(({ digest }) => digest));
  readonly replays = new Replays(
    () => this.now(),
    (row) => (this.bytes -= bytesOf('replays', row)),
  );
  readonly usage = new SortedRows<Usage>();
  /** About the length of a file with just these rows. */
  bytes = 0;
  /** Store time, by which replays end. Zero while rows are read: what is read does not depend on the clock. */
  now: () => number;

  constructor(now: () => number = () => 0) {
    this.now = now;
  }

  of(name: TableName): RowMap<Row> {
    return this[name] as unknown as RowMap<Row>;
  }

  /** Applies a durable batch, and is done with it before anybody reads. */
  apply(changes: Changes, batch: number): void {
    for (const { name, clears, rows, texts, deleted } of changes) {
      const table = this.of(name);
      if (clears) {
        for (const row of table.all()) this.bytes -= bytesOf(name, row);
        table.clear();
      }
      for (const [at, row] of rows.entries()) {
        this.#swap(name, table.put(row), texts ? Buffer.byteLength(texts[at]) + 1 : bytesOf(name, row));
      }
      for (const id of deleted) this.#swap(name, table.delete(id), 0);
      table.version = batch;
    }
    this.replays.dropEnded();
  }

  /** A file begins: the ids up to these were given. */
  begin(lastIds: Readonly<Record<Counted, number>>): void {
    for (const name of COUNTED) this[name].lastId = lastIds[name];
  }

  /** Takes rows that a file begins with. `bytes`: their length in it. */
  load(name: TableName, rows: readonly Row[], bytes: number, batch: number): void {
    const table = this.of(name);
    for (const row of rows) table.put(row);
    this.bytes += bytes;
    table.version = batch;
  }

  /** Replays that have ended are left out. */
  snapshot(now: number): Snapshot {
    const rows = Object.fromEntries(TABLE_NAMES.map((name) => [name, this.of(name).all()])) as Record<TableName, Row[]>;
    rows.replays = (rows.replays as Replay[]).filter((replay) => !hasEnded(replay, now));
    return { lastIds: this.lastIds, rows: rows as Snapshot['rows'] };
  }

  get lastIds(): Record<Counted, number> {
    return Object.fromEntries(COUNTED.map((name) => [name, this[name].lastId])) as Record<Counted, number>;
  }

  get isEmpty(): boolean {
    return TABLE_NAMES.every((name) => this[name].size === 0);
  }

  #swap(name: TableName, before: Row | undefined, bytes: number): void {
    this.bytes += bytes - (before ? bytesOf(name, before) : 0);
  }
}

/** What no transaction of the shop can have left; undefined if there is nothing of it. */
export function contradictionIn(orders: Iterable<Order>): string | undefined {
  const ordered = new Set<number>();
  for (const { petId, status } of orders) {
    if (status !== 'placed') continue;
    if (ordered.has(petId)) return `two orders are placed for animal ${petId}`;
    ordered.add(petId);
  }
  return undefined;
}

const bytesOf = (name: TableName, row: Row): number => Buffer.byteLength(schemaOf(name).json(row)) + 1;
