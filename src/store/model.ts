/**
 * What is kept: the things, the changes to them, and two seams: `Store`, which the rooms above use, and
 * `Journal`, behind which an engine stands. No file, no process, no HTTP is known here.
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

/** Animals of consecutive ids: half the text, and quicker to read, than one after the other. */
export interface PetColumns {
  names: string[];
  categoryIds: Int64[];
  statuses: PetStatus[];
}

/** `T`, where `K` are all its members; else `never`: of what is written by hand, a member more does not compile. */
export type Whole<T, K extends keyof T> = Exclude<keyof T, K> extends never ? T : never;

export interface Order {
  id: number;
  petId: number;
  status: OrderStatus;
  /** ms since 1970, as the machine believes them to be: for people to read. */
  placedAt: number;
}

export interface Category {
  id: Int64;
  name: string;
}

/** Beyond these slots no key can be counted: the limiter's arrays end there, and a repair must not leap past them. */
export const MAX_SLOTS = 2 ** 24;

export interface ApiKey {
  /** `k1`, `k2`, …: in order of creation, never given twice. */
  id: string;
  /** 0, 1, 2, …: the key's place in the limiter's arrays. Like ids, never given twice. */
  slot: number;
  name: string;
  plan: Plan;
  perMinute: number;
  perDay: number;
  environment: Environment;
  createdAt: number;
  revokedAt?: number;
  /** The lab: by how much this key's clock was advanced. */
  clockAdvanceMs?: number;
  /** Only the SHA-256 of a secret is kept. One that was rotated out ends at a moment of store time. */
  secrets: { digest: string; endsAt?: number }[];
}

/** What a key has used, in store time, so that it means the same after a restart. */
export interface Usage {
  key: string;
  dayUsed: number;
  dayEndsAt: number;
  /** How many bans stand against the key (escalation), and when the newest ends or ended. */
  banStep: number;
  banEndsAt: number;
}

/** Of a key that has used nothing, and against which no ban stands. */
export const UNUSED = { dayUsed: 0, dayEndsAt: 0, banStep: 0, banEndsAt: 0 };

/** The `Idempotency-Key` of what was made: the caller's key id (or `import`), its text, the moment in store time. */
export interface IdempotencyKey {
  caller: string;
  key: string;
  at: number;
}

/** The first result under an Idempotency-Key. `status`: what its status was when it was made. */
export interface FirstResult {
  id: number;
  status: PetStatus | OrderStatus;
  /** In store time, advanced as far as the clock of its caller's key was. */
  at: number;
}

export type IdempotentKind = 'addPet' | 'placeOrder' | 'import';

/**
 * One change is one record, however many things it changes. Times (`at`) are store time. `by`: the id of the key that
 * asked for it, to whose share of the store it counts.
 */
export type Change =
  | { op: 'addPet'; pet: Pet; once?: IdempotencyKey; by?: string }
  /** A batch of an import, or a piece of a whole state: the ids are `first`, `first + 1`, … */
  | ({ op: 'pets'; first: number; once?: IdempotencyKey } & PetColumns)
  | { op: 'placeOrder'; order: Order; once?: IdempotencyKey; by?: string }
  | { op: 'closeOrder'; id: number; status: 'delivered' | 'cancelled' }
  | { op: 'setCategory'; category: Category; by?: string }
  /** Adds the key, or puts this in place of the one with the same id. Without `at` it tells no time. */
  | { op: 'setKey'; key: ApiKey; at?: number }
  | { op: 'usage'; at: number; entries: Usage[] }
  /** A seed, and the lab's reset: no orders and idempotency records, these categories, these animals from id 1 on. */
  | { op: 'fill'; at: number; categories: Category[]; pets: PetColumns }
  /** The lab: time passes for one key, and so for its idempotency records. Its usage is this. */
  | { op: 'advance'; at: number; key: string; ms: number; usage: Usage }
  /** Pieces of a whole state, which is told in these and some of the others. */
  | { op: 'orders'; first: number; petIds: number[]; statuses: OrderStatus[]; placedAts: number[] }
  | { op: 'onces'; onces: [id: string, made: FirstResult][] }
  | { op: 'shares'; shares: [key: string, bytes: number][] };

/** What a decision comes to: a change; or that it was done before, and nothing is to be written. */
export type Decided = Change | { op: 'again' };

export interface Page<T> {
  items: T[];
  /** Whether more follow after the last item. */
  more: boolean;
}

export interface Counts {
  pets: number;
  orders: number;
  categories: number;
  keys: number;
}

/** To compare two stores: the same content has the same digest, whatever its history and engine. */
export interface Proof extends Counts {
  digest: string;
}

/** The next ids, none of which was ever given. */
export interface Counters {
  nextPetId: number;
  nextOrderId: number;
  /** Of keys: `k1` has slot 0. */
  nextSlot: number;
}

/** Rows that are listed by ascending ids. */
interface Listed<R extends { status: string }> {
  get(id: number): R | undefined;
  /** Ids above `after`. */
  page(after: number, limit: number, status?: R['status']): Page<R>;
  /** Grows with every change of a row, and only then: what was built from rows is good while it stays. */
  readonly version: number;
}

/** What readers see: only what is durable. */
export interface Reading {
  readonly pets: Listed<Pet>;
  readonly orders: Listed<Order>;
  readonly categories: {
    get(id: Int64): Category | undefined;
    page(after?: Int64, limit?: number): Page<Category>;
  };
  /** A key that nobody is changing is the same object in `Ahead`. */
  readonly keys: ReadonlyMap<string, ApiKey> & { readonly byDigest: ReadonlyMap<string, ApiKey> };
  /** By the ids of keys. */
  readonly usage: ReadonlyMap<string, Usage>;
  /** Idempotency records. */
  readonly idempotency: { readonly size: number };
  /** How much of the heap all of this takes, by an estimate. */
  readonly bytes: { readonly total: number };
  counts(): Counts;
  /** What was made under this Idempotency-Key in the 24 h before `once.at`. */
  firstResult(kind: IdempotentKind, once: IdempotencyKey): FirstResult | undefined;
}

/** What a decision rests on: the state as it will be when everything decided before is durable. */
export interface Ahead {
  readonly pets: Pick<Reading['pets'], 'get'>;
  readonly orders: Pick<Reading['orders'], 'get'>;
  readonly categories: Pick<Reading['categories'], 'get'>;
  readonly keys: Pick<Reading['keys'], 'get'>;
  readonly counters: Readonly<Counters>;
  allKeys(): Iterable<ApiKey>;
  /** Whether no animal, order or category was ever there, or not since the last `fill`. */
  isEmpty(): boolean;
  firstResult: Reading['firstResult'];
}

/** The seam for the rooms above. */
export interface Store {
  readonly read: Reading;
  /** What is kept may take so much of the heap. */
  readonly maxBytes: number;
  /**
   * `decide` looks at the state as it will be and returns the change to perform, or throws to refuse. **It may be
   * called several times**, each time on a newer state: it must rest on `ahead` alone (and a clock, by which a secret
   * ends) and have no effect of its own.
   *
   * Resolves with the decision once it is durable and applied. A refusal, and `again`, are told once what they rest on
   * is durable. Rejects with a StoreError when it could not be kept.
   */
  write<D extends Decided>(decide: (ahead: Ahead) => D): Promise<D>;
  /** Store time: ms since 1970, for what is written down and compared later. It never goes back: see MemoryStore. */
  unix(): number;
  /** Everything accepted so far is durable, no more is accepted. */
  close(): Promise<void>;
}

/** The seam for engines: one list of batches, which several processes may share. */
export interface Journal {
  /** Everything there is, into an empty state (state.ts). */
  replay(state: Reading & { apply(changes: readonly Change[]): void }): Promise<void>;
  /**
   * Resolves with undefined when the batch is durable; or with others' changes not already delivered to `follow`:
   * then nothing of the batch was kept, and it is decided again on top of them. Rejects with a StoreError.
   * One at a time.
   */
  append(batch: Change[]): Promise<Change[] | undefined>;
  /** `follower` is told what others have written. An append that is under way then resolves with what else is new. */
  follow?(follower: (changes: Change[]) => void): void;
  close(): Promise<void>;
}

/**
 * full: not kept, there is no room; reads go on. unknown: it may or may not have been kept.
 * unavailable: not kept, the database cannot be reached, or what it rests on is unknown. busy: not accepted, the queue
 * is full. closed: not accepted, the store is closed or has failed.
 * rejected: the change itself is too large. quota: not accepted, its caller has as much as one may have.
 */
type StoreFailure = 'full' | 'unknown' | 'unavailable' | 'busy' | 'closed' | 'rejected' | 'quota';

export class StoreError extends Error {
  readonly failure: StoreFailure;

  constructor(failure: StoreFailure, message: string) {
    super(message);
    this.failure = failure;
  }
}
