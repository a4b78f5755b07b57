/** The arguments of a handler, and helpers that handlers share. */
import type { Clock } from '../clock.ts';
import { type ConditionHeaders, underConditions } from '../http/conditions.ts';
import { ApiError } from '../http/errors.ts';
import type { Reply, TaggedReply } from '../http/reply.ts';
import { parseInt64 } from '../json/int64.ts';
import type { ApiKey, Store } from '../store/model.ts';
import type { ReplyCache } from './cache.ts';

export interface Shop {
  /** The store, for reading. Each call has its own `write`, so that no handler can write for a key that has ended. */
  store: Omit<Store, 'write'>;
  clock: Clock;
  /** With `known`, an animal's category must exist. */
  categories: 'open' | 'known';
  /** The lab is served: the date of removal follows the clock of the caller's key. */
  hasLab: boolean;
  /** Replies to requests for a list of animals. */
  lists: ReplyCache;
  /** Replies to requests for one animal. */
  animals: ReplyCache;
  /** The Idempotency-Keys whose first request is under way. */
  underWay: Set<string>;
}

/** The arguments of every handler; the handler of a GET has no others. */
export interface ReadCall {
  caller: ApiKey;
  /** The last segment of the path. */
  param: string;
  /** The text after `?`, as it was sent. */
  query: string;
  /** The request's conditions. For a GET they are checked after its handler. */
  conditions: ConditionHeaders;
}

export interface Call extends ReadCall {
  /** The body as it was sent: `readJson` gives its value. */
  body: Uint8Array;
  idempotencyKey: string | undefined;
  /** Like `Store.write`, but refuses if the caller's key has ended when the write is decided. */
  write: Store['write'];
}

/** Member by member: V8 makes a copy by `...` slowly, and from then on each read of such an object is slow. */
export function asWrite(reading: ReadCall, { idempotencyKey, body, write }: Omit<Call, keyof ReadCall>): Call {
  const { caller, param, query, conditions } = reading;
  return { caller, param, query, conditions, idempotencyKey, body, write };
}

export type Handler = (shop: Shop, call: Call) => Reply | Promise<Reply>;

/** The handler of a GET. */
export type ReadHandler = (shop: Shop, call: ReadCall) => TaggedReply;

/** The handler of a GET, which answers 304 or 412 if the request's conditions say so. */
export function reading(handler: ReadHandler): Handler {
  return (shop, call) => underConditions(call.conditions, handler(shop, call));
}

/** The id in a path; 0 (never an id) unless the text is an integer from 1 to 2^53 − 1. */
export function idParam(text: string): number {
  const id = parseInt64(text);
  return typeof id === 'number' && id > 0 ? id : 0;
}

export function notFound(what: string): ApiError {
  return new ApiError('not_found', `there is no such ${what}`);
}
