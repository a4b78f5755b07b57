/** The rows of the store, in six tables, and its interface: who reads and writes rows knows nothing else of it. */
import { boolean, int64, integer, listOf, object, oneOf, optional, type Schema, table, text } from './schema.ts';
import type { Tables } from './tables.ts';
import type { TableDraft } from './transaction.ts';

export const PET_STATUSES = ['available', 'pending', 'sold'] as const;
export const ORDER_STATUSES = ['placed', 'delivered', 'cancelled'] as const;
export const PLANS = ['free', 'pro', 'business', 'enterprise'] as const;
export type Plan = (typeof PLANS)[number];
export const ENVIRONMENTS = ['production', 'staging'] as const;
export type Environment = (typeof ENVIRONMENTS)[number];

/** The highest id: more rows than fit into memory. V8 keeps integers up to it without an object for each. */
const MAX_ID = 2 ** 31 - 1;
const MAX_NAME_UNITS = 510;
const MAX_BODY_UNITS = 65_536;
const MAX_COUNT = 10 ** 15 - 1;
/** The last moment of RFC 3339, in the year 9999. */
export const LAST_MOMENT = Date.UTC(9999, 11, 31, 23, 59, 59, 999);
const id = integer(1, MAX_ID);
const name = text(MAX_NAME_UNITS);
/** ms since 1970, of store time. */
const moment = integer(0, LAST_MOMENT);
const count = integer(0, MAX_COUNT);
const limit = integer(1, MAX_COUNT);
const RFC_3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/**
 * The tables and their columns. A row is kept and written as its JSON; that of the first three is also what clients get.
 * So a member that is renamed here is a new format: see `FORMAT` in log-format.ts.
 */
export const TABLES = {
  pets: table({ id, name, categoryId: int64, status: oneOf(PET_STATUSES) }, { statusOf: ({ status }) => status }),
  orders: table(
    { id, petId: id, status: oneOf(ORDER_STATUSES), placedAt: text(24, RFC_3339) },
    {
      statusOf: ({ status }) => status,
      /** Its animal finds a placed order. */
      valuesOf: ({ status, petId }) => (status === 'placed' ? [petId] : []),
    },
  ),
  categories: table({ id: int64, name }),
  /** API keys. Outside the store the id 7 is written `k7`. */
  keys: table(
    {
      id,
      name,
      plan: oneOf(PLANS),
      perMinute: limit,
      perDay: limit,
      environment: oneOf(ENVIRONMENTS),
      /** True: it may read, and nothing else. */
      readOnly: optional(boolean),
      createdAt: moment,
      /** Only the SHA-256 of a secret is stored. One that was rotated out ends at a moment. */
      secrets: listOf(object({ digest: text(64), endsAt: optional(moment) })),
      revokedAt: optional(moment),
    },
    { valuesOf: ({ secrets }) => secrets.map(({ digest }) => digest) },
  ),
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
    minuteUsed: count,
    minuteEndsAt: moment,
    dayUsed: count,
    dayEndsAt: moment,
    strikes: count,
    bans: count,
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

/** For code that handles all tables alike. */
export const schemaOf = (name: TableName): Schema<Row> => TABLES[name] as Schema<Row>;

/** The tables whose ids the store gives: 1, 2, 3, … No id is given twice, though its row is removed. */
export const COUNTED = ['pets', 'orders', 'keys'] as const;
export type Counted = (typeof COUNTED)[number];

/** Rows as JSON, by ascending id. */
export interface Page<I> {
  readonly texts: readonly string[];
  /** The `after` of the next page; undefined: no row follows. */
  readonly next: I | undefined;
}

/** The durable rows: `Table` and `Replays` in tables.ts say how they are read. */
export type Reads = { readonly [T in TableName]: Readonly<Omit<Tables[T], 'set'>> };

/** The rows as a transaction sees them, with its own changes: `TableDraft` in transaction.ts. */
export type Transaction = {
  readonly [T in TableName]: Pick<TableDraft<Rows[T]>, WriteMethod | (T extends Counted ? 'add' : never)>;
};
type WriteMethod = 'get' | 'text' | 'find' | 'put' | 'delete' | 'undurable';

export interface Store {
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
 * - full: not written, there is no room on the disk; reads go on. bound: the store has reached its maximum, likewise.
 * - unknown: it may or may not have been written.
 * - unavailable: not written; the database cannot be reached.
 * - busy: not accepted, too many writes wait. closed: not accepted, the store is closed or has failed.
 */
export type Failure = 'full' | 'bound' | 'unknown' | 'unavailable' | 'busy' | 'closed';

export class StoreError extends Error {
  readonly failure: Failure;

  constructor(failure: Failure, message: string) {
    super(message);
    this.failure = failure;
  }
}
