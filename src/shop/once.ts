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
  return { caller: call.caller.id, key, at: shop.clock.steady() };
}

/** The first reply under this key; refused where the body then said something else. */
export function replayed(
  shop: Shop,
  kind: OnceKind,
  once: Once | undefined,
  reply: (made: Made) => Reply | undefined,
): Reply | undefined {
  if (once === undefined) return undefined;
  const made = shop.store.read.made(kind, once.caller, once.key, once.at);
  if (made === undefined) return undefined;
  const first = reply(made);
  if (first === undefined) {
    throw new ApiError('idempotency_key_reused', 'this Idempotency-Key was used with another body; take a new one');
  }
  return { ...first, headers: [...first.headers, 'Idempotent-Replayed', 'true'] };
}

/** Told at once, not when the first is durable: then it would no longer be true. */
export function refuseInFlight(ahead: Ahead, kind: OnceKind, once: Once | undefined): void {
  if (once !== undefined && ahead.inFlight(kind, once.caller, once.key)) {
    throw new StoreError('in_flight', 'a write under the same Idempotency-Key is under way');
  }
}
