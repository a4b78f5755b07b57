/** A request under an `Idempotency-Key` that was used before gets the first reply again. */
import { ApiError } from '../http/errors.ts';
import { idempotencyKeyIn } from '../http/idempotency-key.ts';
import { Reply } from '../http/reply.ts';
import type { Ahead, Change, FirstResult, IdempotencyKey, IdempotentKind } from '../store/model.ts';
import type { Call, Shop } from './call.ts';

const MAX_KEY_CHARS = 255;

/** Undefined if none was sent. */
function idempotencyKeyOf(store: Shop['store'], call: Call): IdempotencyKey | undefined {
  const sent = call.idempotencyKey;
  if (sent === undefined) return undefined;
  const key = idempotencyKeyIn(sent);
  if (!key || key.length > MAX_KEY_CHARS) {
    const must = `must be sent once, with 1 to ${MAX_KEY_CHARS} visible ASCII characters`;
    const quoted = sent.startsWith('"') ? '; in quotes, as a string of RFC 9651, it may hold blanks' : '';
    throw new ApiError('bad_request', `Idempotency-Key: ${must}${quoted}`);
  }
  return { caller: call.caller.id, key, at: store.unix() };
}

/**
 * Creates a thing, or finds the one that was created under the caller's Idempotency-Key before. `again` returns that
 * thing if the body is the same. While the first request is under way, others are refused at once.
 */
export function makeIdempotently<D extends Change, R>(
  { store, underWay }: Shop,
  call: Call,
  kind: IdempotentKind,
  again: (ahead: Ahead, made: FirstResult) => R | false | undefined,
  make: (ahead: Ahead, once: IdempotencyKey | undefined) => D,
): Promise<D | { op: 'again'; row: R }> {
  const once = idempotencyKeyOf(store, call);
  const decide = (ahead: Ahead) => {
    const made = once && ahead.firstResult(kind, once);
    if (made === undefined) return make(ahead, once);
    const row = again(ahead, made);
    if (row) return { op: 'again' as const, row };
    throw new ApiError('idempotency_key_reused', 'this Idempotency-Key was used with another body; take a new one');
  };
  if (once === undefined) return call.write(decide);
  const id = `${kind} ${once.caller} ${once.key}`;
  if (underWay.has(id) && !store.read.firstResult(kind, once)) {
    throw new ApiError('idempotency_in_flight', 'the first request under this Idempotency-Key is still under way');
  }
  underWay.add(id);
  return call.write(decide).finally(() => underWay.delete(id));
}

/** The first reply, with a header that marks it as a repetition. */
export function replayed(first: Reply): Reply {
  return new Reply(first.status, [...first.headers, 'Idempotent-Replayed', 'true'], first.body, first.etag);
}
