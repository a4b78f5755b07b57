/** A request under an `Idempotency-Key` that was used before gets the first reply again. */
import { hash } from 'node:crypto';
import { formatKeyId } from '../access/keys.ts';
import { retryAfterSeconds } from '../access/limiter.ts';
import { DAY_MS } from '../clock.ts';
import { ApiError, type HeaderList } from '../http/errors.ts';
import { jsonReply, type Reply } from '../http/reply.ts';
import type { Replay, Transaction } from '../store/model.ts';
import { formatNumber } from '../text.ts';
import { type Call, type HandlerContext, write } from './handler.ts';

const FORM = /^[\x21-\x7e]{1,255}$/;
export const MAX_REPLAYS_OF_KEY = 100_000;
const MAX_REPLAYS = 1_000_000;
const RETRY_SECONDS = '60';

/** What was made, as its first reply tells it. */
type Created = Pick<Replay, 'status' | 'body' | 'location'>;

export const created = (json: string, location: string): Created => ({ status: 201, body: json, location });

const replyOf = ({ status, body, location }: Created, more: HeaderList = []): Reply =>
  jsonReply(status, body, ['Location', location, ...more]);

/**
 * Runs `make` and stores its reply, in one transaction. A later request under the same Idempotency-Key with the same
 * `content()` gets that reply again. If it comes while the first waits for the disk, it waits in the same queue.
 */
export async function once(
  context: HandlerContext,
  call: Call,
  operation: string,
  content: () => string,
  make: (tx: Transaction) => Created,
): Promise<Reply> {
  const sent = call.idempotencyKey;
  if (sent === undefined) return replyOf(await write(context, call, make));
  if (!FORM.test(sent)) {
    throw new ApiError('bad_request', 'Idempotency-Key: must be sent once, with 1 to 255 visible ASCII characters');
  }
  const { store } = context;
  const keyId = call.caller.key.id;
  const id = `${operation} ${formatKeyId(keyId)} ${sent}`;
  const digest = hash('sha256', content());
  return write(context, call, (tx) => {
    const first = tx.replays.get(id);
    if (first !== undefined) {
      if (first.digest === digest) return replyOf(first, ['Idempotent-Replayed', 'true']);
      throw new ApiError('idempotency_key_reused', 'this Idempotency-Key was used with another body; take a new one');
    }
    checkBounds(context, tx, keyId);
    const made = make(tx);
    tx.replays.put({ id, keyId, digest, ...made, at: Math.floor(store.now()) });
    return replyOf(made);
  });
}

function checkBounds({ store, maxReplays = MAX_REPLAYS }: HandlerContext, tx: Transaction, keyId: number): void {
  const { replays } = store.read;
  const undurable = tx.replays.undurable();
  const ofKey = replays.ofKey(keyId);
  const more = undurable.filter((replay) => replay.keyId === keyId).length;
  if (ofKey.size + more >= MAX_REPLAYS_OF_KEY) {
    const retryAt = (ofKey.oldestAt ?? store.now()) + DAY_MS;
    const why = `this key has ${formatNumber(MAX_REPLAYS_OF_KEY)} Idempotency-Keys whose 24 hours are not over`;
    throw new ApiError('rate_limited', why, ['Retry-After', `${retryAfterSeconds(retryAt, store.now())}`]);
  }
  if (replays.size + undurable.length >= maxReplays) {
    throw new ApiError('unavailable', 'too many Idempotency-Keys are remembered', ['Retry-After', RETRY_SECONDS]);
  }
}
