/** Repeated requests in a history, and the time that their client waited before each. */
import type { RequestRecord } from './request-record.ts';
import { wasUnderWay } from './waiting.ts';

interface Try {
  one: RequestRecord;
  /** The request id of the latest try that had ended when this one came; null if there is none, or if it went well. */
  again: string | null;
  /** Milliseconds from the end of that try to this one, on the key's own clock. */
  waited: number | null;
}

/** Takes and returns the requests in order of arrival. */
export function triesOf(requests: readonly RequestRecord[]): Try[] {
  return requests.map((one, place) => {
    const isBefore = (other: RequestRecord) => other.endedAt <= one.at && !wasUnderWay(one, other);
    const before = requests.findLast((other, at) => at < place && other.same === one.same && isBefore(other));
    if (before === undefined || !(before.isLost || before.status === null || before.status >= 400)) {
      return { one, again: null, waited: null };
    }
    return { one, again: before.requestId, waited: Math.round(10 * (one.at - before.endedAt)) / 10 };
  });
}

/** The form of `GET /lab/requests`, newest first. */
export function shown(requests: readonly RequestRecord[], limit: number): object[] {
  const tries = triesOf(requests).reverse().slice(0, limit);
  return tries.map(({ one, again, waited }) => {
    const { unix, method, target, operation, status, requestId, connection, key = null, fault, ms } = one;
    const at = new Date(unix).toISOString();
    const asked = { at, method, target, operation, status, requestId, connection };
    return { ...asked, idempotencyKey: key, fault, ms, again, waited };
  });
}
