/** Translates the errors of `json/` and `store/` into errors of the catalogue. */
import { retryAfterSeconds } from './access/limits.ts';
import { ApiError, type ErrorCode } from './http/errors.ts';
import { InvalidMembers } from './json/members.ts';
import { JsonError } from './json/text.ts';
import { BoundError } from './store/bounds.ts';
import { StoreError } from './store/model.ts';

const AGAIN = ['Retry-After', '1'];
/** For each failure of the store. A `quota` is always a BoundError. A `rejected` is a bug: no request is that large. */
const OF_STORE: Record<StoreError['failure'], [ErrorCode, message: string, headers?: string[]] | undefined> = {
  full: ['storage_full', 'the disk is full: nothing was kept; reading goes on'],
  unknown: ['outcome_unknown', 'storage failed: this may or may not have been kept'],
  unavailable: ['unavailable', 'the store does not answer just now: nothing was done', AGAIN],
  busy: ['unavailable', 'too many writes wait: this one was not taken', AGAIN],
  closed: ['unavailable', 'the store is closed: this was not written', AGAIN],
  quota: undefined,
  rejected: undefined,
};
/** An error at a bound brings its own message: which bound it is, and whose. */
const AT_BOUND = { full: 'storage_full', busy: 'unavailable', quota: 'rate_limited' } as const;

/** The error that a client gets in place of this one. Undefined if there is none for it: then it is a bug. */
export function toApiError(error: unknown): ApiError | undefined {
  if (error instanceof ApiError) return error;
  if (error instanceof JsonError) return new ApiError('invalid_json', error.message);
  if (error instanceof InvalidMembers) return new ApiError('invalid_body', error.message);
  if (error instanceof BoundError) {
    const { failure, message, about } = error;
    const { retryMs } = about;
    const retry = retryMs === undefined ? [] : ['Retry-After', String(retryAfterSeconds(retryMs, 0))];
    return new ApiError(AT_BOUND[failure as keyof typeof AT_BOUND], message, retry);
  }
  const known = error instanceof StoreError ? OF_STORE[error.failure] : undefined;
  return known && new ApiError(...known);
}
