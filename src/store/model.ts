/**
 * What is kept, as every room sees it: the things, the operations that change them, and the seam
 * behind which a store stands. No file, no process, no HTTP is known here.
 */

/** A number where that is exact, a bigint beyond 2^53. */
export type Int64 = number | bigint;

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

export interface Order {
  id: number;
  petId: number;
  status: OrderStatus;
  /** Wall clock, ms since 1970. */
  placedAt: number;
}

export interface Category {
  id: Int64;
  name: string;
}

/** One secret of a key: only its SHA-256 is kept. A rotated-out secret ends at a wall-clock time. */
export interface Secret {
  digest: string;
  endsAt?: number;
}

export interface ApiKey {
  /** `k1`, `k2`, …: in order of creation, never given twice. */
  id: string;
  /** 0, 1, 2, …: the key's place in the limiter's arrays. */
  slot: number;
  name: string;
  plan: Plan;
  perMinute: number;
  perDay: number;
  environment: Environment;
  createdAt: number;
  revokedAt?: number;
  secrets: Secret[];
}

/** What a key has used, in wall-clock times, so that it means the same after a restart. */
export interface Usage {
  key: string;
  dayUsed: number;
  dayEndsAt: number;
  /** How many bans stand against the key (escalation), and when the newest ends or ended. */
  banStep: number;
  banEndsAt: number;
}

/** The `Idempotency-Key` under which a thing was made: the caller's key id, the key's text, the time, which does not jump. */
export interface Once {
  caller: string;
  key: string;
  at: number;
}

/** One operation is one record, however many things it changes. */
export type Operation =
  | { op: 'addPet'; pet: Pet; once?: Once }
  | { op: 'placeOrder'; order: Order; once?: Once }
  | { op: 'closeOrder'; id: number; status: 'delivered' | 'cancelled' }
  | { op: 'setCategory'; category: Category }
  /** Adds the key, or puts this in place of the one with the same id. */
  | { op: 'setKey'; key: ApiKey }
  | { op: 'usage'; at: number; entries: Usage[] }
  /** The first filling of an empty store: all of it or none. */
  | { op: 'seed'; categories: Category[]; pets: Pet[] }
  /**
   * An import of any size, all of it or none: parts under a name that no other has, then the end, which gives all
   * their animals ids and shows them at once. One that never comes to its end leaves nothing.
   */
  | { op: 'importPart'; import: string; pets: NewPet[] }
  | { op: 'endImport'; import: string; first: number; count: number };

/** The first result under an Idempotency-Key. `status`: what the animal's status was when it was made. */
export interface Made {
  id: number;
  status: PetStatus | OrderStatus;
  at: number;
}

export type OnceKind = 'addPet' | 'placeOrder';

export interface Page<T> {
  items: T[];
  /** Whether more follow after the last item. */
  more: boolean;
}

/** What readers see: only what is durable. */
export interface Reading {
  pet(id: number): Pet | undefined;
  /** Ascending ids above `after`. */
  pets(after: number, limit: number, status?: PetStatus): Page<Pet>;
  order(id: number): Order | undefined;
  orders(after: number, limit: number, status?: OrderStatus): Page<Order>;
  category(id: Int64): Category | undefined;
  /** Without `after`: from the smallest id. */
  categories(after: Int64 | undefined, limit: number): Page<Category>;
  key(id: string): ApiKey | undefined;
  keyByDigest(digest: string): ApiKey | undefined;
  keys(): Iterable<ApiKey>;
  usage(keyId: string): Usage | undefined;
  /** What was made under this Idempotency-Key in the last 24 h (as of `at`). */
  made(kind: OnceKind, caller: string, key: string, at: number): Made | undefined;
  counts(): { pets: number; orders: number; categories: number; keys: number };
  /** Grows with every change of an animal, and only then: what was built from animals is good while it stays. */
  readonly petsVersion: number;
  /** Grows with every change of a key (not of what it has used). */
  readonly keysVersion: number;
}

/** What a decision about a write is based on: the state as it will be when everything accepted before is durable. */
export interface Ahead {
  nextPetId(): number;
  nextOrderId(): number;
  /** How many keys there will be: the next key's slot. */
  keyCount(): number;
  pet(id: number): Pet | undefined;
  order(id: number): Order | undefined;
  category(id: Int64): Category | undefined;
  key(id: string): ApiKey | undefined;
  isEmpty(): boolean;
  /** Whether a write under this Idempotency-Key is accepted but not yet durable. */
  inFlight(kind: OnceKind, caller: string, key: string): boolean;
}

/** The seam. An engine appends, makes durable, applies, and lets read. */
export interface Store {
  readonly read: Reading;
  /**
   * `decide` looks at the state as it will be and returns the operation, or throws to refuse.
   * Resolves with the operation once it is durable and applied. A refusal that rests on something not
   * yet durable is thrown only when that something is.
   * Rejects with a StoreError when it could not be kept.
   */
  write<O extends Operation>(decide: (ahead: Ahead) => O): Promise<O>;
  /** Everything accepted so far is durable, no more is accepted. */
  close(): Promise<void>;
}

/**
 * full: not kept, there is no room; reads go on. unknown: it may or may not have been kept; the process must end.
 * busy: not accepted, the queue is full. closed: not accepted, the store is closed or has failed.
 * in_flight: the same was asked before and is not yet durable.
 * rejected: the operation itself is too large for one record.
 */
type StoreFailure = 'full' | 'unknown' | 'busy' | 'closed' | 'in_flight' | 'rejected';

export class StoreError extends Error {
  readonly failure: StoreFailure;

  constructor(failure: StoreFailure, message: string) {
    super(message);
    this.failure = failure;
  }
}
