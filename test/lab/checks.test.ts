/** What each check says of a client's history, what a record keeps of one, and from counts to a grade, also as XML. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CHECKS } from '../../src/lab/checks.ts';
import { type Grade, gradeOf, Tallies } from '../../src/lab/grade.ts';
import { KeyStates, MAX_KEYS, MAX_LINKS, MAX_REQUESTS } from '../../src/lab/histories.ts';
import type { RequestRecord } from '../../src/lab/request-record.ts';
import { triesOf } from '../../src/lab/tries.ts';

/** A request, of which a test says only what matters. */
interface Told extends Partial<Omit<RequestRecord, 'at' | 'endedAt'>> {
  /** Seconds since the beginning; the reply took a millisecond unless `took` says more. */
  s: number;
  took?: number;
  /** Seconds that a 429 or 503 told to wait, from its reply on. */
  wait?: number;
}

const OVER = { endedAfterMs: 1 };
const OPEN = {};
const PIPELINED = { isPipelined: true };

/**
 * Requests as a good client sends them; by default every one is another GET on connection 1. A connection is
 * opened with its first request.
 */
function history(...rows: Told[]): RequestRecord[] {
  const connected = new Map<number, number>();
  return rows.map(({ s, took = 1, wait, method = 'GET', ...rest }, place) => {
    const at = Math.round(1_000 * s);
    const target = rest.target ?? `/v1/pets?limit=${place + 1}`;
    const waitUntil = wait === undefined ? undefined : at + took + 1_000 * wait;
    const connection = rest.connection ?? 1;
    connected.set(connection, connected.get(connection) ?? at);
    const request = {
      unix: at,
      operation: 'listPets',
      requestId: `r${place}`,
      connection: 1,
      opens: place === 0,
      line: OVER,
    };
    const marks = {
      same: `${method} ${target}`,
      isUnread: false,
      key: undefined,
      petsVersion: 1,
      isLinked: undefined,
      isProxied: false,
    };
    const reply = { ms: took, fault: null, status: 200, code: undefined, isLost: false, isKept: true, bans: false };
    return {
      at,
      endedAt: at + took,
      method,
      target,
      waitUntil,
      connectedAt: connected.get(connection)!,
      ...request,
      ...marks,
      ...reply,
      ...rest,
    };
  });
}

/** What the checks make of it, a while (seconds) after its last request has ended. */
function judged(after: number, ...rows: Told[]): Grade {
  const tallies = new Tallies();
  const requests = history(...rows);
  for (const one of requests.toSorted((a, b) => a.endedAt - b.endedAt)) {
    const place = requests.indexOf(one);
    const hasEnded = ({ endedAt }: RequestRecord) => endedAt <= one.endedAt;
    tallies.count(one, requests.slice(0, place), requests.slice(place + 1).filter(hasEnded));
  }
  tallies.settle(requests, Math.max(0, ...requests.map(({ endedAt }) => endedAt)) + 1_000 * after);
  return gradeOf(tallies);
}

const resultOf = ({ checks }: Grade, name: string) => checks.find(({ id }) => id === name)!;

const get = (s: number, more: Partial<Told> = {}): Told => ({ s, ...more });
/** The same target each time, as one asks that tries again. */
const again = (status: number, ...seconds: number[]): Told[] =>
  seconds.map((s) => ({ s, target: '/v1/pets/9', status }));
const refused = (s: number, wait = 5, more: Partial<Told> = {}): Told => ({ s, status: 429, wait, ...more });
/** The same request, refused unless `more` says otherwise, on a connection. */
const told = (s: number, connection: number, more: Partial<Told> = {}) => {
  return refused(s, 5, { target: '/v1/pets', connection, status: 503, ...more });
};
const post = (s: number, more: Partial<Told> = {}): Told => ({
  ...{ s, method: 'POST', target: '/v1/pets', operation: 'createPet', status: 201 },
  ...more,
});
/** On a connection of its own, opened for it some seconds before it came. */
const opened = (connection: number, s: number, before: number, more: Partial<Told> = {}): Told => ({
  ...{ s, connection, opens: true, connectedAt: 1_000 * (s - before), target: '/v1/pets', method: 'POST' },
  ...more,
});
/** A POST under a key, refused unless `more` says otherwise, on a connection that carries no other key. */
const keyed = (s: number, key: string, more: Partial<Told> = {}): Told =>
  post(s, { status: 503, wait: 5, key, connection: key.charCodeAt(0), ...more });
const done = { status: 201, wait: undefined };
/** On a connection that it opens. */
const on = (connection: number, s: number): Told => ({ s, connection, opens: true });
/** The requests of a pool: each on a connection that nobody ends before the service does. */
const pooled = (s: number) => (n: number) => ({ ...on(100 * s + n, s + n / 100), line: OPEN });
const putOff = { status: 409, code: 'idempotency_in_flight' };
const lost = { status: null, isLost: true, isKept: false };

type Expected = 'pass' | 'warn' | 'fail' | 'unseen';
type Row = [verdict: Expected, what: string, history: Told[], requestIds?: string[], after?: number];

const range = <T>(n: number, make: (i: number) => T) => Array.from({ length: n }, (_, i) => make(i));
/** So many connections refused at once, told to come back ten seconds later; `back`: when each does. */
const wave = (n: number, back: (i: number) => number, at = 0): Told[] => [
  ...range(n, (i) => refused(at, 10, { connection: i })),
  ...range(n, (i) => get(at + 10.001 + back(i), { connection: 100 + i })).sort((a, b) => a.s - b.s),
];
/** One try after the other of the same request, with waits of so many seconds between. */
const row = (status: number, ...waits: number[]) => {
  let s = 0;
  return [...again(status, 0), ...waits.flatMap((wait) => again(status, (s = Number((s + wait + 0.001).toFixed(3)))))];
};

const TWO_PROCESSES = [get(0), refused(1, 60, { connection: 2 }), get(9)];

const TABLE: Record<string, Row[]> = {
  retry_after: [
    ['unseen', 'refused, and nothing came after', [get(0), refused(1)]],
    ['pass', 'its timer fired a fraction early', [refused(0, 5, { status: 503 }), get(4.996)]],
    ['fail', 'it came early, if only just', [refused(0), get(4.995)], ['r1']],
    ['fail', 'a 503 holds as much', [refused(0, 5, { status: 503 }), get(1)], ['r1']],
    ['unseen', 'a 503 that told no time', [get(0, { status: 503 }), get(1)]],
    ['unseen', 'a 502 that told a time is no refusal', [refused(0, 5, { status: 502 }), get(1)]],
    ['fail', 'the same again at once, on a new connection', [told(0, 1), told(0.1, 2, { status: 200 })], ['r1']],
    [
      'fail',
      'the same again at once, on an older connection',
      [get(0, { connection: 3 }), told(1, 4), told(1.1, 3)],
      ['r2'],
    ],
    ['unseen', 'another on a new connection within a second', [refused(0), get(1, { connection: 2 })]],
    ['fail', 'a second after, on a connection opened since', [refused(0), get(1.001, { connection: 2 })], ['r1']],
    [
      'unseen',
      'a second after, on a connection that waited for its first request since before',
      [refused(0), get(1.5, { connection: 2, connectedAt: 0 })],
    ],
    ['unseen', 'a process of its own, on an older connection, was never told', TWO_PROCESSES],
    [
      'unseen',
      'a 503 is for its operation alone',
      [refused(0, 5, { status: 503 }), get(1, { operation: 'listOrders' })],
    ],
    ['fail', 'a 429 is for all', [refused(0), get(1, { operation: 'listOrders' })], ['r1']],
    ['unseen', 'sent before the refusal had left', [0, 0.05].map((s) => refused(s, 5, { took: 100 }))],
    ['fail', 'a later refusal holds, though an earlier time came', [refused(0, 1), refused(2, 60), get(3)], ['r2']],
    [
      'unseen',
      'an equal one that was on its way already, on a connection that was opened for it',
      [post(0, { status: 429, wait: 5, connection: 2 }), opened(3, 0.005, 0.004)],
    ],
    [
      'fail',
      'an equal one on a connection that was opened after the refusal',
      [post(0, { status: 429, wait: 5, connection: 2 }), opened(3, 0.005, 0.003)],
      ['r1'],
    ],
    [
      'fail',
      'or long before, and not for it',
      [post(2, { status: 429, wait: 5, connection: 2 }), opened(3, 2.005, 1.005)],
      ['r1'],
    ],
    [
      'pass',
      'an equal wish under a key of its own, since the refused one comes again under its key',
      [keyed(0, 'a'), keyed(0.1, 'b', done), keyed(6, 'a', done)],
      [],
    ],
    ['fail', 'it came under a new key', [keyed(0, 'a'), keyed(0.1, 'b', done)], ['r1']],
    [
      'fail',
      'that it was lost before it was refused is no coming again',
      [post(0, { ...lost, key: 'a' }), keyed(1, 'a', { status: 429 }), keyed(1.1, 'b', done)],
      ['r2'],
    ],
    [
      'pass',
      'the wish beside it took longer',
      [keyed(0, 'a'), keyed(0.1, 'b', { ...done, took: 9_000 }), keyed(6, 'a', done)],
      [],
    ],
    [
      'fail',
      'it came again early, whatever came beside it',
      [keyed(0, 'a'), keyed(0.1, 'b', done), keyed(1, 'a', done)],
      ['r2'],
    ],
    ['fail', 'two keys in turns are no two wishes', [keyed(0, 'a'), keyed(0.1, 'b'), keyed(6, 'a', done)], ['r1']],
    [
      'pass',
      'two wishes, both refused, both in time',
      [keyed(0, 'a'), keyed(0.1, 'b'), keyed(6, 'a', done), keyed(6, 'b', done)],
      [],
    ],
    [
      'fail',
      'each that was refused accounts for one that came in its place',
      [keyed(0, 'a'), keyed(0, 'b'), ...['c', 'd', 'e'].map((key) => keyed(0.1, key, done))],
      ['r2', 'r3'],
    ],
    [
      'fail',
      'under a new key on the connection that was told',
      [keyed(0, 'a'), keyed(0.1, 'b', { ...done, connection: 97 }), keyed(6, 'a', done)],
      ['r1'],
    ],
    [
      'unseen',
      'sent ahead by a client that pipelines',
      [refused(0, 5, { line: PIPELINED }), get(0.101, { line: PIPELINED })],
    ],
    [
      'fail',
      'it pipelines, but had time to read',
      [refused(0, 5, { line: PIPELINED }), get(0.102, { line: PIPELINED })],
      ['r1'],
    ],
    ['unseen', "another caller's, already at the proxy", [refused(0, 5), get(0.101, { isProxied: true })]],
    ['fail', 'behind a proxy, after time to read', [refused(0, 5), get(0.102, { isProxied: true })], ['r1']],
    [
      'fail',
      'behind a proxy, the same at once',
      [refused(0, 5, { same: 'a' }), get(0.002, { same: 'a', isProxied: true })],
      ['r1'],
    ],
    ['fail', 'who has kept it once it was broken has not kept it', [refused(0), get(1), get(6)], ['r1']],
  ],
  idempotency: [
    ['pass', 'the same key after a lost reply', [post(0, { ...lost, key: 'a' }), post(1, { key: 'a' })]],
    ['pass', 'the same key after a 5xx', [post(0, { status: 503, key: 'a' }), post(1, { key: 'a' })]],
    ['fail', 'no key', [post(0, lost), post(1)], ['r1']],
    ['fail', 'a new key', [post(0, { ...lost, key: 'a' }), post(1, { key: 'b' })], ['r1']],
    [
      'pass',
      'an equal wish of its own, since the first comes again under its key',
      [post(0, { ...lost, key: 'a' }), post(1, { key: 'b' }), post(2, { key: 'a' })],
      [],
    ],
    [
      'pass',
      'also where both failed, and both come again',
      [
        ...[post(0, { ...lost, key: 'a' }), post(1, { status: 500, key: 'b' })],
        ...[post(2, { key: 'a' }), post(3, { key: 'b' })],
      ],
      [],
    ],
    [
      'fail',
      'two keys in turns are no two wishes',
      [post(0, { ...lost, key: 'a' }), post(1, { status: 500, key: 'b' }), post(2, { key: 'a' })],
      ['r1'],
    ],
    [
      'pass',
      'also where it was under way for longer',
      [post(0, { ...lost, key: 'a' }), post(1, { key: 'b', took: 5_000 }), post(2, { key: 'a' })],
      [],
    ],
    [
      'pass',
      'the first was on its way again already',
      [post(0, { ...lost, key: 'a' }), post(1, { key: 'a', took: 5_000 }), post(2, { key: 'b' })],
      [],
    ],
    [
      'unseen',
      'one that was on its way already, on a connection that was opened for it',
      [post(0, { ...lost, connection: 2 }), opened(3, 0.005, 0.004)],
    ],
    ['fail', 'on a connection that was opened after it', [post(0, lost), opened(3, 0.005, 0.003)], ['r1']],
    ['fail', 'a reply that broke off is lost', [post(0, { isLost: true }), post(1)], ['r1']],
    [
      'fail',
      'a new key, once it was put off by a 409 of the first under way',
      [post(0, { ...lost, key: 'a' }), post(1, { ...putOff, key: 'a' }), post(2, { key: 'b' })],
      ['r2'],
    ],
    [
      'fail',
      'a new key, once it was put off by a 429',
      [post(0, { ...lost, key: 'a' }), post(1, { status: 429, wait: 1, key: 'a' }), post(3, { key: 'b' })],
      ['r2'],
    ],
    [
      'pass',
      'the same key behind both',
      [post(0, { ...lost, key: 'a' }), post(1, { ...putOff, key: 'a' }), post(2, { key: 'a' })],
    ],
    ['unseen', 'what was refused by a 429 alone was never done', [post(0, { status: 429, wait: 1 }), post(2)]],
    ['unseen', 'another body', [post(0, { ...lost, same: 'x' }), post(1, { same: 'y' })]],
    ['fail', 'just within a minute', [post(0, lost), post(60.001)], ['r1']],
    ['unseen', 'more than a minute later', [post(0, lost), post(60.002)]],
    ['pass', 'once a reply has come, a new wish', [post(0, { ...lost, key: 'a' }), post(1, { key: 'a' }), post(2)]],
    ['unseen', 'after a 4xx', [post(0, { status: 400 }), post(1)]],
    ['unseen', 'a GET needs none', [get(0, { target: '/v1/pets', ...lost }), get(1, { target: '/v1/pets' })]],
    ['unseen', 'one 422', [post(0, { status: 422, same: 'x' }), post(1)]],
    [
      'fail',
      'two: one key for different requests',
      ['x', 'y', 'z'].map((same, s) => post(s, { same, status: s ? 422 : 201 })),
      ['r2'],
    ],
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
    [
      'pass',
      'one in five',
      range(5, (n) => post(n, { ...lost, same: `${n}` })).concat(range(4, (n) => post(5 + n, { same: `${n}` }))),
      ['r4'],
      5,
    ],
    [
      'fail',
      'one in four',
      range(4, (n) => post(n, { ...lost, same: `${n}` })).concat(range(3, (n) => post(5 + n, { same: `${n}` }))),
      ['r3'],
      5,
    ],
    ['fail', 'another body is another wish', [post(0, { ...lost, same: 'x' }), post(1, { same: 'y' })], ['r0'], 5],
    ['fail', 'the same beside it is another’s', [post(0, { ...lost, took: 900 }), post(0.1)], ['r0'], 6],
    [
      'pass',
      'or it is a second try under one key',
      [post(0, { ...lost, took: 900, key: 'a' }), post(0.1, { key: 'a' })],
      [],
      6,
    ],
  ],
  backoff: [
    ['unseen', 'two failures', [...again(500, 0, 1), ...again(200, 2)]],
    ['pass', 'waits that double', row(500, 0.1, 0.2, 0.4, 0.8)],
    ['pass', 'just half as long again', row(500, 0.1, 0.15)],
    ['warn', 'a little less', row(500, 0.1, 0.149)],
    ['warn', 'always the same', row(500, 1, 1, 1, 1, 1)],
    [
      'pass',
      'one row in two grows',
      [...row(500, 1, 1, 1), ...row(500, 0.1, 0.2, 0.4).map((one) => ({ ...one, s: one.s + 9, target: '/v1/x' }))],
    ],
    ['fail', 'it never waits', row(500, 0, 0.002, 0.049), ['r1', 'r2', 'r3']],
    ['warn', 'half of them are 50 ms', row(500, 0.05, 0.049)],
    ['fail', 'over half are not', row(500, 0.049, 0.05, 0.049), ['r1', 'r3']],
    [
      'fail',
      'one row of five never waits, though another does',
      [
        ...row(500, 0.1, 0.2, 0.4, 0.8),
        ...row(502, 0, 0, 0, 0).map((one) => ({ ...one, s: one.s + 9, target: '/v1/x' })),
      ],
    ],
    ['warn', 'it waits in the end', row(500, 0.1, 0.1, 0.1, 0.1, 0, 0, 0, 0)],
    [
      'pass',
      'a row of four without waits, by chance',
      [...row(500, 0.1, 0.2, 0.4, 0.8), ...row(502, 0, 0, 0).map((one) => ({ ...one, s: one.s + 9, target: '/v1/x' }))],
    ],
    [
      'fail',
      'a time told with a 502 is no reason to come at once',
      range(4, (n) => ({ ...again(502, n / 100)[0], wait: 1 })),
    ],
    ['pass', 'who waits as it told need not wait longer', range(4, (n) => ({ ...again(502, 2 * n)[0], wait: 1 }))],
    ['pass', 'the wait before what went well counts too', [...row(500, 0.1, 0.1), ...again(200, 1)]],
    ['unseen', 'with Retry-After there is nothing to grow', range(4, (n) => ({ ...again(503, 2 * n)[0], wait: 1 }))],
    ['fail', 'a 429 that tells no time is a failure', row(429, 0, 0.002, 0.049), ['r1', 'r2', 'r3']],
    ['unseen', 'a reply between is no row', [...again(500, 0, 1), ...again(200, 2), ...again(500, 3)]],
    ['unseen', 'three requests, each its own', range(3, (s) => get(s, { status: 500 }))],
    [
      'unseen',
      'nor is what was on its way on connections that were opened before',
      range(5, (n) => opened(n, n / 500, n / 500, { status: 500 })),
    ],
    ['unseen', 'side by side is no row', again(500, 0, 0.1, 0.2).map((one) => ({ ...one, took: 500, ...lost }))],
  ],
  herd: [
    ['unseen', 'seven connections', wave(7, () => 0)],
    ['fail', 'eight, all at once', wave(8, () => 0.01), ['r12']],
    ['fail', 'eight together, but late', wave(8, () => 3), ['r12']],
    ['pass', 'eight, spread out', wave(8, (i) => 0.2 * (i + 1))],
    ['pass', 'half of them at once', wave(8, (i) => (i < 4 ? 0 : 0.2 * i))],
    ['fail', 'one more than half, if only just', wave(8, (i) => (i < 5 ? 0.025 * i : 0.2 * i))],
    ['pass', 'within a millisecond more', wave(8, (i) => (i < 5 ? 0.02525 * i : 0.2 * i))],
    ['unseen', 'three are back', wave(8, () => 0).slice(0, 11)],
    [
      'unseen',
      'one connection that comes back eight times',
      [...wave(8, () => 0).slice(0, 8), ...range(9, (i) => get(11 + i / 100))],
    ],
    ['unseen', 'eight refusals of one connection', range(9, (i) => refused(i / 100, 10))],
    ['unseen', 'a minute apart', range(10, (i) => refused(60 * i, 60, { connection: i, opens: true }))],
    ['fail', 'the newest of two waves', [...wave(8, (i) => i), ...wave(8, () => 0, 100)]],
  ],
  hopeless: [
    ['unseen', 'nothing was refused', [get(0), get(1)]],
    ['pass', 'it went on', [get(0, { status: 404 }), get(1)]],
    ...[400, 403, 404, 405, 409, 410, 411, 413, 414, 415, 417, 422, 431].map((status): Row => {
      return ['fail', `${status} thrice`, again(status, 0, 1, 2, 3), ['r3']];
    }),
    [
      'unseen',
      'the same under way may pass',
      again(409, 0, 1, 2, 3).map((one) => ({ ...one, code: 'idempotency_in_flight' })),
    ],
    ['pass', 'twice', [...again(404, 0, 1, 2), get(9)]],
    [
      'unseen',
      'side by side, on connections that were opened before',
      range(4, (n) => opened(n, n / 500, n / 500, { status: 409 })),
    ],
    ['pass', 'it helped once', [...again(404, 0, 1), ...again(201, 2), ...again(404, 3, 4), get(9)]],
    ['pass', 'others between do not make it another', [...again(404, 0, 1, 2), get(4)]],
    ['unseen', '401 is told to nobody whom we know', again(401, 0, 1, 2, 3)],
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
    ['unseen', 'a pool begins', range(16, (s) => ({ ...on(s, s / 10), line: OPEN }))],
    [
      'unseen',
      'it ends what was idle for a second',
      range(9, (s) => ({ ...on(s, 2 * s), line: { endedAfterMs: 1_000 } })),
    ],
    ['unseen', 'a pool begins anew after five seconds of silence', [...range(16, pooled(0)), ...range(16, pooled(6))]],
    ['fail', 'but not after less', [...range(16, pooled(0)), ...range(16, pooled(4))]],
    [
      'fail',
      'nor while another connection is in use',
      [...range(16, pooled(0)), ...range(3, (n) => get(2 * n + 1, { connection: 100 })), ...range(16, pooled(6))],
    ],
    ['unseen', 'thirty calls at once', range(30, (n) => ({ ...on(n, n / 100), connectedAt: 0, line: OPEN }))],
    [
      'fail',
      'thirty connections that were opened ahead, each for one request',
      range(30, (n) => ({ ...on(n, 2 + n / 100), connectedAt: 0, line: OPEN })),
    ],
    ['fail', 'too many that stay open', range(30, (s) => ({ ...on(s, s / 10), line: OPEN }))],
    [
      'fail',
      'one for each request, left open until the service ends it',
      range(30, (s) => ({ ...on(s, s / 2), line: s < 20 ? { endedAfterMs: 5_001 } : OPEN })),
    ],
    [
      'unseen',
      'the same, sixteen a minute',
      range(40, (s) => ({ ...on(s, 4 * s), line: s < 38 ? { endedAfterMs: 5_001 } : OPEN })),
    ],
    ['unseen', 'a proxy stands between', range(9, (s) => ({ ...on(s, s), isProxied: true }))],
  ],
  paging: [
    ['unseen', 'first pages only', [get(0), get(1)]],
    ['pass', 'a Link had led there', [get(0), get(1, { isLinked: true })]],
    ['fail', 'none had', [get(0), get(1, { isLinked: false })], ['r1']],
    ['fail', 'nor for a HEAD', [get(0), get(1, { method: 'HEAD', isLinked: false })], ['r1']],
    ['unseen', 'no list is asked for', [post(0, { isLinked: false })]],
  ],
  redundant: [
    ['unseen', 'no GET', [post(0)]],
    ['fail', 'the same within 250 ms', again(200, 0, 0.249), ['r1']],
    ['pass', 'the same after them', again(200, 0, 0.25)],
    ['pass', 'on another connection', again(200, 0, 0.1).map((one, connection) => ({ ...one, connection }))],
    ['fail', 'a 304 is an answer too', again(304, 0, 0.1), ['r1']],
    ['pass', 'an animal has changed', again(200, 0.1, 0.2).map((one, petsVersion) => ({ ...one, petsVersion }))],
    [
      'pass',
      'a category was set',
      [again(200, 0)[0], { s: 0.1, method: 'PUT', target: '/v1/categories/1' }, again(200, 0.2)[0]],
    ],
    [
      'fail',
      'none was, in the end',
      [again(200, 0)[0], { s: 0.1, method: 'PUT', target: '/v1/categories/1', status: 400 }, again(200, 0.2)[0]],
    ],
    ['pass', 'one in five', [...again(200, 0, 0.1), ...range(3, (s) => get(s + 2))]],
    ['pass', 'the first had failed', again(200, 0, 0.1).map((one, at) => ({ ...one, ...(at === 0 && lost) }))],
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
    ['fail', 'a ban began', [refused(0, 120, { bans: true }), get(200)], ['r0']],
  ],
};

for (const { id } of CHECKS) {
  test(`check ${id}`, () => {
    for (const [verdict, what, rows, requestIds, after = 0] of TABLE[id]) {
      const result = resultOf(judged(after, ...rows), id);
      assert.equal(result.verdict, verdict, `${what}: ${result.why}`);
      if (requestIds !== undefined) assert.deepEqual(result.requestIds, requestIds, what);
      assert.equal(result.count > 0, result.requestIds.length > 0, what);
    }
  });
}

test('a request that was sent beside another is no try of it: only after its end its client can have waited', () => {
  const failed = { same: 'same', status: 503 };
  const rows = [
    get(0, { ...failed, took: 100 }),
    get(0.05, { ...failed, took: 10 }),
    get(0.08, failed),
    get(1, failed),
  ];
  const [first, second, third, fourth] = triesOf(history(...rows));
  assert.deepEqual([first.again, second.again, second.waited], [null, null, null]);
  assert.deepEqual([third.again, third.waited, fourth.again, fourth.waited], ['r1', 20, 'r2', 919]);
});

test('a request of a flood is judged in a time that grows with the record, not with its square', () => {
  const same = (i: number) => ({ same: 'same', connection: i, connectedAt: 0, opens: false });
  const floods = {
    'refused, over': range(600, (i) => refused(i / 1_000, 0, same(i % 50))),
    'POSTs, lost': range(600, (i) => post(i / 1_000, { ...lost, ...same(i % 50) })),
    'POSTs, lost, a connection each': range(600, (i) => post(i / 1_000, { ...lost, ...same(i) })),
    'POSTs, refused, a key each': range(600, (i) => keyed(i / 1_000, `${i}`, { ...same(i % 50), status: 429 })),
    'POSTs, lost, keys in turns': range(600, (i) => post(i / 1_000, { ...lost, ...same(i % 50), key: `${i % 300}` })),
  };
  for (const [name, rows] of Object.entries(floods)) {
    const requests = history(...rows);
    for (const { judge = () => [] } of CHECKS.flatMap(({ rules }) => rules)) {
      /** The least of several, in µs for as many requests: the machine may be busy. */
      const microsOf = (before: number) => {
        const known = requests.slice(-1 - before, -1);
        const once = () => {
          const began = process.cpuUsage();
          for (let i = 0; i < 30; i++) judge(requests.at(-1)!, known);
          const { user, system } = process.cpuUsage(began);
          return user + system;
        };
        return Math.min(...range(8, once));
      };
      const [few, many] = [microsOf(75), microsOf(600)];
      assert.ok(
        many < 25 * Math.max(few, 100),
        `${name}, ${judge.name}: ${few} µs after 75 requests, ${many} after 600`,
      );
    }
  }
});

/** The grade of a client of which some checks were bad once, some unseen, and all others good. */
function graded(bad: string[], unseen: string[] = []): Grade {
  const tallies = new Tallies();
  for (const { id, rules } of CHECKS) {
    if (bad.includes(id)) Object.assign(tallies.of(rules[0]), { bad: 1, requestIds: ['r1'] });
    else if (!unseen.includes(id)) tallies.of(rules[0]).good = 1;
  }
  return gradeOf(tallies);
}

test('weights, caps, score and grade', () => {
  const weights = CHECKS.map(({ id, weight, cap = '' }) => `${id} ${weight} ${cap}`.trim());
  const rest = ['herd 5', 'hopeless 10', 'reuse 10', 'paging 5', 'redundant 5', 'deprecated 0', 'ban 0 F'];
  assert.deepEqual(weights, ['retry_after 20 D', 'idempotency 20 C', 'finished 15 C', 'backoff 10', ...rest]);
  const all = CHECKS.map(({ id }) => id);
  const but = (...seen: string[]) => all.filter((id) => !seen.includes(id));
  const rows: [bad: string[], unseen: string[], grade: string | null, score: number, seen: number][] = [
    [[], [], 'A', 100, 100],
    [['backoff'], [], 'A', 90, 100],
    [['hopeless', 'reuse'], [], 'B', 80, 100],
    [['hopeless', 'reuse', 'backoff', 'paging'], [], 'C', 65, 100],
    [['hopeless', 'reuse', 'backoff', 'paging', 'redundant', 'herd'], [], 'D', 55, 100],
    [['retry_after'], [], 'D', 80, 100],
    [['idempotency'], [], 'C', 80, 100],
    [['finished'], [], 'C', 85, 100],
    [['retry_after', 'idempotency'], [], 'D', 60, 100],
    [['retry_after', 'idempotency', 'finished'], [], 'F', 45, 100],
    [['ban'], [], 'F', 100, 100],
    [['deprecated'], [], 'A', 100, 100],
    [[], ['idempotency'], 'B', 100, 80],
    [[], ['retry_after', 'finished', 'herd'], 'A', 100, 60],
    [[], ['retry_after', 'finished', 'herd', 'paging'], null, 100, 55],
    // A failed check's cap holds whatever was seen.
    [['ban'], but('ban'), 'F', 0, 0],
    [['finished'], but('finished', 'hopeless', 'reuse', 'paging', 'redundant'), 'C', 66, 45],
    [['finished'], but('finished', 'redundant'), 'F', 25, 20],
    [['hopeless'], but('hopeless', 'reuse'), null, 50, 20],
    [[], all, null, 0, 0],
  ];
  for (const [bad, unseen, ...expected] of rows) {
    const { grade, score, seen, next, checks } = graded(bad, unseen);
    for (const { id, why, weight } of checks) {
      assert.equal(why.startsWith('not seen: '), unseen.includes(id), why);
      assert.equal(next.includes(`${id} (${weight}): `), unseen.includes(id) && weight > 0, `${id} in ${next}`);
    }
    assert.deepEqual([grade, score, seen], expected, `bad: ${bad}; unseen: ${unseen}`);
  }
  assert.equal(graded([]).next, '');
  assert.match(
    graded([], ['paging', 'finished']).next,
    /^finished \(15\): send POSTs.*; paging \(5\): .*follow the Links$/,
  );
});

test('a warning is half', () => {
  const tallies = new Tallies();
  const [waits, growth] = CHECKS.find(({ id }) => id === 'backoff')!.rules;
  tallies.of(waits).good = 4;
  tallies.of(growth).bad = 1;
  const { score, seen, checks } = gradeOf(tallies);
  assert.deepEqual([score, seen, resultOf({ checks } as Grade, 'backoff').verdict], [50, 10, 'warn']);
});

test('a record keeps its newest requests that have ended, and what they counted for longer', () => {
  const { history: record } = new KeyStates().of('k1');
  const [outlived, ...others] = history(...range(MAX_REQUESTS + 11, (s) => get(s, { bans: s < 2 })));
  record.begin({ ...outlived, endedAt: Number.POSITIVE_INFINITY });
  assert.equal(record.ended().length, 0);
  for (const one of others) {
    record.begin(one);
    record.end(one);
  }
  record.end(outlived); // it is passed over
  const kept = record.ended().map(({ requestId }) => requestId);
  assert.deepEqual([kept.length, kept[0], kept.at(-1)], [MAX_REQUESTS, 'r11', `r${MAX_REQUESTS + 10}`]);
  const { count, requestIds } = resultOf(record.grade(1e6), 'ban');
  assert.deepEqual([count, requestIds], [1, ['r1']]);
});

test('a POST that is forgotten by its client is told, though the record no longer holds it', () => {
  const { history: record } = new KeyStates().of('k1');
  for (const one of history(post(0, lost), ...range(MAX_REQUESTS, (n) => get(n + 1)))) {
    record.begin(one);
    record.end(one);
  }
  assert.equal(resultOf(record.grade(1e6), 'finished').verdict, 'fail');
});

test('a POST may still come again, and be forgotten, though 256 others came within its five seconds', () => {
  const lists = range(MAX_REQUESTS + 9, (n) => get(0.5 + n / 100));
  const verdicts = [[], [post(4.5)]].map((more) => {
    const { history: record } = new KeyStates().of('k1');
    for (const one of history(post(0, lost), ...lists, ...more)) {
      record.begin(one);
      record.end(one);
    }
    const { checks, openMs } = record.grade(4_800);
    const of = (name: string) => resultOf({ checks } as Grade, name).verdict;
    return [of('idempotency'), openMs, resultOf(record.grade(5_001), 'finished').verdict];
  });
  assert.deepEqual(verdicts, [
    ['unseen', 201, 'fail'],
    ['fail', 0, 'pass'],
  ]);
});

test('an equal POST is an intention of its own once the failed one comes again, though the record has forgotten its failure', () => {
  const { history: record } = new KeyStates().of('k1');
  const others = range(64, (n) => post(1 + n / 100, { same: `${n}` }));
  const lists = range(MAX_REQUESTS - 2, (n) => get(2 + n / 100));
  const counts: number[] = [];
  const equal = [post(0, { ...lost, key: 'a' }), post(0.1, { key: 'b' })];
  for (const one of history(...equal, ...others, ...lists, post(9, { key: 'a' }))) {
    record.begin(one);
    record.end(one);
    counts.push(resultOf(record.grade(one.endedAt), 'idempotency').count);
  }
  assert.deepEqual([counts[1], counts.at(-2), counts.at(-1)], [1, 1, 0]);
});

test('a POST that was forgotten and came late is named no longer; another one still is', () => {
  const tallies = new Tallies();
  const [first, second, late] = history(
    post(0, { ...lost, same: 'x' }),
    post(0, { ...lost, same: 'y' }),
    post(9, { same: 'x' }),
  );
  const named = (now: number, ...requests: RequestRecord[]) => {
    tallies.settle(requests, now);
    return resultOf(gradeOf(tallies), 'finished').requestIds;
  };
  assert.deepEqual(named(6_000, first, second), ['r0', 'r1']);
  assert.deepEqual(named(9_001, first, second, late), ['r1']);
});

test('how long a POST may still come again', () => {
  const { history: record } = new KeyStates().of('k1');
  for (const one of history(post(0, lost))) {
    record.begin(one);
    record.end(one);
  }
  assert.deepEqual([record.grade(1_001).openMs, record.grade(5_001).openMs], [4_000, 0]);
});

test('the last 4,096 pages that Links led to are known', () => {
  const { links } = new KeyStates().of('k1').history;
  for (let page = 0; page <= MAX_LINKS; page++) links.add(page);
  links.add(7); // it is there already
  assert.deepEqual(
    [0, 1, 7, MAX_LINKS].map((page) => links.has(page)),
    [false, true, true, true],
  );
});

test('of too many keys the one that was silent for longest is forgotten', () => {
  const states = new KeyStates();
  const first = states.of('k1');
  const second = states.of('k2');
  for (let key = 3; key <= MAX_KEYS; key++) states.of(`k${key}`);
  assert.equal(states.of('k1'), first);
  states.of('new');
  assert.equal(states.of('k1'), first);
  assert.notEqual(states.of('k2'), second);
});
