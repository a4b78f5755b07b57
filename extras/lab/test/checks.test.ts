/** What each check says of a client's requests, the grade that follows, and what is remembered of one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CHECKS } from '../checks.ts';
import { type Grade, gradeOf } from '../grade.ts';
import { KeyState, KeyStates, MAX_KEYS, MAX_LINKS, MAX_REQUESTS } from '../history.ts';
import type { RequestRecord } from '../record.ts';
import { Counts, type Finding, type Rule } from '../rule.ts';
import { recordOf } from './records.ts';

/** A request, of which a test gives only what matters. */
interface Sent extends Partial<Omit<RequestRecord, 'at' | 'endedAt'>> {
  /** Seconds since the beginning; the reply took a millisecond unless `took` says more. */
  s: number;
  took?: number;
  /** The seconds of its Retry-After, from the reply on. */
  wait?: number;
}

/** By default each request is another GET on connection 1. A connection is opened with its first request. */
function records(...rows: Sent[]): RequestRecord[] {
  const connected = new Map<number, number>();
  return rows.map(({ s, took = 1, wait, ...rest }, i) => {
    const at = Math.round(1_000 * s);
    const { method = 'GET', target = `/v1/pets?limit=${i + 1}`, connection = 1 } = rest;
    connected.set(connection, connected.get(connection) ?? at);
    return recordOf({
      at,
      endedAt: at + took,
      target,
      retryAt: wait === undefined ? undefined : at + took + 1_000 * wait,
      connectedAt: connected.get(connection)!,
      requestId: `r${i}`,
      opens: i === 0,
      content: `${method} ${target}`,
      ...rest,
    });
  });
}

/** The history of a key that has sent these. */
function historyOf(...rows: Sent[]) {
  const { history } = new KeyState();
  for (const one of records(...rows)) history.add(one);
  return history;
}

/** The grade, some seconds after the last request has ended. */
function graded(seconds: number, rows: Sent[]): Grade {
  const ends = rows.map(({ s, took = 1 }) => Math.round(1_000 * s) + took);
  return historyOf(...rows).grade(Math.max(0, ...ends) + 1_000 * seconds);
}

const resultOf = ({ checks }: Grade, name: string) => checks.find(({ id }) => id === name)!;
const range = <T>(n: number, make: (i: number) => T) => Array.from({ length: n }, (_, i) => make(i));

const OPEN = undefined;
const get = (s: number, more: Partial<Sent> = {}): Sent => ({ s, ...more });
const post = (s: number, more: Partial<Sent> = {}): Sent => {
  return { s, method: 'POST', target: '/v1/pets', operation: 'createPet', status: 201, ...more };
};
/** The same GET each time. */
const again = (status: number, ...seconds: number[]): Sent[] =>
  seconds.map((s) => ({ s, target: '/v1/pets/9', status }));
/** The same GET again and again, with waits of so many seconds between. */
const row = (status: number, ...waits: number[]) => {
  let s = 0;
  return [...again(status, 0), ...waits.flatMap((wait) => again(status, (s = Number((s + wait + 0.001).toFixed(3)))))];
};
const later = (rows: Sent[]) => rows.map((one) => ({ ...one, s: one.s + 9, target: '/v1/x' }));
const refused = (s: number, wait = 5, more: Partial<Sent> = {}): Sent => ({ s, status: 429, wait, ...more });
/** The same GET, refused unless `more` says otherwise, on a connection. */
const same = (s: number, connection: number, more: Partial<Sent> = {}) =>
  refused(s, 5, { target: '/v1/pets', connection, status: 503, ...more });
/** A POST under a key, refused unless `more` says otherwise, on a connection that carries no other key. */
const keyed = (s: number, key: string, more: Partial<Sent> = {}): Sent =>
  post(s, { status: 503, wait: 5, key, connection: key.charCodeAt(0), ...more });
const done = { status: 201, wait: undefined };
/** On a connection that it opens. */
const on = (connection: number, s: number): Sent => ({ s, connection, opens: true });
/** The first on its connection, which was opened some seconds before it came. */
const opened = (connection: number, s: number, before: number, more: Partial<Sent> = {}): Sent => {
  return { ...on(connection, s), connectedAt: 1_000 * (s - before), target: '/v1/pets', method: 'POST', ...more };
};
/** The requests of a pool: each on a connection that nobody closes. */
const pooled = (s: number) => (n: number) => ({ ...on(100 * s + n, s + n / 100), closedAfterMs: OPEN });
const putOff = { status: 429, wait: 1 };
const lost = { status: null, isLost: true, isKeptAlive: false };

/** A lost POST, which is another than the others. */
const failed = (n: number) => post(n, { ...lost, content: `${n}` });

type Row = [
  verdict: 'pass' | 'warn' | 'fail' | 'unseen',
  what: string,
  sent: Sent[],
  requestIds?: string[],
  after?: number,
];

// biome-ignore format: a table
const TABLE: Record<string, Row[]> = {
  retry_after: [
    ['unseen', 'refused, and nothing came after', [get(0), refused(1)]],
    ['pass', 'its timer fired a fraction early', [refused(0, 5, { status: 503 }), get(4.996)]],
    ['fail', 'it came early, if only just', [refused(0), get(4.995)], ['r1']],
    ['fail', 'a 503 holds as much', [refused(0, 5, { status: 503 }), get(1)], ['r1']],
    ['unseen', 'a 503 without Retry-After', [get(0, { status: 503 }), get(1)]],
    ['unseen', 'a 502 with Retry-After is no refusal', [refused(0, 5, { status: 502 }), get(1)]],
    ['fail', 'the same again at once, on a new connection', [same(0, 1), same(0.1, 2, { status: 200 })], ['r1']],
    ['fail', 'the same again at once, on an older connection',
      [get(0, { connection: 3 }), same(1, 4), same(1.1, 3)], ['r2']],
    ['unseen', 'another on a new connection within a second', [refused(0), get(1, { connection: 2 })]],
    ['fail', 'a second after, on a connection opened since', [refused(0), get(1.001, { connection: 2 })], ['r1']],
    ['unseen', 'a second after, on a connection that waited for its first request since before',
      [refused(0), get(1.5, { connection: 2, connectedAt: 0 })]],
    ['unseen', 'a process of its own, on an older connection, cannot know',
      [get(0), refused(1, 60, { connection: 2 }), get(9)]],
    ['unseen', 'a 503 is for its operation alone',
      [refused(0, 5, { status: 503 }), get(1, { operation: 'listOrders' })]],
    ['fail', 'a 429 is for all', [refused(0), get(1, { operation: 'listOrders' })], ['r1']],
    ['unseen', 'sent before the refusal had left', [0, 0.05].map((s) => refused(s, 5, { took: 100 }))],
    ['fail', 'a later refusal holds, though an earlier time came', [refused(0, 1), refused(2, 60), get(3)], ['r2']],
    ['unseen', 'an equal one that was on its way already, on a connection that was opened for it',
      [post(0, { status: 429, wait: 5, connection: 2 }), opened(3, 0.005, 0.004)]],
    ['fail', 'an equal one on a connection that was opened after the refusal',
      [post(0, { status: 429, wait: 5, connection: 2 }), opened(3, 0.005, 0.003)], ['r1']],
    ['fail', 'or long before, and not for it',
      [post(2, { status: 429, wait: 5, connection: 2 }), opened(3, 2.005, 1.005)], ['r1']],
    ['pass', 'an equal POST of its own, since the refused one comes again under its key',
      [keyed(0, 'a'), keyed(0.1, 'b', done), keyed(6, 'a', done)], []],
    ['fail', 'it came under a new key', [keyed(0, 'a'), keyed(0.1, 'b', done)], ['r1']],
    ['fail', 'that it was lost before it was refused is no retry',
      [post(0, { ...lost, key: 'a' }), keyed(1, 'a', { status: 429 }), keyed(1.1, 'b', done)], ['r2']],
    ['pass', 'the POST beside it took longer',
      [keyed(0, 'a'), keyed(0.1, 'b', { ...done, took: 9_000 }), keyed(6, 'a', done)], []],
    ['fail', 'it came again early, whatever came beside it',
      [keyed(0, 'a'), keyed(0.1, 'b', done), keyed(1, 'a', done)], ['r2']],
    ['fail', 'two keys in turns are not two POSTs', [keyed(0, 'a'), keyed(0.1, 'b'), keyed(6, 'a', done)], ['r1']],
    ['pass', 'two POSTs, both refused, both in time',
      [keyed(0, 'a'), keyed(0.1, 'b'), keyed(6, 'a', done), keyed(6, 'b', done)], []],
    ['fail', 'each that was refused accounts for one that came in its place',
      [keyed(0, 'a'), keyed(0, 'b'), ...['c', 'd', 'e'].map((key) => keyed(0.1, key, done))], ['r2', 'r3']],
    ['fail', 'under a new key on the connection of the refusal',
      [keyed(0, 'a'), keyed(0.1, 'b', { ...done, connection: 97 }), keyed(6, 'a', done)], ['r1']],
    ['unseen', 'sent ahead by a client that pipelines',
      [refused(0, 5, { isPipelined: true }), get(0.101, { isPipelined: true })]],
    ['fail', 'it pipelines, but had time to read',
      [refused(0, 5, { isPipelined: true }), get(0.102, { isPipelined: true })], ['r1']],
    ['unseen', "another caller's, already at the proxy", [refused(0, 5), get(0.101, { isProxied: true })]],
    ['fail', 'behind a proxy, after time to read', [refused(0, 5), get(0.102, { isProxied: true })], ['r1']],
    ['fail', 'behind a proxy, the same at once',
      [refused(0, 5, { content: 'a' }), get(0.002, { content: 'a', isProxied: true })], ['r1']],
    ['fail', 'what comes in time after an early one does not mend it', [refused(0), get(1), get(6)], ['r1']],
  ],
  idempotency: [
    ['pass', 'the same key after a lost reply', [post(0, { ...lost, key: 'a' }), post(1, { key: 'a' })]],
    ['pass', 'the same key after a 5xx', [post(0, { status: 503, key: 'a' }), post(1, { key: 'a' })]],
    ['fail', 'no key', [post(0, lost), post(1)], ['r1']],
    ['fail', 'a new key', [post(0, { ...lost, key: 'a' }), post(1, { key: 'b' })], ['r1']],
    ['pass', 'an equal POST of its own, since the first comes again under its key',
      [post(0, { ...lost, key: 'a' }), post(1, { key: 'b' }), post(2, { key: 'a' })], []],
    ['pass', 'also where both failed, and both come again',
      [post(0, { ...lost, key: 'a' }), post(1, { status: 500, key: 'b' }), post(2, { key: 'a' }), post(3, { key: 'b' })], []],
    ['fail', 'two keys in turns are not two POSTs',
      [post(0, { ...lost, key: 'a' }), post(1, { status: 500, key: 'b' }), post(2, { key: 'a' })], ['r1']],
    ['pass', 'also where it was under way for longer',
      [post(0, { ...lost, key: 'a' }), post(1, { key: 'b', took: 5_000 }), post(2, { key: 'a' })], []],
    ['pass', 'the first was on its way again already',
      [post(0, { ...lost, key: 'a' }), post(1, { key: 'a', took: 5_000 }), post(2, { key: 'b' })], []],
    ['unseen', 'one that was on its way already, on a connection that was opened for it',
      [post(0, { ...lost, connection: 2 }), opened(3, 0.005, 0.004)]],
    ['fail', 'on a connection that was opened after it', [post(0, lost), opened(3, 0.005, 0.003)], ['r1']],
    ['fail', 'a reply that broke off is lost', [post(0, { isLost: true }), post(1)], ['r1']],
    ['fail', 'a new key, once it was put off by a 409 of the first under way',
      [post(0, { ...lost, key: 'a' }), post(1, { ...putOff, key: 'a' }), post(2, { key: 'b' })], ['r2']],
    ['fail', 'a new key, once it was put off by a 429',
      [post(0, { ...lost, key: 'a' }), post(1, { status: 429, wait: 1, key: 'a' }), post(3, { key: 'b' })], ['r2']],
    ['pass', 'the same key behind both',
      [post(0, { ...lost, key: 'a' }), post(1, { ...putOff, key: 'a' }), post(2, { key: 'a' })]],
    ['unseen', 'what was refused by a 429 alone was never done', [post(0, { status: 429, wait: 1 }), post(2)]],
    ['unseen', 'another body', [post(0, { ...lost, content: 'x' }), post(1, { content: 'y' })]],
    ['fail', 'just within a minute', [post(0, lost), post(60.001)], ['r1']],
    ['unseen', 'more than a minute later', [post(0, lost), post(60.002)]],
    ['pass', 'once a reply has come, a new request', [post(0, { ...lost, key: 'a' }), post(1, { key: 'a' }), post(2)]],
    ['unseen', 'after a 4xx', [post(0, { status: 400 }), post(1)]],
    ['unseen', 'a GET needs none', [get(0, { target: '/v1/pets', ...lost }), get(1, { target: '/v1/pets' })]],
    ['unseen', 'one 422', [post(0, { status: 422, content: 'x' }), post(1)]],
    ['fail', 'two: one key for different requests',
      ['x', 'y', 'z'].map((content, s) => post(s, { content, status: s ? 422 : 201 })), ['r2']],
  ],
  finished: [
    ['unseen', 'no POST failed', [post(0), get(1, lost)]],
    ['fail', 'it never came again', [post(0, lost), get(1)], ['r0'], 5],
    ['fail', 'nothing came at all', [post(0, { status: 500 })], ['r0'], 5],
    ['unseen', 'it may still come', [post(0, lost)], [], 4.999],
    ['unseen', 'its time is not over', [post(0, { status: 503, wait: 60 })], [], 64.999],
    ['fail', 'it is over', [post(0, { status: 503, wait: 60 })], ['r0'], 65],
    ['fail', 'a 429 is a failure', [post(0, { status: 429, wait: 1 })], ['r0'], 6],
    ['unseen', 'a later 429 holds all', [post(0, lost), refused(1, 60)], [], 64.999],
    ['fail', 'until its time is over', [post(0, lost), refused(1, 60)], ['r0'], 65],
    ['pass', 'it was answered, whatever its key', [post(0, lost), post(1, { key: 'b' })], [], 9],
    ['pass', 'late, but answered', [post(0, lost), post(30)], [], 9],
    ['pass', 'a refusal is an answer', [post(0, lost), post(1, { status: 409 })], [], 9],
    ['unseen', 'its latest try may still come again', [post(0, lost), post(4, lost)], [], 4.999],
    ['fail', 'it gave up after three', [0, 1, 2].map((s) => post(s, lost)), ['r2'], 5],
    ['pass', 'one in five',
      [...range(5, (n) => failed(n)), ...range(4, (n) => post(5 + n, { content: `${n}` }))], ['r4'], 5],
    ['fail', 'one in four',
      [...range(4, (n) => failed(n)), ...range(3, (n) => post(5 + n, { content: `${n}` }))], ['r3'], 5],
    ['fail', 'another body is another request',
      [post(0, { ...lost, content: 'x' }), post(1, { content: 'y' })], ['r0'], 5],
    ['fail', 'the same beside it is another’s', [post(0, { ...lost, took: 900 }), post(0.1)], ['r0'], 6],
    ['pass', 'or it is a second try under one key',
      [post(0, { ...lost, took: 900, key: 'a' }), post(0.1, { key: 'a' })], [], 6],
  ],
  backoff: [
    ['unseen', 'two failures', [...again(500, 0, 1), ...again(200, 2)]],
    ['pass', 'waits that double', row(500, 0.1, 0.2, 0.4, 0.8)],
    ['pass', 'just half as long again', row(500, 0.1, 0.15)],
    ['warn', 'a little less', row(500, 0.1, 0.149)],
    ['warn', 'always the same', row(500, 1, 1, 1, 1, 1)],
    ['pass', 'one row in two grows', [...row(500, 1, 1, 1), ...later(row(500, 0.1, 0.2, 0.4))]],
    ['fail', 'it never waits', row(500, 0, 0.002, 0.049), ['r1', 'r2', 'r3']],
    ['warn', 'half of them are 50 ms', row(500, 0.05, 0.049)],
    ['fail', 'over half are not', row(500, 0.049, 0.05, 0.049), ['r1', 'r3']],
    ['fail', 'one row of five never waits, though another does',
      [...row(500, 0.1, 0.2, 0.4, 0.8), ...later(row(502, 0, 0, 0, 0))]],
    ['warn', 'it waits in the end', row(500, 0.1, 0.1, 0.1, 0.1, 0, 0, 0, 0)],
    ['pass', 'a row of four without waits, by chance', [...row(500, 0.1, 0.2, 0.4, 0.8), ...later(row(502, 0, 0, 0))]],
    ['fail', 'Retry-After with a 502 is no reason to come at once',
      range(4, (n) => ({ ...again(502, n / 100)[0], wait: 1 }))],
    ['pass', 'who heeds it need not wait longer', range(4, (n) => ({ ...again(502, 2 * n)[0], wait: 1 }))],
    ['pass', 'the wait before what went well counts too', [...row(500, 0.1, 0.1), ...again(200, 1)]],
    ['unseen', 'with Retry-After there is nothing to grow', range(4, (n) => ({ ...again(503, 2 * n)[0], wait: 1 }))],
    ['fail', 'a 429 that tells no time is a failure', row(429, 0, 0.002, 0.049), ['r1', 'r2', 'r3']],
    ['unseen', 'a reply between is no row', [...again(500, 0, 1), ...again(200, 2), ...again(500, 3)]],
    ['unseen', 'three requests, each its own', range(3, (s) => get(s, { status: 500 }))],
    ['unseen', 'nor is what was on its way on connections that were opened before',
      range(5, (n) => opened(n, n / 500, n / 500, { status: 500 }))],
    ['unseen', 'side by side is no row', again(500, 0, 0.1, 0.2).map((one) => ({ ...one, took: 500, ...lost }))],
  ],
  hopeless: [
    ['unseen', 'nothing was refused', [get(0), get(1)]],
    ['pass', 'it went on', [get(0, { status: 404 }), get(1)]],
    ...[400, 403, 404, 405, 409, 410, 411, 413, 414, 415, 417, 422, 431].map((status): Row => {
      return ['fail', `${status} thrice`, again(status, 0, 1, 2, 3), ['r3']];
    }),
    ['pass', 'twice', [...again(404, 0, 1, 2), get(9)]],
    ['unseen', 'side by side, on connections that were opened before',
      range(4, (n) => opened(n, n / 500, n / 500, { status: 409 }))],
    ['pass', 'it helped once', [...again(404, 0, 1), ...again(201, 2), ...again(404, 3, 4), get(9)]],
    ['pass', 'others between do not make it another', [...again(404, 0, 1, 2), get(4)]],
    ['unseen', '401', again(401, 0, 1, 2, 3)],
  ],
  reuse: [
    ['pass', 'one in ten', range(11, (s) => get(s, { opens: s % 10 === 0 }))],
    ['fail', 'two in ten', range(11, (s) => get(s, { opens: s > 8 })), ['r9', 'r10']],
    ['fail', 'always: the newest eight are named', range(20, (s) => on(s, s)), range(8, (n) => `r${n + 12}`)],
    ['unseen', 'five seconds after', [get(0), on(2, 5.001)]],
    ['unseen', 'the service ended the connection', [get(0, lost), on(2, 1)]],
    ['unseen', 'every connection was busy', [get(0, { took: 900 }), on(2, 0.1)]],
    ['pass', 'one that the service ended has a successor', [get(0), { ...on(2, 0), ...lost }, on(3, 0.2), get(0.3)]],
    ['fail', 'but not two', [get(0), { ...on(2, 0), took: 100, ...lost }, on(3, 3), on(4, 4)], ['r3']],
    ['unseen', 'a pool begins', range(16, (s) => ({ ...on(s, s / 10), closedAfterMs: OPEN }))],
    ['unseen', 'it ends what was idle for a second', range(9, (s) => ({ ...on(s, 2 * s), closedAfterMs: 1_000 }))],
    ['unseen', 'a pool begins anew after five seconds of silence', [...range(16, pooled(0)), ...range(16, pooled(6))]],
    ['fail', 'but not after less', [...range(16, pooled(0)), ...range(16, pooled(4))]],
    ['fail', 'nor while another connection is in use',
      [...range(16, pooled(0)), ...range(3, (n) => get(2 * n + 1, { connection: 100 })), ...range(16, pooled(6))]],
    ['unseen', 'thirty calls at once', range(30, (n) => ({ ...on(n, n / 100), connectedAt: 0, closedAfterMs: OPEN }))],
    ['fail', 'thirty connections that were opened ahead, each for one request',
      range(30, (n) => ({ ...on(n, 2 + n / 100), connectedAt: 0, closedAfterMs: OPEN }))],
    ['fail', 'too many that stay open', range(30, (s) => ({ ...on(s, s / 10), closedAfterMs: OPEN }))],
    ['fail', 'one for each request, left open until the service ends it',
      range(30, (s) => ({ ...on(s, s / 2), closedAfterMs: s < 20 ? 5_001 : OPEN }))],
    ['unseen', 'the same, sixteen a minute',
      range(40, (s) => ({ ...on(s, 4 * s), closedAfterMs: s < 38 ? 5_001 : OPEN }))],
    ['unseen', 'a proxy stands between', range(9, (s) => ({ ...on(s, s), isProxied: true }))],
  ],
  paging: [
    ['unseen', 'first pages only', [get(0), get(1)]],
    ['pass', 'a Link had led there', [get(0), get(1, { isLinked: true })]],
    ['fail', 'none had', [get(0), get(1, { isLinked: false })], ['r1']],
    ['fail', 'nor for a HEAD', [get(0), get(1, { method: 'HEAD', isLinked: false })], ['r1']],
    ['unseen', 'not a list', [post(0, { isLinked: false })]],
  ],
  deprecated: [
    ['unseen', 'not used', [get(0)]],
    ['pass', 'used once', [get(0, { operation: 'getPet' })]],
    ['warn', 'used again', [0, 1].map((s) => get(s, { operation: 'getPet' })), ['r1']],
    ['pass', 'the first reply was lost', [lost, {}].map((how, s) => get(s, { operation: 'getPet', ...how }))],
  ],
  ban: [
    ['unseen', 'no request', []],
    ['pass', 'limited, and no ban', [refused(0, 60)]],
    ['fail', 'a ban began', [refused(0, 120, { beganBan: true }), get(200)], ['r0']],
  ],
};

for (const { id } of CHECKS) {
  test(`check ${id}`, () => {
    for (const [verdict, what, rows, requestIds, after = 0] of TABLE[id]) {
      const result = resultOf(graded(after, rows), id);
      assert.equal(result.verdict, verdict, `${what}: ${result.why}`);
      if (requestIds !== undefined) assert.deepEqual(result.requestIds, requestIds, what);
      assert.equal(result.count > 0, result.requestIds.length > 0, what);
    }
  });
}

/** Counts with one finding of each of these rules. */
function countsOf(findings: readonly (readonly [Rule, Finding['is']])[]): Counts {
  const counts = new Counts();
  const stored = findings.map(([rule, is]) => [rule, { is, requestId: 'r1' }] as const);
  counts.add(recordOf({ findings: new Map(stored) }));
  return counts;
}

test('weights, caps, score and grade', () => {
  const weights = CHECKS.map(({ id, weight, cap = '' }) => `${id} ${weight} ${cap}`.trim());
  const rest = ['hopeless 10', 'reuse 10', 'paging 5', 'deprecated 0', 'ban 0 F'];
  assert.deepEqual(weights, ['retry_after 20 D', 'idempotency 20 C', 'finished 15 C', 'backoff 10', ...rest]);
  const all = CHECKS.map(({ id }) => id);
  const but = (...seen: string[]) => all.filter((id) => !seen.includes(id));
  const rows: [bad: string[], unseen: string[], grade: string | null, score: number, seen: number][] = [
    [[], [], 'A', 100, 100],
    [['paging'], [], 'A', 94, 100],
    [['backoff'], [], 'B', 88, 100],
    [['hopeless', 'reuse'], [], 'C', 77, 100],
    [['hopeless', 'reuse', 'backoff'], [], 'C', 66, 100],
    [['hopeless', 'reuse', 'backoff', 'paging'], [], 'D', 61, 100],
    [['retry_after'], [], 'D', 77, 100],
    [['idempotency'], [], 'C', 77, 100],
    [['finished'], [], 'C', 83, 100],
    [['retry_after', 'idempotency'], [], 'D', 55, 100],
    [['retry_after', 'idempotency', 'finished'], [], 'F', 38, 100],
    [['ban'], [], 'F', 100, 100],
    [['deprecated'], [], 'A', 100, 100],
    [[], ['idempotency'], 'B', 100, 77],
    [[], ['retry_after', 'finished'], 'A', 100, 61],
    [[], ['retry_after', 'finished', 'paging'], null, 100, 55],
    // The cap of a failed check holds whatever was seen.
    [['ban'], but('ban'), 'F', 0, 0],
    [['finished'], but('finished', 'hopeless', 'reuse', 'paging'), 'D', 62, 44],
    [['finished'], but('finished', 'paging'), 'F', 25, 22],
    [['hopeless'], but('hopeless', 'reuse'), null, 50, 22],
    [[], all, null, 0, 0],
  ];
  const gradeWith = (bad: string[], unseen: string[]) => {
    const seen = CHECKS.filter(({ id }) => !unseen.includes(id));
    return gradeOf(countsOf(seen.map(({ id, rules }) => [rules[0], bad.includes(id) ? 'bad' : 'good'])));
  };
  for (const [bad, unseen, ...expected] of rows) {
    const { grade, score, seen, next, checks } = gradeWith(bad, unseen);
    for (const { id, why, weight } of checks) {
      assert.equal(why.startsWith('not seen: '), unseen.includes(id), why);
      assert.equal(next.includes(`${id} (${weight}): `), unseen.includes(id) && weight > 0, `${id} in ${next}`);
    }
    assert.deepEqual([grade, score, seen], expected, `bad: ${bad}; unseen: ${unseen}`);
  }
  const { next } = gradeWith([], ['paging', 'finished']);
  assert.match(next, /^finished \(15\): send POSTs.*; paging \(5\): .*follow the Links$/);
});

test('a warning is half', () => {
  const [waits, growth] = CHECKS.find(({ id }) => id === 'backoff')!.rules;
  const grade = gradeOf(countsOf([[waits, 'good'], [growth, 'bad']])); // biome-ignore format: pairs
  assert.deepEqual([grade.score, grade.seen, resultOf(grade, 'backoff').verdict], [50, 11, 'warn']);
});

test('the newest 256 requests that have ended are shown; what older ones counted is remembered', () => {
  const history = historyOf(...range(2 * MAX_REQUESTS, (s) => get(s, { beganBan: s < 2 })), get(1_000));
  const [underWay] = records(get(1_001));
  history.add({ ...underWay, endedAt: Number.POSITIVE_INFINITY });
  const shown = history.ended().map(({ at }) => at / 1_000);
  assert.deepEqual([shown.length, ...shown.slice(-2)], [MAX_REQUESTS - 1, 2 * MAX_REQUESTS - 1, 1_000]);
  const { count, requestIds } = resultOf(history.grade(1e7), 'ban');
  assert.deepEqual([count, requestIds], [2, ['r0', 'r1']]);
});

test('what was bad stays bad when the requests that showed it are dropped', () => {
  const hopeless = [...again(404, 125, 126, 127), get(128, { status: 404 }), ...again(404, 129)];
  const history = historyOf(...range(125, (n) => get(n)), ...hopeless, ...range(300, (n) => get(130 + n)));
  const { count, requestIds } = resultOf(history.grade(1e6), 'hopeless');
  assert.deepEqual([count, requestIds], [1, ['r129']]);
});

test('a POST may come again, or be given up, though hundreds of others came within its five seconds', () => {
  const lists = range(MAX_REQUESTS + 9, (n) => get(0.5 + n / 100));
  const verdicts = [[], [post(4.5)]].map((more) => {
    const history = historyOf(post(0, lost), ...lists, ...more);
    const grade = history.grade(4_800);
    return [resultOf(grade, 'idempotency').verdict, grade.openMs, resultOf(history.grade(5_001), 'finished').verdict];
  });
  assert.deepEqual(verdicts, [['unseen', 201, 'fail'], ['fail', 0, 'pass']]); // biome-ignore format: pairs
  const forgotten = historyOf(post(0, lost), ...range(2 * MAX_REQUESTS, (n) => get(n + 1)));
  assert.equal(resultOf(forgotten.grade(1e6), 'finished').verdict, 'fail');
});

test('the last 4,096 pages that Links led to are known', () => {
  const { history } = new KeyState();
  for (let page = 0; page <= MAX_LINKS; page++) history.addLink(page);
  history.addLink(7); // it is there already
  const known = [0, 1, 7, MAX_LINKS].map((page) => history.hasLink(page));
  assert.deepEqual(known, [false, true, true, true]);
});

test('of more than 1,024 keys the least recently used is forgotten', () => {
  const states = new KeyStates();
  const [first, second] = [states.of(1), states.of(2)];
  for (let key = 3; key <= MAX_KEYS; key++) states.of(key);
  assert.equal(states.of(1), first);
  states.of(MAX_KEYS + 1);
  assert.equal(states.of(1), first);
  assert.notEqual(states.of(2), second);
});
