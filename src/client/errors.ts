/** What goes wrong with a call: told by the service, or found by the client itself (`ClientCode`). */
import type { ErrorCode } from '../http/errors.ts';

export type ClientCode =
  | 'network' // no connection, or one that broke
  | 'timeout' // no complete reply in time
  | 'aborted' // the signal fired
  | 'closed' // the client was closed
  | 'bad_reply' // a reply that is not the service's: a proxy's page, say
  | 'invalid_argument'; // one that cannot be sent exactly

/** The service's codes, the client's, and what a newer service may say. */
export type PetstoreErrorCode = ErrorCode | ClientCode | (string & {});

/** The one error that calls reject with. */
export class PetstoreError extends Error {
  override readonly name = 'PetstoreError';
  declare readonly code: PetstoreErrorCode;
  /** The HTTP status of the last try's reply, even one that broke off; 0 when it had none. */
  readonly status: number = 0;
  /** Names the last reply in the service's log. */
  readonly requestId?: string;
  /** Seconds until the service wants to be asked again, where it said so. */
  readonly retryAfter?: number;
  /** How often the call was sent. */
  readonly tries: number = 0;
  /** True when the service may have done what was asked: of one of the tries it is not known. */
  readonly outcomeUnknown: boolean = false;
  /** What all tries went under: to call again with it cannot make the thing twice (for 24 h). */
  readonly idempotencyKey?: string;

  constructor(code: PetstoreErrorCode, message: string, facts: Partial<PetstoreError> = {}) {
    super(message, { cause: facts.cause });
    Object.assign(this, facts, { code });
  }
}

/** Errors of what never left, or found nobody. */
const NEVER_SENT = /^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|UND_ERR_CONNECT_TIMEOUT|UND_ERR_INVALID_ARG)$/;

/** Whether it is worth sending again: by status, whether the service gave it or what stands between, or by code. */
export function isPassing({ code, status }: PetstoreError): boolean {
  return [408, 429, 502, 503, 504].includes(status) || /^(?:network|timeout|idempotency_in_flight)$/.test(code);
}

/** Whether the service may have done what was asked all the same. */
export function mayBeDone({ code, status, cause }: PetstoreError): boolean {
  if (status === 0) return !NEVER_SENT.test((cause as { code?: string }).code ?? '');
  if (status >= 400 && status < 500) return code === 'idempotency_in_flight';
  return code !== 'unavailable' && code !== 'storage_full';
}
