/** All tables in memory, and what changes them. */
import {
  COUNTED,
  type Counted,
  hasEnded,
  type Id,
  type Order,
  type Reads,
  type Row,
  type Rows,
  schemaOf,
  type TableName,
} from './model.ts';
import { CountedRows, MapRows, type MemoryTable, Replays } from './rows.ts';

/** A row that is put, and the row as JSON. */
export interface Put<R extends Row = Row> {
  readonly row: R;
  readonly text: string;
}

/** What a batch does to one table. */
export interface TableChanges {
  readonly name: TableName;
  /** True: all rows from before are removed first. */
  readonly clears: boolean;
  /** The rows as they now are; null: removed. */
  readonly rows: ReadonlyMap<Id, Put | null>;
}
export type Changes = readonly TableChanges[];

/** The rows that are put, as JSON, and the ids of those that are removed. */
export function split(rows: TableChanges['rows']): { texts: string[]; removed: Id[] } {
  const texts: string[] = [];
  const removed: Id[] = [];
  for (const [id, put] of rows) put ? texts.push(put.text) : removed.push(id);
  return { texts, removed };
}

/** All rows as of one moment. */
export interface Snapshot {
  readonly lastIds: Readonly<Record<Counted, number>>;
  readonly rows: { readonly [T in TableName]: readonly Rows[T][] };
}

export class Tables implements Reads {
  readonly pets = new CountedRows<Rows['pets']>();
  readonly orders = new CountedRows<Order, number>(({ status, petId }) => (status === 'placed' ? [petId] : []));
  readonly categories = new MapRows<Rows['categories']>();
  readonly keys = new CountedRows<Rows['keys'], string>(({ secrets }) => secrets.map(({ digest }) => digest));
  readonly replays = new Replays(
    () => this.now(),
    (row) => this.#discount('replays', row),
  );
  readonly usage = new MapRows<Rows['usage']>();
  /** About the length of a file with just these rows. */
  bytes = 0;
  /** Store time, by which replays end. Zero while rows are read: what is read does not depend on the clock. */
  now: () => number = () => 0;

  /** For code that handles all tables alike. */
  of(name: TableName): MemoryTable<Row> {
    return this[name];
  }

  /** Applies a durable batch at once: nobody reads half of it. */
  apply(changes: Changes, batch: number): void {
    for (const { name, clears, rows } of changes) {
      const table = this.of(name);
      if (clears) {
        for (const row of table.all()) this.#discount(name, row);
        table.clear();
      }
      for (const [id, put] of rows) {
        this.#discount(name, put ? table.put(put.row) : table.delete(id));
        if (put) this.bytes += bytesOf(put.text);
      }
      table.revision = batch;
    }
    this.replays.dropEnded();
  }

  /** Takes rows as they were after a batch. `bytes`: their length in a file, if that is known already. */
  load(name: TableName, rows: readonly Row[], batch: number, bytes?: number): void {
    const table = this.of(name);
    for (const row of rows) this.#discount(name, table.put(row));
    this.bytes += bytes ?? rows.reduce((sum, row) => sum + bytesOfRow(name, row), 0);
    table.revision = batch;
  }

  /** A file begins: the ids up to these were given. */
  begin(lastIds: Snapshot['lastIds']): void {
    for (const name of COUNTED) this[name].lastId = lastIds[name];
  }

  /** Replays that have ended are left out. */
  snapshot(now: number): Snapshot {
    const rows = {
      pets: this.pets.all(),
      orders: this.orders.all(),
      categories: this.categories.all(),
      keys: this.keys.all(),
      replays: this.replays.all().filter((one) => !hasEnded(one, now)),
      usage: this.usage.all(),
    };
    return { lastIds: this.lastIds, rows };
  }

  get lastIds(): Record<Counted, number> {
    return { pets: this.pets.lastId, orders: this.orders.lastId, keys: this.keys.lastId };
  }

  /** A row is no longer there. */
  #discount(name: TableName, row: Row | undefined): void {
    if (row !== undefined) this.bytes -= bytesOfRow(name, row);
  }
}

/** The length of a row in a file. */
export const bytesOf = (text: string): number => Buffer.byteLength(text) + 1;
export const bytesOfRow = (name: TableName, row: Row): number => bytesOf(schemaOf(name).json(row));

/** A contradiction that no transaction of the shop leaves, in words; undefined: there is none. */
export function contradictionIn(orders: Iterable<Order>, hasPet: (id: number) => boolean): string | undefined {
  const ordered = new Set<number>();
  for (const { id, petId, status } of orders) {
    if (status !== 'placed') continue;
    if (ordered.has(petId)) return `two orders are placed for animal ${petId}`;
    if (!hasPet(petId)) return `order ${id} is placed for animal ${petId}, which is missing`;
    ordered.add(petId);
  }
  return undefined;
}
