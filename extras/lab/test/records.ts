/** A record of a request as a good client sends it, but for what a test gives. */
import type { RequestRecord } from '../record.ts';

export function recordOf(given: Partial<RequestRecord>): RequestRecord {
  const { at = 0 } = given;
  return {
    at,
    endedAt: at + 1,
    unix: at,
    ms: 1,
    method: 'GET',
    target: '/v1/pets',
    operation: 'listPets',
    requestId: 'r0',
    connection: 1,
    connectedAt: 0,
    opens: false,
    closedAfterMs: 1,
    isKeptAlive: true,
    isPipelined: false,
    isProxied: false,
    content: '',
    isBodyUnknown: false,
    key: undefined,
    isLinked: undefined,
    fault: null,
    status: 200,
    code: undefined,
    isLost: false,
    retryAt: undefined,
    beganBan: false,
    ...given,
  };
}
