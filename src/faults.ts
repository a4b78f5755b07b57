import { ApiError } from './http/errors.ts';
import { InvalidMembers } from './json/members.ts';
import { JsonError } from './json/text.ts';
import { StoreError } from './store/model.ts';

/** How the errors of each room are told to a client. Undefined: none of them, so a bug. */
export function toApiError(error: unknown): ApiError | undefined {
  if (error instanceof ApiError) return error;
  if (error instanceof JsonError) return new ApiError('invalid_json', error.message);
  if (error instanceof InvalidMembers) return new ApiError('invalid_body', error.message);
  if (!(error instanceof StoreError)) return undefined;
  switch (error.failure) {
    case 'full':
      return new ApiError('storage_full', 'the disk is full: nothing was kept; reading goes on');
    case 'unknown':
      return new ApiError('outcome_unknown', 'the disk failed: this may or may not have been kept');
    case 'unavailable':
      return new ApiError('unavailable', 'the database cannot be reached: nothing was kept', ['Retry-After', '1']);
    case 'busy':
    case 'closed':
      return new ApiError('unavailable', 'no more can be written just now; ask again', ['Retry-After', '1']);
    case 'in_flight':
      return new ApiError('idempotency_in_flight', 'the first request under this Idempotency-Key is still under way');
    case 'rejected':
      return undefined;
    default:
      return error.failure satisfies never;
  }
}
