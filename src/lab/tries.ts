/** Which recorded requests are the same again, and how long their client waited before it came again. */
import type { RequestRecord } from './request-record.ts';

interface Try {
  one: RequestRecord;
  /** The request id of the try before; null: it is the first, or the one before went well. */
  again: string | null;
  /** Milliseconds between the end of that one and this one, on the key's own clock. */
  waited: number | null;
}

/** In order of arrival, as they are given. */
export function triesOf(requests: readonly RequestRecord[]): Try[] {
  const latest = new Map<string, RequestRecord>();
  return requests.map((one) => {
    const before = latest.get(one.same);
    latest.set(one.same, one);
    if (before === undefined || !(before.isLost || before.status === null || before.status >= 400)) {
      return { one, again: null, waited: null };
    }
    return { one, again: before.requestId, waited: Math.round(10 * (one.at - before.endedAt)) / 10 };
  });
}

/** As `GET /lab/requests` shows them, newest first. */
export function shown(requests: readonly RequestRecord[], limit: number): object[] {
  const tries = triesOf(requests).reverse().slice(0, limit);
  return tries.map(({ one, again, waited }) => {
    const { method, target, operation, status, requestId, connection, fault, ms } = one;
    const about = { method, target, operation, status, requestId, connection };
    return {
      at: new Date(one.unix).toISOString(),
      ...about,
      idempotencyKey: one.key ?? null,
      fault,
      ms,
      again,
      waited,
    };
  });
}
