/** What each error becomes for the client, in one place. */
import { ApiError, notNow } from '../http/errors.ts';
import { InvalidMembers } from '../json/members.ts';
import { JsonError } from '../json/reader.ts';
import { type Failure, StoreError } from '../store/model.ts';

const OF_STORE: Record<Exclude<Failure, 'bound'>, ApiError> = {
  full: new ApiError('storage_full', 'the disk is full: nothing was kept; reading goes on'),
  unknown: new ApiError('outcome_unknown', 'storage failed: this may or may not have been kept'),
  unavailable: notNow('the store does not answer just now: nothing was done'),
  busy: notNow('too many writes wait: this one was not taken'),
  closed: notNow('the store is closed: this was not written'),
};

/** The refusal that a client gets in place of an error. Undefined if there is none: then the error is a bug. */
export function asApiError(error: unknown): ApiError | undefined {
  if (error instanceof ApiError) return error;
  if (error instanceof JsonError) return new ApiError('invalid_json', error.message);
  if (error instanceof InvalidMembers) return new ApiError('invalid_body', error.message);
  if (!(error instanceof StoreError)) return undefined;
  if (error.failure !== 'bound') return OF_STORE[error.failure];
  return new ApiError('storage_full', `${error.message}: nothing was kept; reading goes on`);
}
