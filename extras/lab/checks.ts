/** The checks of the grade, as a table. */
import * as other from './other-rules.ts';
import * as retries from './post-retries.ts';
import type { Rule } from './rule.ts';
import * as waits from './waits.ts';

export interface Check {
  id: string;
  weight: number;
  /** The best grade if it fails. */
  cap?: 'C' | 'D' | 'F';
  /** The best grade while it is unseen. */
  capUnseen?: 'B';
  rules: readonly Rule[];
  /** What a client does for it to be seen. */
  hint?: string;
}

// biome-ignore format: a table
export const CHECKS: readonly Check[] = [
  { id: 'retry_after', weight: 20, cap: 'D', rules: [
      { judge: waits.judgeRetryAfter,
        subject: 'refusals with Retry-After', bad: 'were followed by a request that came before that time' },
      { judge: retries.judgeEarlyUnderNewKey, isRevisable: true,
        subject: 'POSTs before the Retry-After of an equal one', bad: 'came in its place, under a new Idempotency-Key' }],
    hint: 'after a 429 or 503 with Retry-After, wait so long and send the same again' },
  { id: 'idempotency', weight: 20, cap: 'C', capUnseen: 'B', rules: [
      { judge: retries.judgeIdempotency, isRevisable: true,
        subject: 'POSTs sent again after a lost reply or a 5xx', bad: 'had no Idempotency-Key, or a new one' },
      { judge: retries.judgeSharedKey,
        subject: 'POSTs after a 422', bad: 'got another: one Idempotency-Key stood for different requests' }],
    hint: 'send a POST whose reply was lost, or was a 5xx, again within a minute' },
  { id: 'finished', weight: 15, cap: 'C', rules: [
      { judge: retries.judgeFinished, share: 0.2, isRevisable: true,
        subject: 'POSTs that met a 429, a 5xx or a lost reply', bad: 'never came again until they were answered' }],
    hint: 'send POSTs, and repeat each that fails until it is answered' },
  { id: 'backoff', weight: 10, rules: [
      { judge: waits.judgeWaits, share: 0.5,
        subject: 'waits in rows of three failures or more without Retry-After', bad: 'were under 50 ms' },
      { judge: waits.judgeGrowth, share: 0.5, isRevisable: true, onlyWarns: true,
        subject: 'such rows', bad: 'had waits that did not grow' },
      { judge: waits.judgeLongRows, isRevisable: true,
        subject: `rows of ${waits.LONG_ROW} tries or more`, bad: 'had no wait of 50 ms at all' }],
    hint: 'send again what fails three times in a row, and wait longer each time' },
  { id: 'hopeless', weight: 10, rules: [
      { judge: other.judgeHopeless, subject: 'requests after a refusal such as 400, 404 or 409',
        bad: 'were what it refused, again for the third time or more' }],
    hint: 'ask for what is refused, such as an order for an animal that is sold, and then for something else' },
  { id: 'reuse', weight: 10, rules: [
      { judge: other.judgeReuse, share: 0.1,
        subject: 'requests less than 5 s after a reply whose connection was still open',
        bad: 'came on a new connection' }],
    hint: 'send requests less than 5 s apart' },
  { id: 'paging', weight: 5, rules: [
      { judge: other.judgePaging, subject: 'requests with `after`', bad: 'had a value that no Link gave' }],
    hint: 'list more than a page, such as GET /v1/pets?limit=10, and follow the Links' },
  { id: 'deprecated', weight: 0, rules: [
      { judge: other.judgeDeprecated, onlyWarns: true, subject: 'requests for GET /v1/pets/{petId}',
        bad: 'came after a reply had said that it is deprecated' }] },
  { id: 'ban', weight: 0, cap: 'F', rules: [{ judge: other.judgeBan, subject: 'requests', bad: 'began a ban' }] },
];

export const RULES: readonly Rule[] = CHECKS.flatMap(({ rules }) => rules);
