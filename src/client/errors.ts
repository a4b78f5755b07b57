import type { ErrorCode } from '../http/errors.ts';

/** What the client finds itself. */
export type ClientCode =
  | 'network' // no connection, or one that broke
  | 'timeout' // no whole reply in time
  | 'aborted' // the signal fired
  | 'closed' // the client was closed
  | 'bad_reply' // a reply that is not the service's: a proxy's page, say
  | 'invalid_argument' // one that cannot be sent exactly
  | 'too_many_calls'; // more are waiting than the client holds

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

  constructor({ code, message, facts }: Failure, tries = 0, outcomeUnknown = false, idempotencyKey?: string) {
    super(message, { cause: facts.cause });
    this.code = code;
    this.status = facts.status ?? 0;
    this.requestId = facts.requestId;
    this.retryAfter = facts.retryAfter;
    this.tries = tries;
    this.outcomeUnknown = outcomeUnknown;
    this.idempotencyKey = idempotencyKey;
  }
}
