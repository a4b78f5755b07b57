/** What the client takes and gives. Nothing is imported from the service's own rooms: these types travel alone. */
import type { Dispatcher } from 'undici';

/** A number where that is exact, a bigint beyond 2^53. */
export type Int64 = number | bigint;
export type PetStatus = 'available' | 'pending' | 'sold';
export type OrderStatus = 'placed' | 'delivered' | 'cancelled';

export interface NewPet {
  name: string;
  categoryId: Int64;
  /** `available` when omitted. */
  status?: PetStatus;
}

export interface Pet {
  id: Int64;
  name: string;
  categoryId: Int64;
  status: PetStatus;
}

export interface Category {
  id: Int64;
  name: string;
}

export interface Order {
  id: Int64;
  petId: Int64;
  status: OrderStatus;
  /** RFC 3339, UTC. */
  placedAt: string;
}

export interface CallOptions {
  signal?: AbortSignal;
}

export interface CreateOptions extends CallOptions {
  /** The same for all tries of one intention. Without one, the client makes one for each call. */
  idempotencyKey?: string;
}

export interface ListOptions extends CallOptions {
  /** 1 to 100 things a page. When iterating without it: 100, as every page costs one request. */
  limit?: number;
  /** Begin behind this id. */
  after?: Int64;
}

export interface Page<T> {
  items: T[];
  /** The `after` of the next page; absent on the last one. */
  nextAfter?: Int64;
}

/** Nothing is asked before it is iterated over, or its one page is taken. */
export interface Listing<T> extends AsyncIterable<T> {
  /** One page, as the service gives it. */
  page(): Promise<Page<T>>;
}

export interface ClientOptions {
  /** Ends in `/v1`, as `petstore serve` prints it. */
  baseUrl: string | URL;
  key: string;
  /** How often one call is sent at most. Default 6. */
  tries?: number;
  /** How long one call may take, waits and all tries together. Default 90,000: it outlives a minute window. */
  budgetMs?: number;
  /** How long one try may take, from connecting to the last byte. Default 15,000. */
  tryTimeoutMs?: number;
  /** Wait for the end of a ban, if the budget allows, instead of throwing at once. Default false. */
  waitOutBans?: boolean;
  /** An undici dispatcher of your own (a proxy, other TLS settings); you close it. */
  dispatcher?: Dispatcher;
  /** Told once about each deprecated operation. Default: `process.emitWarning`. */
  onWarning?: (message: string) => void;
  /** For tests: monotonic milliseconds, the wait (which must end early when the signal fires), 0 <= random < 1. */
  clock?: { now(): number };
  sleep?: (ms: number, signal: AbortSignal) => Promise<unknown>;
  random?: () => number;
}
