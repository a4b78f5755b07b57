/** The bounds of the store, and the errors of a write beyond them. */
import { inWords } from '../clock.ts';
import { count } from '../digits.ts';
import { StoreError } from './model.ts';

/** The most keys, and the most categories. */
export const MAX_KEYS = 1_000_000;
export const MAX_CATEGORIES = 1_000_000;
/** The most idempotency records that have not ended. Any new Idempotency-Key is then refused until a record ends. */
export const MAX_IDEMPOTENCY_RECORDS = 1_000_000;
export const MAX_IDEMPOTENCY_RECORDS_OF_KEY = 100_000;
/** No key fills the store alone: its share is the maximum of the store divided by this. */
export const KEYS_THAT_FILL_IT = 2;

/** A bound is reached: of one caller (`caller`) or of all. The message is for the client. */
export class BoundError extends StoreError {
  readonly about: { caller?: string; retryMs?: number };

  /** `retryMs`: the time until there is room again. */
  constructor(failure: 'full' | 'busy' | 'quota', message: string, about: BoundError['about'] = {}) {
    super(failure, message);
    this.about = about;
  }
}

export function tooMany(things: 'keys' | 'categories', max: number): BoundError {
  return new BoundError('full', `the store has ${count(max)} ${things}, and takes no more; ${NOT_KEPT}`);
}

export function tooManyRecords(retryMs: number): BoundError {
  return new BoundError('busy', records('the store', MAX_IDEMPOTENCY_RECORDS, retryMs), { retryMs });
}

export function tooManyRecordsOf(caller: string, retryMs: number): BoundError {
  const message = records('this key', MAX_IDEMPOTENCY_RECORDS_OF_KEY, retryMs);
  return new BoundError('quota', message, { caller, retryMs });
}

const records = (who: string, max: number, retryMs: number) =>
  `${who} has ${count(max)} Idempotency-Keys that still count; the oldest ends in ${inWords(retryMs)}`;

export function storeIsFull(maxBytes: number): BoundError {
  return new BoundError('full', `the store has reached its maximum of ${inMegabytes(maxBytes)}; ${NOT_KEPT}`);
}

export function shareIsFull(maxBytes: number, caller: string): BoundError {
  const share = `${inMegabytes(maxBytes / KEYS_THAT_FILL_IT)} of ${inMegabytes(maxBytes)}`;
  return new BoundError('full', `this key has used up its share of the store, ${share}; ${NOT_KEPT}`, { caller });
}

const NOT_KEPT = 'this was not kept, and reading goes on';

/** Small sizes with one decimal place. */
export const inMegabytes = (bytes: number): string =>
  `${bytes < 10 * 2 ** 20 ? Math.floor((10 * bytes) / 2 ** 20) / 10 : count(Math.floor(bytes / 2 ** 20))} MB`;
