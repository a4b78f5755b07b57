/**
 * All tables in memory. A row is kept as its JSON, made once when it is put: this text goes into the log, into lists and
 * into replies. The row itself is parsed of it where somebody looks at it, which is rare.
 */
import { DAY_MS } from '../clock.ts';
import {
  COUNTED,
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

const statusOf = (row: object | undefined): unknown => (row as { status?: unknown } | undefined)?.status;

/** Rows can also be found by other values than their ids, each of which belongs to one row at most. */
export class Table<R extends Row> {
  readonly name: TableName;
  readonly schema: Schema<R>;
  readonly valuesOf: (row: R) => readonly unknown[];
  /** The highest id that was ever given. */
  lastId = 0;
  readonly #rows = new SortedTexts<R['id']>();
  /** The same texts by status: so the page of a rare status is found as quickly as any other. */
  readonly #byStatus = new Map<unknown, SortedTexts<R['id']>>();
  readonly #byValue = new Map<unknown, R>();

  constructor(name: TableName, schema: Schema<R>, valuesOf: (row: R) => readonly unknown[] = () => []) {
    this.name = name;
    this.schema = schema;
    this.valuesOf = valuesOf;
  }

  get size(): number {
    return this.#rows.size;
  }

  get(id: R['id']): R | undefined {
    const text = this.#rows.get(id);
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
    const isNew = typeof id === 'number' && id > this.lastId; // most are: this is known without looking them up
    const before = isNew ? undefined : this.#rows.get(id);
    if (before !== undefined) this.#removeFromIndexes(this.schema.parse(before), row);
    if (row === undefined || text === undefined) this.#rows.delete(id);
    else this.#add(row, text);
    if (typeof id === 'number' && id > this.lastId) this.lastId = id;
    return before;
  }

  #add(row: R, text: string): void {
    this.#rows.set(row.id, text);
    for (const value of this.valuesOf(row)) this.#byValue.set(value, row);
    const status = statusOf(row);
    if (status === undefined) return;
    const sameStatus = this.#byStatus.get(status) ?? new SortedTexts();
    this.#byStatus.set(status, sameStatus);
    sameStatus.set(row.id, text);
  }

  /** `next`: the row that takes its place. */
  #removeFromIndexes(row: R, next: R | undefined): void {
    for (const value of this.valuesOf(row)) if (this.#byValue.get(value)?.id === row.id) this.#byValue.delete(value);
    if (statusOf(row) !== statusOf(next)) this.#byStatus.get(statusOf(row))?.delete(row.id);
  }
}

const hasEnded = ({ at }: Pick<Replay, 'at'>, now: number): boolean => now - at >= DAY_MS;

/**
 * The replays of Idempotency-Keys. A replay that is 24 hours old counts as absent at once, and leaves memory with a later
 * batch. The log does not say so: whoever reads it sees that the replay has ended.
 */
export class Replays extends Table<Replay> {
  /** In the order in which they were put. */
  readonly #queue = new Map<Id, Pick<Replay, 'keyId' | 'at'>>();
  readonly #idsOfKeys = new Map<number, Set<Id>>();
  readonly #now: () => number;

  constructor(now: () => number) {
    super('replays', TABLES.replays);
    this.#now = now;
  }

  override get(id: Id): Replay | undefined {
    const replay = super.get(id as string);
    return replay && !hasEnded(replay, this.#now()) ? replay : undefined;
  }

  /** How many an API key has, and the moment of its oldest. */
  ofKey(keyId: number): { size: number; oldestAt: number | undefined } {
    const ids = this.#idsOf(keyId);
    const [oldest] = ids;
    return { size: ids.size, oldestAt: this.#queue.get(oldest)?.at };
  }

  /** The JSON of those that have not ended, by their moments, which is the order in which they are read again. */
  override texts(): string[] {
    const now = this.#now();
    return [...this.#queue]
      .filter(([, replay]) => !hasEnded(replay, now))
      .sort(([id, { at }], [other, next]) => at - next.at || (id < other ? -1 : 1))
      .map(([id]) => this.text(id as string)!);
  }

  override set(change: Change<Replay>): string | undefined {
    const { id, row } = change;
    const before = this.#queue.get(id);
    if (before !== undefined) {
      this.#queue.delete(id); // so that an Idempotency-Key that is used again goes to the end
      this.#idsOf(before.keyId).delete(id);
    }
    if (row !== undefined) {
      this.#queue.set(id, { keyId: row.keyId, at: row.at });
      this.#idsOf(row.keyId).add(id);
    }
    return super.set(change);
  }

  /** The ids of those at the front that have ended. */
  *ended(): Generator<Id> {
    const now = this.#now();
    for (const [id, replay] of this.#queue) {
      if (!hasEnded(replay, now)) return;
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
  readonly pets = new Table('pets', TABLES.pets);
  /** `find`: the placed order of an animal. */
  readonly orders = new Table('orders', TABLES.orders, ({ status, petId }) => (status === 'placed' ? [petId] : []));
  readonly categories = new Table('categories', TABLES.categories);
  /** `find`: by the digest of a secret. */
  readonly keys = new Table('keys', TABLES.keys, ({ secrets }) => secrets.map(({ digest }) => digest));
  readonly replays = new Replays(() => this.now());
  readonly usage = new Table('usage', TABLES.usage);
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

  /** Before a batch is decided, so that no replay that has ended counts in it. */
  dropEndedReplays(): void {
    for (const id of this.replays.ended()) this.#set('replays', { id });
  }

  snapshot(): Snapshot {
    const texts = TABLE_NAMES.map((name) => [name, this.of(name).texts()] as const);
    return { lastIds: this.lastIds, texts: Object.fromEntries(texts) as Record<TableName, string[]> };
  }

  get lastIds(): Record<Counted, number> {
    return { pets: this.pets.lastId, orders: this.orders.lastId, keys: this.keys.lastId };
  }

  set lastIds(given: Record<Counted, number>) {
    for (const name of COUNTED) this[name].lastId = given[name];
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
