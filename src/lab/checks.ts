/**
 * The behaviour of a good client, as a table of checks. Each rests on pure functions, which judge the newest request in
 * view of those that arrived before it. The judgements are counted, so that they outlive the requests.
 */
import * as asking from './asking.ts';
import * as equalPosts from './equal-posts.ts';
import type { Judgement, RequestRecord, Surroundings } from './request-record.ts';
import * as waiting from './waiting.ts';

export interface Rule {
  judge?(newest: RequestRecord, before: readonly RequestRecord[], around?: Surroundings): Judgement[];
  /** For faults that show only as time passes: judges the whole history, when the grade is asked for. */
  settle?(history: readonly RequestRecord[], now: number): { judged: Judgement[]; openUntil: number };
  /** The judged things, and the fault of a bad one, for `why`: "3 of 12 requests … came …". */
  judged: string;
  bad: string;
  /** The share that may be bad; none, if absent. */
  share?: number;
  /** A later request can turn a bad judgement into a good one; otherwise it stays bad. */
  revises?: boolean;
  /** It warns and never fails. */
  warns?: boolean;
}

export interface Check {
  id: string;
  weight: number;
  /** The best grade if it fails. */
  cap?: 'C' | 'D' | 'F';
  /** The best grade while it is unseen. */
  capUnseen?: 'B';
  rules: readonly Rule[];
  /** The behaviour by which the check would be seen. */
  toSee?: string;
}

// biome-ignore format: a table
export const CHECKS: readonly Check[] = [
  { id: 'retry_after', weight: 20, cap: 'D', rules: [
      { judge: waiting.judgeRetryAfter,
        judged: 'refusals that told a time', bad: 'were followed by a request that came before it' },
      { judge: equalPosts.judgeEarlyUnderNewKey, revises: true,
        judged: 'POSTs before the time that an equal one was told',
        bad: 'came in its place, under a new Idempotency-Key' }],
    toSee: 'after a 429 or 503 with Retry-After, wait so long and send the same again' },
  { id: 'idempotency', weight: 20, cap: 'C', capUnseen: 'B', rules: [
      { judge: equalPosts.judgeIdempotency, revises: true,
        judged: 'POSTs sent again after a lost reply or a 5xx', bad: 'had no Idempotency-Key, or a new one' },
      { judge: equalPosts.judgeOneKeyForAll,
        judged: 'POSTs after a 422', bad: 'got another: one Idempotency-Key stood for different requests' }],
    toSee: 'send a POST whose reply was lost, or was a 5xx, again within a minute' },
  { id: 'finished', weight: 15, cap: 'C', rules: [
      { settle: asking.judgeFinished, share: 0.2, revises: true,
        judged: 'POSTs that met a 429, a 5xx or a lost reply', bad: 'never came again until they were answered' }],
    toSee: 'send POSTs, and repeat each that fails until it is answered' },
  { id: 'backoff', weight: 10, rules: [
      { judge: waiting.judgeWaits, share: 0.5,
        judged: 'waits in rows of three failures or more without a time told', bad: 'were under 50 ms' },
      { judge: waiting.judgeGrowth, share: 0.5, revises: true, warns: true,
        judged: 'such rows', bad: 'had waits that did not grow' },
      { judge: waiting.judgeHaste, revises: true,
        judged: `rows of ${waiting.LONG_ROW} tries or more`, bad: 'had no wait of 50 ms at all' }],
    toSee: 'send again what fails three times in a row, and wait longer each time' },
  { id: 'herd', weight: 5, rules: [
      { judge: waiting.judgeHerd,
        judged: `times that ${waiting.HERD_CONNECTIONS} connections or more were refused together`,
        bad: `over half came back within ${waiting.HERD_MS} ms of each other` }],
    toSee: `use ${waiting.HERD_CONNECTIONS} connections or more until they are refused together, and come back spread out` },
  { id: 'hopeless', weight: 10, rules: [
      { judge: asking.judgeHopeless, judged: 'requests after a refusal such as 400, 404 or 409',
        bad: 'were what it refused, again for the third time or more' }],
    toSee: 'ask for what is refused, such as an order for an animal that is sold, and then for something else' },
  { id: 'reuse', weight: 10, rules: [
      { judge: asking.judgeReuse, share: 0.1,
        judged: 'requests less than 5 s after a reply whose connection was still open',
        bad: 'came on a new connection' }],
    toSee: 'send requests less than 5 s apart' },
  { id: 'paging', weight: 5, rules: [
      { judge: asking.judgePaging, judged: 'requests with `after`', bad: 'asked for what no Link gave' }],
    toSee: 'list more than a page, such as GET /v1/pets?limit=10, and follow the Links' },
  { id: 'redundant', weight: 5, rules: [
      { judge: asking.judgeRedundant, share: 0.2, judged: 'GETs',
        bad: `repeated a target on the same connection within ${asking.REDUNDANT_MS} ms while no animal and no category had changed` }],
    toSee: 'list something' },
  { id: 'deprecated', weight: 0, rules: [
      { judge: asking.judgeDeprecated, warns: true, judged: 'requests for GET /v1/pets/{petId}',
        bad: 'came after a reply had said that it is deprecated' }] },
  { id: 'ban', weight: 0, cap: 'F', rules: [{ judge: asking.judgeBan, judged: 'requests', bad: 'began a ban' }] },
];
