/**
 * All tables in memory. A row is kept as its JSON, made once when it is put: this text goes into the log, into lists and
 * into replies. The row itself is parsed of it where somebody looks at it, which is rare.
 */
import { DAY_MS } from '../clock.ts';
import {
  type Counted,
  type Id,
  type Page,
  type Replay,
  type Row,
  TABLE_NAMES,
  TABLES,
  type TableName,
} from './model.ts';
import type { Schema } from './schema.ts';
import { SortedTexts } from './sorted.ts';

/** A row as it now is, and its JSON; neither, if it is removed. */
export interface Change<R extends Row = Row> {
  readonly id: R['id'];
  readonly row?: R;
  readonly text?: string;
}

/** What a batch does, by table. */
export type Changes = readonly { readonly name: TableName; readonly rows: readonly Change[] }[];

/** All rows as JSON, as of one moment, and the highest ids that were given. */
export interface Snapshot {
  readonly lastIds: Readonly<Record<Counted, number>>;
  readonly texts: Readonly<Record<TableName, readonly string[]>>;
}

/** The length of a row in a file. */
export const bytesOf = (text: string | undefined): number => (text === undefined ? 0 : Buffer.byteLength(text) + 1);

export class Table<R extends Row> {
  readonly schema: Schema<R>;
  /** The highest id that was ever given. */
  lastId = 0;
  readonly #rows = new SortedTexts<R['id']>();
  /** The same texts by status: so the page of a rare status is found as quickly as any other. */
  readonly #byStatus = new Map<string | undefined, SortedTexts<R['id']>>();
  readonly #byValue = new Map<unknown, R>();

  constructor(schema: Schema<R>) {
    this.schema = schema;
  }

  get size(): number {
    return this.#rows.size;
  }

  get(id: R['id']): R | undefined {
    const text = this.text(id);
    return text === undefined ? undefined : this.schema.parse(text);
  }

  /** The row as JSON. */
  text(id: R['id']): string | undefined {
    return this.#rows.get(id);
  }

  /** Costs no parsing: a key is looked up with every request. The same object until the row is put again. */
  find(value: unknown): R | undefined {
    return this.#byValue.get(value);
  }

  page({ after, limit, status }: { after?: R['id']; limit: number; status?: string }): Page<R['id']> {
    const rows = status === undefined ? this.#rows : this.#byStatus.get(status);
    return rows?.page(after, limit) ?? { texts: [], next: undefined };
  }

  /** The JSON of all rows, by ascending id. */
  texts(): string[] {
    return this.#rows.texts();
  }

  /** All rows as they are now. */
  *all(): Generator<R> {
    for (const text of this.texts()) yield this.schema.parse(text);
  }

  /** Puts the row, or removes it. Returns the text that was there before. */
  set({ id, row, text }: Change<R>): string | undefined {
    const before = text === undefined ? this.#rows.delete(id) : this.#rows.set(id, text);
    if (before !== undefined) this.#removeFromIndexes(this.schema.parse(before));
    if (row !== undefined && text !== undefined) this.#addToIndexes(row, text);
    if (typeof id === 'number' && id > this.lastId) this.lastId = id;
    return before;
  }

  #addToIndexes(row: R, text: string): void {
    for (const value of this.schema.valuesOf(row)) this.#byValue.set(value, row);
    const status = this.schema.statusOf(row);
    if (status === undefined) return;
    const sameStatus = this.#byStatus.get(status) ?? new SortedTexts();
    this.#byStatus.set(status, sameStatus);
    sameStatus.set(row.id, text);
  }

  #removeFromIndexes(row: R): void {
    for (const value of this.schema.valuesOf(row))
      if (this.#byValue.get(value)?.id === row.id) this.#byValue.delete(value);
    this.#byStatus.get(this.schema.statusOf(row))?.delete(row.id);
  }
}

/** The replays of Idempotency-Keys, in the order in which they end, 24 hours after they were put. They have no pages. */
export class Replays extends Table<Replay> {
  readonly #kept = new Map<Id, { readonly text: string; readonly keyId: number; readonly at: number }>();
  readonly #idsOfKeys = new Map<number, Set<Id>>();

  override get size(): number {
    return this.#kept.size;
  }

  override text(id: Id): string | undefined {
    return this.#kept.get(id)?.text;
  }

  /** How many an API key has, and the moment of its oldest. */
  ofKey(keyId: number): { size: number; oldestAt: number | undefined } {
    const ids = this.#idsOf(keyId);
    const [oldest] = ids;
    return { size: ids.size, oldestAt: this.#kept.get(oldest)?.at };
  }

  /** By their moments, which is the order in which they are read again. */
  override texts(): string[] {
    const sorted = [...this.#kept].sort(([id, { at }], [other, next]) => at - next.at || (id < other ? -1 : 1));
    return sorted.map(([, { text }]) => text);
  }

  override set({ id, row, text }: Change<Replay>): string | undefined {
    const before = this.#kept.get(id);
    if (before !== undefined) {
      this.#kept.delete(id); // so that an Idempotency-Key that is used again goes to the end
      this.#idsOf(before.keyId).delete(id);
    }
    if (row !== undefined && text !== undefined) {
      const { keyId, at } = row;
      this.#kept.set(id, { text, keyId, at });
      this.#idsOf(keyId).add(id);
    }
    return before?.text;
  }

  *ended(now: number): Generator<Id> {
    for (const [id, { at }] of this.#kept) {
      if (now - at < DAY_MS) return;
      yield id;
    }
  }

  #idsOf(keyId: number): Set<Id> {
    const ids = this.#idsOfKeys.get(keyId) ?? new Set<Id>();
    this.#idsOfKeys.set(keyId, ids);
    return ids;
  }
}

export class Tables {
  readonly pets = new Table(TABLES.pets);
  readonly orders = new Table(TABLES.orders);
  readonly categories = new Table(TABLES.categories);
  readonly keys = new Table(TABLES.keys);
  readonly replays = new Replays(TABLES.replays);
  readonly usage = new Table(TABLES.usage);
  /** About the length of a file with just these rows. */
  bytes = 0;
  /** Store time, by which replays end. Zero while rows are read: what is read does not depend on the clock. */
  now: () => number = () => 0;

  /** For code that handles all tables alike. */
  of(name: TableName): Pick<Table<Row>, 'size' | 'texts' | 'set'> {
    return this[name];
  }

  /** Applies a durable batch at once: nobody reads half of it. */
  apply(changes: Changes): void {
    for (const { name, rows } of changes) for (const change of rows) this.#set(name, change);
  }

  /**
   * Before a batch is decided and before a snapshot, so that no replay that has ended counts. The log does not say so:
   * whoever reads it sees that the replay has ended.
   */
  dropEndedReplays(): void {
    for (const id of this.replays.ended(this.now())) this.#set('replays', { id });
  }

  snapshot(): Snapshot {
    this.dropEndedReplays();
    const texts = TABLE_NAMES.map((name) => [name, this.of(name).texts()] as const);
    return { lastIds: this.lastIds, texts: Object.fromEntries(texts) as Record<TableName, string[]> };
  }

  get lastIds(): Record<Counted, number> {
    return { pets: this.pets.lastId, orders: this.orders.lastId, keys: this.keys.lastId };
  }

  #set(name: TableName, change: Change): void {
    const before = this.of(name).set(change);
    this.bytes += bytesOf(change.text) - bytesOf(before);
  }
}

/** A contradiction that no transaction of the shop leaves, in words; undefined: there is none. */
export function contradictionIn({ orders, pets }: Pick<Tables, 'orders' | 'pets'>): string | undefined {
  const ordered = new Set<number>();
  for (const text of orders.page({ status: 'placed', limit: Number.POSITIVE_INFINITY }).texts) {
    const { id, petId } = TABLES.orders.parse(text);
    if (ordered.has(petId)) return `two orders are placed for animal ${petId}`;
    if (pets.text(petId) === undefined) return `order ${id} is placed for animal ${petId}, which is missing`;
    ordered.add(petId);
  }
  return undefined;
}
