import type { ErrorCode } from '../http/errors.ts';

/**
 * The client's own: no connection, or one that broke; no whole reply in time; the signal fired; the client was
 * closed; a reply that is not the service's (a proxy's page, say); an argument that cannot be sent exactly; more
 * calls waiting than the client holds.
 */
export type ClientCode =
  | 'network'
  | 'timeout'
  | 'aborted'
  | 'closed'
  | 'bad_reply'
  | 'invalid_argument'
  | 'too_many_calls';

/** The service's codes, the client's, and what a newer service may say. */
export type PetstoreErrorCode = ErrorCode | ClientCode | (string & {});

export interface Facts {
  status?: number;
  requestId?: string;
  retryAfter?: number;
  cause?: unknown;
  /** Worth sending again. */
  again?: boolean;
  /** The service may have done what was asked all the same. */
  unclear?: boolean;
}

/** Why one try, or the wait for one, came to nothing. Never leaves the client: see PetstoreError. */
export class Failure extends Error {
  readonly code: PetstoreErrorCode;
  readonly facts: Facts;
  /** When it may be sent again (monotonic ms). */
  againAt = 0;

  constructor(code: PetstoreErrorCode, message: string, facts: Facts = {}) {
    super(message);
    this.code = code;
    this.facts = facts;
  }
}

/** The one error that calls reject with. */
export class PetstoreError extends Error {
  override readonly name = 'PetstoreError';
  readonly code: PetstoreErrorCode;
  /** The HTTP status of the last reply; 0 when the last try had none. */
  readonly status: number;
  /** Names the last reply in the service's log. */
  readonly requestId: string | undefined;
  /** Seconds until the service wants to be asked again, where it said so. */
  readonly retryAfter: number | undefined;
  /** How often the call was sent. */
  readonly tries: number;
  /** True when the service may have done what was asked: of one of the tries it is not known. */
  readonly outcomeUnknown: boolean;
  /** What all tries went under: to call again with it cannot make the thing twice (for 24 h). */
  readonly idempotencyKey: string | undefined;

  constructor(failure: Failure, tries = 0, outcomeUnknown = false, idempotencyKey?: string) {
    super(failure.message, { cause: failure.facts.cause });
    this.code = failure.code;
    this.status = failure.facts.status ?? 0;
    this.requestId = failure.facts.requestId;
    this.retryAfter = failure.facts.retryAfter;
    this.tries = tries;
    this.outcomeUnknown = outcomeUnknown;
    this.idempotencyKey = idempotencyKey;
  }
}
