/** What a handler is given, and what the handlers share. */
import type { Clock } from '../clock.ts';
import { type ConditionHeaders, underConditions } from '../http/conditions.ts';
import { ApiError } from '../http/errors.ts';
import type { Reply } from '../http/reply.ts';
import { parseInt64 } from '../json/int64.ts';
import type { JsonValue } from '../json/reader.ts';
import type { Ahead, ApiKey, Store } from '../store/model.ts';
import type { ReplyCache } from './cache.ts';

export interface Shop {
  store: Store;
  clock: Clock;
  /** With `known`, an animal's category must exist. */
  categories: 'open' | 'known';
  /** Replies to requests for a list of animals, and for one of them. */
  lists: ReplyCache;
  animals: ReplyCache;
  /** What is being made under an Idempotency-Key just now. */
  underWay: Set<string>;
}

export interface Call {
  caller: ApiKey;
  /** The last segment of the path. */
  param: string;
  /** The text behind `?`, as it was sent. */
  query: string;
  /** The parsed body, for operations that take one. */
  body: JsonValue;
  idempotencyKey: string | undefined;
  /** The conditions under which it is asked. Those of a GET are looked at behind its handler. */
  conditions: ConditionHeaders;
  /** Throws where the caller's key has ended since it was let in: to be asked first inside every `decide`. */
  recheck(ahead: Pick<Ahead, 'keys'>): void;
}

export type Handler = (shop: Shop, call: Call) => Reply | Promise<Reply>;

/** What a GET gives, under the request's conditions. */
export function reading(handler: (shop: Shop, call: Call) => Reply): Handler {
  return (shop, call) => underConditions(call.conditions, handler(shop, call));
}

/** An id out of a path; 0, which nothing has, for what is no positive int64. */
export function idParam(text: string): number {
  const id = parseInt64(text);
  return typeof id === 'number' && id > 0 ? id : 0;
}

export function notFound(what: string): ApiError {
  return new ApiError('not_found', `there is no such ${what}`);
}
