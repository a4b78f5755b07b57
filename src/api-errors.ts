/** The errors of each room, as errors of the catalogue. */
import { retryAfterSeconds } from './access/limits.ts';
import { ApiError, type ErrorCode } from './http/errors.ts';
import { InvalidMembers } from './json/members.ts';
import { JsonError } from './json/text.ts';
import { BoundError } from './store/bounds.ts';
import { StoreError } from './store/model.ts';

const AGAIN = ['Retry-After', '1'];
/** The store's failures as errors of the catalogue. `rejected` is a bug: no request can make a change that large. */
const TOLD: Record<StoreError['failure'], [ErrorCode, message: string, headers?: string[]] | undefined> = {
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

/** How the errors of each room are told to a client. Undefined: none of them, so a bug. */
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
  const told = error instanceof StoreError ? TOLD[error.failure] : undefined;
  return told && new ApiError(...told);
}
