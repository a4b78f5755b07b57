/** What each check says of a client's history, what a record keeps of one, and from counts to a grade, also as XML. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CHECKS } from '../../src/lab/checks.ts';
import { count, type Grade, gradeOf, newTallies } from '../../src/lab/grade.ts';
import { junitOf } from '../../src/lab/junit.ts';
import { KeyStates, MAX_KEYS, MAX_REQUESTS } from '../../src/lab/record.ts';
import { pageOf, type Recorded } from '../../src/lab/recorded.ts';

/** A request, of which a test says only what matters. */
interface Told extends Partial<Omit<Recorded, 'at' | 'endedAt'>> {
  /** Seconds since the beginning; the reply took a millisecond unless `took` says more. */
  s: number;
  took?: number;
  /** Seconds that a 429 or 503 told to wait, from its reply on. */
  wait?: number;
}

/** Requests as a good client sends them; by default every one is another GET on connection 1. */
function history(...rows: Told[]): Recorded[] {
  return rows.map(({ s, took = 1, wait, method = 'GET', ...rest }, place) => {
    const at = Math.round(1_000 * s);
    const target = rest.target ?? `/v1/pets?limit=${place + 1}`;
    const waitUntil = wait === undefined ? undefined : at + took + 1_000 * wait;
    const request = { unix: at, operation: 'listPets', requestId: `r${place}`, connection: 1, opens: place === 0 };
    const marks = { same: `${method} ${target}`, key: undefined, petsVersion: 1, page: pageOf(target) };
    const reply = { fault: null, status: 200, isLost: false, isKept: true, next: undefined, bans: false };
    return { at, endedAt: at + took, method, target, waitUntil, ...request, ...marks, ...reply, ...rest };
  });
}

/** What the checks make of it. */
function judged(...rows: Told[]): Grade {
  const tallies = newTallies();
  const requests = history(...rows);
  for (const [at, one] of requests.entries()) count(tallies, one, requests.slice(0, at));
  return gradeOf(tallies);
}

const resultOf = ({ checks }: Grade, name: string) => checks.find(({ id }) => id === name)!;

const get = (s: number, more: Partial<Told> = {}): Told => ({ s, ...more });
/** The same target each time, as one asks that tries again. */
const again = (status: number, ...seconds: number[]): Told[] =>
  seconds.map((s) => ({ s, target: '/v1/pets/9', status }));
const refused = (s: number, wait = 5, more: Partial<Told> = {}): Told => ({ s, status: 429, wait, ...more });
const post = (s: number, more: Partial<Told> = {}): Told => ({
  ...{ s, method: 'POST', target: '/v1/pets', operation: 'createPet', status: 201 },
  ...more,
});
/** On a connection that it opens. */
const on = (connection: number, s: number): Told => ({ s, connection, opens: true });
const lost = { status: null, isLost: true, isKept: false };

type Expected = 'pass' | 'warn' | 'fail' | 'unseen';
type Row = [verdict: Expected, what: string, history: Told[], requestIds?: string[]];

const range = <T>(n: number, make: (i: number) => T) => Array.from({ length: n }, (_, i) => make(i));
/** The page after an id, and the Link that leads to it. */
const page = (s: number, after: number) => get(s, { target: `/v1/pets?limit=20&after=${after}` });
const linked = (s: number, after: number, more = {}) => get(s, { next: `/v1/pets?${after}`, ...more });
/** So many connections refused at once, told to come back ten seconds later; `back`: when each does. */
const wave = (n: number, back: (i: number) => number, at = 0): Told[] => [
  ...range(n, (i) => refused(at, 10, { connection: i })),
  ...range(n, (i) => get(at + 10.001 + back(i), { connection: 100 + i })).sort((a, b) => a.s - b.s),
];
/** Eight connections refused a second apart, and each back on the dot. */
const oneByOne = range(16, (i) =>
  i < 8 ? refused(i, 20, { connection: i }) : get(12.001 + i, { connection: 100 + i }),
);

const TABLE: Record<string, Row[]> = {
  retry_after: [
    ['unseen', 'refused, and nothing came after', [get(0), refused(1)]],
    ['pass', 'its timer fired a fraction early', [refused(0, 5, { status: 503 }), get(4.996)]],
    ['fail', 'it came early, if only just', [refused(0), get(4.995)], ['r1']],
    ['fail', 'a 503 holds as much', [refused(0, 5, { status: 503 }), get(1)], ['r1']],
    ['unseen', 'a 503 that told no time', [get(0, { status: 503 }), get(1)]],
    ['unseen', 'another connection within a second could not know yet', [refused(0), get(1, { connection: 2 })]],
    ['fail', 'another connection, a second after', [refused(0), get(1.001, { connection: 2 })], ['r1']],
    ['unseen', 'sent before the refusal had left', [0, 0.05].map((s) => refused(s, 5, { took: 100 }))],
    ['fail', 'a later refusal holds, though an earlier time came', [refused(0, 1), refused(2, 60), get(3)], ['r2']],
  ],
  idempotency: [
    ['pass', 'the same key after a lost reply', [post(0, { ...lost, key: 'a' }), post(1, { key: 'a' })]],
    ['pass', 'the same key after a 5xx', [post(0, { status: 503, key: 'a' }), post(1, { key: 'a' })]],
    ['fail', 'no key', [post(0, lost), post(1)], ['r1']],
    ['fail', 'a new key', [post(0, { ...lost, key: 'a' }), post(1, { key: 'b' })], ['r1']],
    ['fail', 'a reply that broke off is lost', [post(0, { isLost: true }), post(1)], ['r1']],
    ['unseen', 'another body', [post(0, { ...lost, same: 'x' }), post(1, { same: 'y' })]],
    ['fail', 'just within a minute', [post(0, lost), post(60.001)], ['r1']],
    ['unseen', 'more than a minute later', [post(0, lost), post(60.002)]],
    ['pass', 'once a reply has come, a new wish', [post(0, { ...lost, key: 'a' }), post(1, { key: 'a' }), post(2)]],
    ['unseen', 'after a 4xx', [post(0, { status: 400 }), post(1)]],
    ['unseen', 'a GET needs none', [get(0, { target: '/v1/pets', ...lost }), get(1, { target: '/v1/pets' })]],
  ],
  backoff: [
    ['unseen', 'two failures', [...again(500, 0, 1), ...again(200, 2)]],
    ['pass', 'just half as long again', again(500, 0, 1.001, 2.504)],
    ['fail', 'a little less', again(500, 0, 1.001, 2.4), ['r2']],
    ['pass', 'most waits grow', again(500, 0, 1, 3, 4, 8)],
    ['fail', 'most do not', again(500, 0, 1, 3, 5, 7, 9), ['r3', 'r4', 'r5']],
    ['fail', 'it never waits: what a request takes is no wait', again(500, 0, 0.002, 0.006, 0.014)],
    ['pass', 'the wait before what went well counts too', [...again(500, 0, 1, 3), ...again(200, 7)]],
    ['unseen', 'with Retry-After there is nothing to grow', range(4, (n) => ({ ...again(503, 2 * n)[0], wait: 1 }))],
    ['unseen', 'a reply between is no row', [...again(500, 0, 1), ...again(200, 2), ...again(500, 3)]],
    ['unseen', 'three requests, each its own', range(3, (s) => get(s, { status: 500 }))],
    ['unseen', 'side by side is no row', again(500, 0, 0.1, 0.2).map((one) => ({ ...one, took: 500, ...lost }))],
  ],
  herd: [
    ['unseen', 'seven connections', wave(7, () => 0)],
    ['fail', 'eight, all at once', wave(8, () => 0.01), ['r12']],
    ['pass', 'eight, spread out', wave(8, (i) => 0.2 * (i + 1))],
    ['pass', 'eight together, but late enough', wave(8, () => 0.101)],
    ['pass', 'half of them at once', wave(8, (i) => (i < 4 ? 0 : 0.2 * i))],
    ['fail', 'one more than half, if only just', wave(8, (i) => (i < 5 ? 0.1 : 0.2 * i))],
    ['fail', 'the nth is held against the nth time told', oneByOne],
    ['unseen', 'three are back', wave(8, () => 0).slice(0, 11)],
    ['unseen', 'eight refusals of one connection', range(9, (i) => refused(i / 100, 10))],
    ['unseen', 'a minute apart', range(10, (i) => refused(60 * i, 60, { connection: i, opens: true }))],
    ['fail', 'the newest of two waves', [...wave(8, (i) => i), ...wave(8, () => 0, 100)]],
  ],
  hopeless: [
    ['unseen', 'nothing was refused', [get(0), get(1)]],
    ['pass', 'it went on', [get(0, { status: 404 }), get(1)]],
    ...[400, 401, 404, 410, 422].map((status): Row => ['fail', 'thrice', again(status, 0, 1, 2, 3), ['r3']]),
    ['unseen', 'a 409 may pass', range(5, (s) => post(s, { status: 409 }))],
    ['pass', 'it helped once', [...again(404, 0, 1), ...again(201, 2), ...again(404, 3, 4), get(9)]],
    ['pass', 'others between do not make it another', [...again(404, 0, 1, 2), get(4)]],
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
  ],
  paging: [
    ['unseen', 'first pages only', [linked(0, 20), get(1)]],
    ['fail', 'it counted by itself', [linked(0, 20), page(1, 40)], ['r1']],
    ['fail', 'no Link was there', [page(0, 20)], ['r0']],
    ['fail', 'the Link of another list', [get(0, { next: '/v1/store/orders?20' }), page(1, 20)], ['r1']],
    ['pass', 'the eighth Link before', [...range(8, (s) => linked(s, s)), page(9, 0)]],
    ['fail', 'the ninth', [...range(9, (s) => linked(s, s)), page(9, 0)], ['r9']],
    ['fail', 'a reply that had not left', [linked(0, 20, { took: 500 }), page(0.1, 20)], ['r1']],
  ],
  redundant: [
    ['unseen', 'no GET', [post(0)]],
    ['fail', 'the same within a second', again(200, 0, 0.5), ['r1']],
    ['pass', 'the same after a second', again(200, 0, 1)],
    ['pass', 'an animal has changed', again(200, 0.1, 0.2).map((one, petsVersion) => ({ ...one, petsVersion }))],
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
    for (const [verdict, what, told, requestIds] of TABLE[id]) {
      const result = resultOf(judged(...told), id);
      assert.equal(result.verdict, verdict, `${what}: ${result.why}`);
      if (requestIds !== undefined) assert.deepEqual(result.requestIds, requestIds, what);
      assert.equal(result.count > 0, result.requestIds.length > 0);
    }
  });
}

/** The grade of a client of which some checks were bad once, some unseen, and all others good. */
function graded(bad: string[], unseen: string[] = []): Grade {
  const tallies = newTallies();
  for (const [at, { id }] of CHECKS.entries()) {
    if (bad.includes(id)) tallies[at] = { good: 0, bad: 1, requestIds: ['r1'] };
    else if (!unseen.includes(id)) tallies[at].good = 1;
  }
  return gradeOf(tallies);
}

test('score and grade', () => {
  const rows: [bad: string[], unseen: string[], grade: string | null, score: number, seen: number][] = [
    [[], [], 'A', 100, 100],
    [['herd'], [], 'A', 90, 100],
    [['herd', 'reuse'], [], 'B', 80, 100],
    [['herd', 'reuse', 'backoff', 'paging'], [], 'C', 65, 100],
    [['herd', 'reuse', 'backoff', 'paging', 'redundant'], [], 'D', 60, 100],
    [['retry_after'], [], 'D', 75, 100],
    [['idempotency'], [], 'C', 75, 100],
    [['retry_after', 'idempotency'], [], 'D', 50, 100],
    [['retry_after', 'idempotency', 'paging'], [], 'F', 45, 100],
    [['ban'], [], 'F', 100, 100],
    [['deprecated'], [], 'A', 100, 100],
    [[], ['retry_after', 'herd', 'redundant'], 'A', 100, 60],
    [[], ['retry_after', 'idempotency'], null, 100, 50],
    [['ban'], ['retry_after', 'herd', 'redundant', 'paging'], null, 100, 55],
    [['herd'], ['retry_after'], 'B', 86, 75],
    [[], CHECKS.map(({ id }) => id), null, 0, 0],
  ];
  for (const [bad, unseen, ...expected] of rows) {
    const { grade, score, seen, checks } = graded(bad, unseen);
    for (const { id, why } of checks) assert.equal(why.startsWith('not seen: '), unseen.includes(id), why);
    assert.deepEqual([grade, score, seen], expected, `bad: ${bad}; unseen: ${unseen}`);
  }
});

test('a record keeps its newest requests that have ended, and what they counted for longer', () => {
  const { record } = new KeyStates().of('k1');
  const [outlived, ...others] = history(...range(MAX_REQUESTS + 11, (s) => get(s, { bans: s < 2 })));
  record.begin({ ...outlived, endedAt: Number.POSITIVE_INFINITY });
  assert.equal(record.newest(10).length, 0);
  for (const one of others) {
    record.begin(one);
    record.end(one);
  }
  record.end(outlived); // it is passed over
  const kept = record.newest(1_000).map(({ requestId }) => requestId);
  assert.deepEqual([kept.length, kept[0], kept.at(-1)], [MAX_REQUESTS, `r${MAX_REQUESTS + 10}`, 'r11']);
  const { count, requestIds } = resultOf(record.grade(), 'ban');
  assert.deepEqual([count, requestIds], [1, ['r1']]);
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

test('a grade as JUnit: every check a test, and the grade one', () => {
  const xml = junitOf('k<1>', graded(['retry_after', 'deprecated'], ['herd']), false);
  assert.match(xml, /^<\?xml version="1.0" encoding="UTF-8"\?>\n<testsuite name="petstore grade k&lt;1&gt;"/);
  assert.match(xml, / tests="11" failures="2" errors="0" skipped="1">/);
  assert.match(xml, /name="grade"><failure message="grade: D; 72 of 100, 90 % of the weight seen"\/>/);
  assert.match(xml, /name="retry_after"><failure message="1 of 1 [^"]+; requests: r1"\/>/);
  assert.match(xml, /name="deprecated"><system-out>warning: /);
  assert.match(xml, /name="herd"><skipped message="not seen: /);
  assert.match(junitOf('k1', graded([]), true), / failures="0" errors="0" skipped="0">\n.+ name="grade"><\/testcase>/);
});
