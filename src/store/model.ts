/**
 * The model: things, the changes to them, and two interfaces: `Store` for those who read and write things, `Journal`
 * for engines. Nothing here knows of files, processes or HTTP.
 */
import type { Int64 } from '../json/int64.ts';

export const PET_STATUSES = ['available', 'pending', 'sold'] as const;
export type PetStatus = (typeof PET_STATUSES)[number];

export const ORDER_STATUSES = ['placed', 'delivered', 'cancelled'] as const;
export type OrderStatus = (typeof ORDER_STATUSES)[number];

export const PLANS = ['free', 'pro', 'business', 'enterprise'] as const;
export type Plan = (typeof PLANS)[number];

export const ENVIRONMENTS = ['production', 'staging'] as const;
export type Environment = (typeof ENVIRONMENTS)[number];

export interface Pet {
  id: number;
  name: string;
  categoryId: Int64;
  status: PetStatus;
}

export type NewPet = Omit<Pet, 'id'>;

/** Animals with consecutive ids, as columns: in JSON half as long as a list of objects, and quicker to read. */
export interface PetColumns {
  names: string[];
  categoryIds: Int64[];
  statuses: PetStatus[];
}

/** `T` if `K` names all its members, else `never`: a JSON template that lacks a new member does not compile. */
export type Whole<T, K extends keyof T> = Exclude<keyof T, K> extends never ? T : never;

export interface Order {
  id: number;
  petId: number;
  status: OrderStatus;
  /** ms since 1970 by the machine's clock: for people to read. */
  placedAt: number;
}

export interface Category {
  id: Int64;
  name: string;
}

/** `by`: the key that set it last, to whose share its bytes count. A category of a seed counts to nobody's share. */
export type KeptCategory = Category & { by?: string };

/** The most slots that the limiter's array holds. */
export const MAX_SLOTS = 2 ** 24;

export interface ApiKey {
  /** `k1`, `k2`, …: in order of creation, never given twice. */
  id: string;
  /** 0, 1, 2, …: the key's place in the limiter's array. Like ids, never given twice. */
  slot: number;
  name: string;
  plan: Plan;
  perMinute: number;
  perDay: number;
  environment: Environment;
  createdAt: number;
  revokedAt?: number;
  /** The time by which the lab has advanced this key's clock. */
  clockAdvanceMs?: number;
  /** Only the SHA-256 of a secret is kept. One that was rotated out ends at a moment of store time. */
  secrets: { digest: string; endsAt?: number }[];
}

/** The used part of a key's limits. Its times are store time, so that they are still right after a restart. */
export interface Usage {
  key: string;
  dayUsed: number;
  dayEndsAt: number;
  /** The bans in a row against the key (escalation), and the end of the newest. */
  banStep: number;
  banEndsAt: number;
}

/** The usage of a key without requests and bans. */
export const UNUSED = { dayUsed: 0, dayEndsAt: 0, banStep: 0, banEndsAt: 0 };

/** The `Idempotency-Key` of a request: its caller (a key's id, or `import`), its text, its moment in store time. */
export interface IdempotencyKey {
  caller: string;
  key: string;
  at: number;
}

/** The first result under an Idempotency-Key. `status`: the status that the new thing had then. */
export interface FirstResult {
  id: number;
  status: PetStatus | OrderStatus;
  /** Its moment in store time, plus the clock advance of its caller's key. */
  at: number;
}

export type IdempotentKind = 'addPet' | 'placeOrder' | 'import';

/**
 * One change is one record of the log, for one thing or many. Times (`at`) are store time. `by` is the id of the key
 * that asked for the change; the change counts towards that key's share of the store.
 */
export type Change =
  | { op: 'addPet'; pet: Pet; once?: IdempotencyKey; by?: string }
  /** A batch of an import, or a piece of a whole state: the ids are `first`, `first + 1`, … */
  | ({ op: 'pets'; first: number; once?: IdempotencyKey } & PetColumns)
  | { op: 'placeOrder'; order: Order; once?: IdempotencyKey; by?: string }
  | { op: 'closeOrder'; id: number; status: 'delivered' | 'cancelled' }
  | { op: 'setCategory'; category: Category; by?: string }
  /** Adds a key, or replaces the one with the same id. */
  | { op: 'setKey'; key: ApiKey; at?: number }
  | { op: 'usage'; at: number; entries: Usage[] }
  /** A seed, or the lab's reset: these categories and animals (ids from 1), no orders or idempotency records. */
  | { op: 'fill'; at: number; categories: Category[]; pets: PetColumns }
  /** The lab: time passes for one key, and so for its idempotency records. `usage`: the key's usage from then on. */
  | { op: 'advance'; at: number; key: string; ms: number; usage: Usage }
  /** This and the next two stand only in a whole state (the first batch of a file), beside changes of other kinds. */
  | { op: 'orders'; first: number; petIds: number[]; statuses: OrderStatus[]; placedAts: number[] }
  | { op: 'onces'; onces: [id: string, made: FirstResult][] }
  | { op: 'shares'; shares: [key: string, bytes: number][] };

/** The outcome of a decision: a change; or `again`: it was done before, and nothing is to be written. */
export type Decided = Change | { op: 'again' };

export interface Page<T> {
  items: T[];
  /** True if more follow after the last item. */
  more: boolean;
}

export interface Counts {
  pets: number;
  orders: number;
  categories: number;
  keys: number;
}

/** Serves to compare two stores: the same content has the same digest, whatever its history and engine. */
export interface Proof extends Counts {
  digest: string;
}

/** The next ids: neither these nor higher ones were ever given. */
export interface Counters {
  nextPetId: number;
  nextOrderId: number;
  /** The slot of the next key: `k1` has slot 0. */
  nextSlot: number;
}

/** Rows by ascending ids. */
interface Listed<R extends { status: string }> {
  get(id: number): R | undefined;
  /** Ids above `after`. */
  page(after: number, limit: number, status?: R['status']): Page<R>;
  /** Grows with every change of a row, and only then: a cache of rows is valid while it stays the same. */
  readonly version: number;
}

/** The state for readers: only durable changes. */
export interface Reading {
  readonly pets: Listed<Pet>;
  readonly orders: Listed<Order>;
  readonly categories: {
    get(id: Int64): KeptCategory | undefined;
    page(after?: Int64, limit?: number): Page<KeptCategory>;
  };
  /** By id, and by the digests of their secrets. */
  readonly keys: ReadonlyMap<string, ApiKey> & { readonly byDigest: ReadonlyMap<string, ApiKey> };
  /** By the ids of keys. */
  readonly usage: ReadonlyMap<string, Usage>;
  /** Idempotency records. */
  readonly idempotency: { readonly size: number };
  /** The heap that all of this takes, by an estimate. */
  readonly bytes: { readonly total: number };
  counts(): Counts;
  /** The first result under this Idempotency-Key in the 24 h before `once.at`. */
  firstResult(kind: IdempotentKind, once: IdempotencyKey): FirstResult | undefined;
}

/** The state for decisions: as it will be when everything decided before is durable. */
export interface Ahead {
  readonly pets: Pick<Reading['pets'], 'get'>;
  readonly orders: Pick<Reading['orders'], 'get'>;
  readonly categories: Pick<Reading['categories'], 'get'>;
  readonly keys: Pick<Reading['keys'], 'get'>;
  readonly counters: Readonly<Counters>;
  allKeys(): Iterable<ApiKey>;
  /** True if no animal, order or category was ever added. A `fill` begins anew: nothing from before it counts. */
  isEmpty(): boolean;
  firstResult: Reading['firstResult'];
}

/** The interface for those who read and write things. */
export interface Store {
  readonly read: Reading;
  /** The most heap that the content may take. */
  readonly maxBytes: number;
  /**
   * `decide` looks at the state ahead and returns the change to perform, or throws to refuse. **It may be called
   * several times**, each time on a newer state: it must depend on `ahead` alone (and on a clock, since a secret ends
   * at a time), and have no effect but to note what its last call has found.
   *
   * Resolves with the decision once it is durable and applied. A refusal, and `again`, are answered only when the
   * changes that they rest on are durable. Rejects with a StoreError if the change could not be kept.
   */
  write<D extends Decided>(decide: (ahead: Ahead) => D): Promise<D>;
  /** Store time: ms since 1970, for moments that are kept and compared later. How a start sets it: see MemoryStore. */
  unix(): number;
  /** Resolves when all accepted writes are durable. No more are accepted. */
  close(): Promise<void>;
}

/** The interface for engines: one list of batches, which several processes may share. */
export interface Journal {
  /** Reads the whole log into an empty state (state.ts). */
  replay(state: Reading & { apply(changes: readonly Change[]): void }): Promise<void>;
  /**
   * Resolves with undefined when the batch is durable. If another process was first, resolves with those of its
   * changes that `follow` has not delivered: nothing of the batch was kept, and it is decided again on top of them.
   * Rejects with a StoreError. One call at a time.
   */
  append(batch: Change[]): Promise<Change[] | undefined>;
  /** `follower` is called with the changes of other processes. `append` then returns only those not delivered so. */
  follow?(follower: (changes: Change[]) => void): void;
  close(): Promise<void>;
}

/**
 * - full: not kept, there is no room; reads go on. unknown: it may or may not have been kept.
 * - unavailable: not kept; the database cannot be reached, or a change that it rests on may be lost.
 * - busy: not accepted, the queue is full. closed: not accepted, the store is closed or has failed.
 * - rejected: the change itself is too large. quota: not accepted, its caller has reached a maximum.
 */
type StoreFailure = 'full' | 'unknown' | 'unavailable' | 'busy' | 'closed' | 'rejected' | 'quota';

export class StoreError extends Error {
  readonly failure: StoreFailure;

  constructor(failure: StoreFailure, message: string) {
    super(message);
    this.failure = failure;
  }
}
