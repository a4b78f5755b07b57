/** What every handler is given, and the ways of reading and writing that they share. */
import type { Caller, Callers } from '../access/callers.ts';
import type { Clock } from '../clock.ts';
import type { Reply } from '../http/reply.ts';
import { parseInt64 } from '../json/int64.ts';
import type { Store, Transaction } from '../store/model.ts';

export interface HandlerContext {
  readonly store: Store;
  readonly callers: Callers;
  readonly clock: Clock;
  /** The most Idempotency-Keys that are remembered; for tests, which cannot wait for the usual maximum. */
  readonly maxReplays?: number;
}

/** One request, as its handler sees it. */
export interface Call {
  readonly caller: Caller;
  /** The last segment of the path. */
  readonly param: string;
  /** The text after `?`, as it was sent. */
  readonly query: string;
  /** The header, as it was sent. */
  readonly idempotencyKey: string | undefined;
  /** As it was sent; empty for a GET. */
  readonly body: Uint8Array;
}

export type Handler = (call: Call, context: HandlerContext) => Reply | Promise<Reply>;

/** Like `Store.write`. The caller's key is checked again: it may have been revoked while the body came. */
export function write<T>({ store, callers }: HandlerContext, call: Call, work: (tx: Transaction) => T): Promise<T> {
  const { caller } = call;
  return store.write((tx) => {
    callers.check(caller, tx.keys);
    return work(tx);
  });
}

/** The id in a path; 0 (never an id) unless the text is an integer from 1 to 2^53 − 1. */
export function idParam(text: string): number {
  const id = parseInt64(text);
  return typeof id === 'number' && id > 0 ? id : 0;
}
