/** Asking again under the same `Idempotency-Key`: the first reply, again. */
import { ApiError } from '../http/errors.ts';
import type { Reply } from '../http/reply.ts';
import { type Ahead, type Made, type Once, type OnceKind, StoreError } from '../store/model.ts';
import type { Call, Shop } from './call.ts';

const MAX_KEY_CHARS = 255;
const VISIBLE_ASCII = /^[\x21-\x7e]+$/;
const QUOTED = /^"((?:[^"\\]|\\["\\])*)"$/;

/** The header's key, quoted or bare; undefined where none was sent. */
export function onceOf(shop: Shop, call: Call): Once | undefined {
  const sent = call.idempotencyKey;
  if (sent === undefined) return undefined;
  const quoted = QUOTED.exec(sent);
  const key = quoted === null ? sent : quoted[1].replace(/\\(.)/g, '$1');
  if (key.length > MAX_KEY_CHARS || !VISIBLE_ASCII.test(key)) {
    throw new ApiError(
      'bad_request',
      `Idempotency-Key: must be sent once, with 1 to ${MAX_KEY_CHARS} visible ASCII characters`,
    );
  }
  return { caller: call.caller.id, key, at: shop.store.unix() };
}

/**
 * The part of a decision that finds what was made under this key before. `isSame`: whether it was asked for by a body
 * that says the same. That the first is under way is told at once, not when it is durable: then it would no longer be
 * true.
 */
export function madeBefore(
  ahead: Ahead,
  kind: OnceKind,
  once: Once | undefined,
  isSame: (made: Made) => boolean,
): { op: 'again'; made: Made } | undefined {
  if (once === undefined) return undefined;
  const made = ahead.made(kind, once);
  if (made === undefined) return undefined;
  if (made === 'accepted') throw new StoreError('in_flight', 'a write under the same Idempotency-Key is under way');
  if (!isSame(made)) {
    throw new ApiError('idempotency_key_reused', 'this Idempotency-Key was used with another body; take a new one');
  }
  return { op: 'again', made };
}

/** The first reply, marked. */
export function replayed(first: Reply): Reply {
  return { ...first, headers: [...first.headers, 'Idempotent-Replayed', 'true'] };
}
