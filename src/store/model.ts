/**
 * The interface of the store: rows in six tables, reads, and transactions. Every engine implements it,
 * and those who read and write rows know nothing else of them.
 */
import { DAY_MS } from '../clock.ts';
import { bool, enumOf, int64, integer, listOf, optional, type TableSchema, table, text } from './schema.ts';

export const PET_STATUSES = ['available', 'pending', 'sold'] as const;
export type PetStatus = (typeof PET_STATUSES)[number];
export const ORDER_STATUSES = ['placed', 'delivered', 'cancelled'] as const;
export type OrderStatus = (typeof ORDER_STATUSES)[number];
export const PLANS = ['free', 'pro', 'business', 'enterprise'] as const;
export type Plan = (typeof PLANS)[number];
export const ENVIRONMENTS = ['production', 'staging'] as const;
export type Environment = (typeof ENVIRONMENTS)[number];

/** The highest id: more rows than fit into memory. V8 keeps integers up to it without an object for each. */
const MAX_ID = 2 ** 31 - 1;
const MAX_NAME_UNITS = 510;
const MAX_BODY_UNITS = 65_536;
/** The last moment of RFC 3339, in the year 9999. */
export const LAST_MOMENT = Date.UTC(9999, 11, 31, 23, 59, 59, 999);
const id = integer(1, MAX_ID);
const name = text(MAX_NAME_UNITS);
/** ms since 1970, of store time. */
const moment = integer(0, LAST_MOMENT);
const counter = integer(0, Number.MAX_SAFE_INTEGER);

/** The tables and their columns. A new member of a row is added here. */
export const TABLES = {
  pets: table({ id, name, categoryId: int64, status: enumOf(PET_STATUSES) }),
  orders: table({ id, petId: id, status: enumOf(ORDER_STATUSES), placedAt: moment }),
  categories: table({ id: int64, name }),
  /** API keys. Outside the store the id 7 is written `k7`. */
  keys: table({
    id,
    name,
    plan: enumOf(PLANS),
    perMinute: integer(1, Number.MAX_SAFE_INTEGER),
    perDay: integer(1, Number.MAX_SAFE_INTEGER),
    environment: enumOf(ENVIRONMENTS),
    createdAt: moment,
    /** Only the SHA-256 of a secret is stored. One that was rotated out ends at a moment. */
    secrets: listOf(table({ digest: text(64), endsAt: optional(moment) })),
    revokedAt: optional(moment),
    /** True: the key may GET and HEAD, and nothing else. */
    readOnly: optional(bool),
  }),
  /**
   * The first reply under an Idempotency-Key, whose id is `operation k7 key`; it counts for 24 hours after `at`.
   * `keyId`: of the API key, or 0 for a command of the operator. `digest`: of the request, since the same
   * Idempotency-Key with another request is refused.
   */
  replays: table({
    id: text(600),
    keyId: integer(0, MAX_ID),
    digest: text(64),
    status: integer(100, 599),
    body: text(MAX_BODY_UNITS),
    location: text(MAX_NAME_UNITS),
    at: moment,
  }),
  /** What the limiter has counted for the API key with this id. */
  usage: table({
    id,
    minuteUsed: counter,
    minuteEndsAt: moment,
    dayUsed: counter,
    dayEndsAt: moment,
    strikes: counter,
    bans: counter,
    banEndsAt: moment,
  }),
};

export type TableName = keyof typeof TABLES;
export type Rows = { [T in TableName]: ReturnType<(typeof TABLES)[T]['read']> };
export type Pet = Rows['pets'];
export type Order = Rows['orders'];
export type Category = Rows['categories'];
export type ApiKey = Rows['keys'];
export type Replay = Rows['replays'];
export type Usage = Rows['usage'];
export type Row = Rows[TableName];
export type Id = Row['id'];

export const TABLE_NAMES = Object.keys(TABLES) as TableName[];

/**
 * All columns, such as `pets.name`. The header of a store names its columns, so that a store with a column of a newer
 * version is not taken for damaged.
 */
export const COLUMNS: readonly string[] = TABLE_NAMES.flatMap((table) =>
  TABLES[table].names.map((column) => `${table}.${column}`),
);

/** For code that handles all tables alike. */
export const schemaOf = (name: TableName): TableSchema<Row> => TABLES[name];

export const hasEnded = ({ at }: Replay, now: number): boolean => now - at >= DAY_MS;

/** The tables whose ids the store gives: 1, 2, 3, … No id is given twice, though its row is removed; only `clear` begins again. */
export const COUNTED = ['pets', 'orders', 'keys'] as const;
export type Counted = (typeof COUNTED)[number];

export interface Page<R> {
  readonly items: readonly R[];
  /** True if more rows follow after the last item. */
  readonly more: boolean;
}

/** Rows by ascending id. */
interface PagedTable<R extends Row> {
  readonly size: number;
  get(id: R['id']): R | undefined;
  /** The number of the batch that last changed this table: the same number means the same rows. */
  readonly revision: number;
  page(options: { after?: R['id']; limit: number }): Page<R>;
}

/** Rows with the ids 1, 2, 3, … */
export interface CountedTable<R extends Row> extends PagedTable<R> {
  /** The highest id that was ever given. */
  readonly lastId: number;
  page(options: { after?: number; limit: number; status?: string }): Page<R>;
  /** Changes with every change in the block: text that was made of it is valid until then. 0: it has no rows. */
  blockRevision(block: number): number;
}
/** For speed: lists keep the text of so many rows, a block, as one string. Block 0 has the ids from 1 on. */
export const BLOCK_ROWS = 64;
export const blockOf = (id: number): number => Math.floor((id - 1) / BLOCK_ROWS);
export const indexInBlock = (id: number): number => (id - 1) % BLOCK_ROWS;

/** The durable rows. Rows are never changed in place: whoever holds one holds a snapshot. */
export interface Reads {
  readonly pets: CountedTable<Pet>;
  /** `find`: the placed order of an animal. */
  readonly orders: CountedTable<Order> & { find(petId: number): Order | undefined };
  readonly categories: PagedTable<Category>;
  /** `find`: by the digest of one of its secrets. */
  readonly keys: CountedTable<ApiKey> & { find(digest: string): ApiKey | undefined; all(): Iterable<ApiKey> };
  /** `get` finds none whose 24 hours are over. `ofKey`: those of one API key by their ids, the oldest first. */
  readonly replays: Pick<PagedTable<Replay>, 'size' | 'get'> & { ofKey(keyId: number): ReadonlyMap<Id, Replay> };
}

interface WriteTable<R extends Row> {
  /** The row as this transaction sees it, with its own changes. */
  get(id: R['id']): R | undefined;
  put(row: R): void;
  delete(id: R['id']): void;
  /** Removes all rows; ids begin again at 1. */
  clear(): void;
}

interface AddTable<R extends Row> extends WriteTable<R> {
  /** Puts a row with the next id, and returns it. */
  add(row: Omit<R, 'id'>): R;
}

export interface Transaction {
  readonly pets: AddTable<Pet>;
  /** `find`: the placed order of an animal. */
  readonly orders: AddTable<Order> & { find(petId: number): Order | undefined };
  readonly categories: WriteTable<Category>;
  readonly keys: AddTable<ApiKey>;
  /** `undurable`: what this batch has put, which the reads do not show yet. `pending`: an upper bound of their number, at no cost. */
  readonly replays: WriteTable<Replay> & { undurable(): readonly Replay[]; readonly pending: number };
  readonly usage: Pick<WriteTable<Usage>, 'put' | 'delete'>;
}

export interface Store {
  /** A random text, made with the store. */
  readonly id: string;
  readonly read: Reads;
  /**
   * Makes all changes of the work, or none if it throws. Resolves with its result when the changes are durable; rejects
   * with what it throws, or with a StoreError. The work must be synchronous, and change nothing but its transaction.
   */
  write<T>(work: (tx: Transaction) => T): Promise<T>;
  /** Store time in ms since 1970: the wall clock at the start, never before the last row, from there monotonic. */
  now(): number;
}

/**
 * - full: not written, there is no room; reads go on.
 * - unknown: it may or may not have been written.
 * - unavailable: not written; the database cannot be reached, or a write that this one rests on may be lost.
 * - busy: not accepted, too many writes wait. closed: not accepted, the store is closed or has failed.
 */
export type Failure = 'full' | 'unknown' | 'unavailable' | 'busy' | 'closed';

export class StoreError extends Error {
  readonly failure: Failure;
  /** True if clients may read the message: it says nothing of the machine. */
  readonly isPublic: boolean;

  constructor(failure: Failure, message: string, isPublic = false) {
    super(message);
    this.failure = failure;
    this.isPublic = isPublic;
  }
}
