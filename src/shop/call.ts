/** What a handler is given, and what the handlers share. */
import type { Clock } from '../clock.ts';
import { ApiError } from '../http/errors.ts';
import type { Reply } from '../http/reply.ts';
import { parseInt64 } from '../json/int64.ts';
import type { JsonValue } from '../json/reader.ts';
import type { ApiKey, Store } from '../store/model.ts';
import type { ReplyCache } from './cache.ts';

export interface Shop {
  store: Store;
  clock: Clock;
  /** With `known`, an animal's category must exist. */
  categories: 'open' | 'known';
  /** Replies to requests for a list of animals, and for one of them. */
  lists: ReplyCache;
  animals: ReplyCache;
}

export interface Call {
  caller: ApiKey;
  /** The last segment of the path, where the route has a parameter. */
  param: string;
  /** The text behind `?`, as it was sent. */
  query: string;
  /** The parsed body, for operations that take one. */
  body: JsonValue;
  idempotencyKey: string | undefined;
}

export type Handler = (shop: Shop, call: Call) => Reply | Promise<Reply>;

/** An id out of a path. What is no positive int64 names nothing. */
export function idParam(text: string): number | undefined {
  const id = parseInt64(text);
  return typeof id === 'number' && id > 0 ? id : undefined;
}

export function notFound(what: string): ApiError {
  return new ApiError('not_found', `there is no such ${what}`);
}
