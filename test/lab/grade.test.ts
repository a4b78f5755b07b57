/** From counts to a grade, and a grade as XML. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CHECKS } from '../../src/lab/checks.ts';
import { count, type Grade, gradeOf, newTallies } from '../../src/lab/grade.ts';
import { junitOf } from '../../src/lab/junit.ts';
import { KeyStates, MAX_KEYS, MAX_REQUESTS } from '../../src/lab/record.ts';
import { history } from './history.ts';

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
    [['herd', 'paging'], [], 'B', 85, 100],
    [['herd', 'reuse'], [], 'B', 80, 100],
    [['herd', 'reuse', 'paging'], [], 'C', 75, 100],
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

test('the newest requests lead to what went wrong', () => {
  const tallies = newTallies();
  const requests = history(...Array.from({ length: 20 }, (_, s) => ({ s, connection: s, opens: true })));
  for (const [at, one] of requests.entries()) count(tallies, one, requests.slice(0, at));
  const reuse = gradeOf(tallies).checks.find(({ id }) => id === 'reuse')!;
  assert.equal(reuse.count, 19);
  assert.deepEqual(reuse.requestIds, ['r12', 'r13', 'r14', 'r15', 'r16', 'r17', 'r18', 'r19']);
});

test('a record keeps its newest requests, and what they counted for longer', () => {
  const record = new KeyStates().of('k1').record;
  const requests = history(...Array.from({ length: MAX_REQUESTS + 10 }, (_, s) => ({ s, bans: s === 0 })));
  for (const one of requests) {
    record.begin(one);
    record.end(one);
  }
  const kept = record.newest(1_000).map(({ requestId }) => requestId);
  assert.equal(kept.length, MAX_REQUESTS);
  assert.deepEqual([kept[0], kept.at(-1)], [`r${MAX_REQUESTS + 9}`, 'r10']);
  const ban = record.grade().checks.find(({ id }) => id === 'ban')!;
  assert.deepEqual([ban.verdict, ban.requestIds], ['fail', ['r0']]);
});

test('what is still under way is not shown yet, and what outlived the record is passed over', () => {
  const record = new KeyStates().of('k1').record;
  const [first, ...others] = history(...Array.from({ length: MAX_REQUESTS + 1 }, (_, s) => ({ s })));
  record.begin({ ...first, endedAt: Number.POSITIVE_INFINITY });
  assert.equal(record.newest(10).length, 0);
  for (const one of others) record.begin(one);
  record.end(first);
  assert.equal(record.grade().checks.find(({ id }) => id === 'ban')!.verdict, 'unseen');
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
