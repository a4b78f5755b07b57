/** Asking again under the same `Idempotency-Key`: the first reply, again. */
import { ApiError } from '../http/errors.ts';
import type { Reply } from '../http/reply.ts';
import type { Ahead, Made, Once, OnceKind } from '../store/model.ts';
import type { Call, Shop } from './call.ts';

const MAX_KEY_CHARS = 255;
const VISIBLE_ASCII = /^[\x21-\x7e]+$/;
const QUOTED = /^"((?:[^"\\]|\\["\\])*)"$/;

/** The header's key, quoted or bare; undefined where none was sent. Throws where the first under it is under way. */
export function onceOf(shop: Shop, call: Call, kind: OnceKind): Once | undefined {
  const sent = call.idempotencyKey;
  if (sent === undefined) return undefined;
  const quoted = QUOTED.exec(sent);
  const key = quoted === null ? sent : quoted[1].replace(/\\(.)/g, '$1');
  if (key.length > MAX_KEY_CHARS || !VISIBLE_ASCII.test(key)) {
    const must = `must be sent once, with 1 to ${MAX_KEY_CHARS} visible ASCII characters`;
    throw new ApiError('bad_request', `Idempotency-Key: ${must}`);
  }
  const once = { caller: call.caller.id, key, at: shop.store.unix() };
  if (shop.store.isUnderWay(kind, once)) throw inFlight();
  return once;
}

/**
 * The part of a decision that finds what was made under this key before. `isSame`: whether it was asked for by a body
 * that says the same.
 */
export function madeBefore(
  ahead: Ahead,
  kind: OnceKind,
  once: Once | undefined,
  isSame: (made: Made) => boolean,
): { op: 'again'; made: Made } | undefined {
  const made = once && ahead.made(kind, once);
  if (made === undefined) return undefined;
  if (made === 'accepted') throw inFlight();
  if (!isSame(made)) {
    throw new ApiError('idempotency_key_reused', 'this Idempotency-Key was used with another body; take a new one');
  }
  return { op: 'again', made };
}

const inFlight = () => new ApiError('idempotency_in_flight', 'the first request under this key is still under way');

/** The first reply, marked. */
export function replayed(first: Reply): Reply {
  return { ...first, headers: [...first.headers, 'Idempotent-Replayed', 'true'] };
}
