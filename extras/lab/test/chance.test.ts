/** What chance does to the grade: 400 drills for each way to back off, with the rows of failures that the drill has. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seeded } from '../../../test/random.ts';
import { CHECKS } from '../checks.ts';
import { DRILL } from '../drill.ts';
import { gradeOf } from '../grade.ts';
import type { RequestRecord } from '../record.ts';
import { Counts, judge } from '../rule.ts';
import { recordOf } from './records.ts';

const { rules: RULES } = CHECKS.find(({ id }) => id === 'backoff')!;
const DRILLS = 400;
const BASE_MS = 100;
const CAP_MS = 20_000;
const ROWS = DRILL.flatMap(({ fault }) => (fault && fault.times >= 3 ? fault.times : []));

const random = seeded(7); // the same numbers each time
const grown = (factor: number, tried: number) => Math.min(CAP_MS, BASE_MS * factor ** tried);

type Policy = (tried: number, before: number) => number;

/** How long each waits before the try after `tried + 1` failures, and what those drills must make of it. */
const POLICIES: [name: string, wait: Policy, verdict: string, least: number][] = [
  ['full jitter', (tried) => random() * grown(2, tried), 'pass', 0.99],
  ['decorrelated jitter', (_, before) => Math.min(CAP_MS, BASE_MS + random() * (3 * before - BASE_MS)), 'pass', 0.99],
  ['factor 1.5 with ± 50 %', (tried) => grown(1.5, tried) * (0.5 + random()), 'pass', 0.99],
  ['half fixed, half random', (tried) => grown(2, tried) * (0.5 + random() / 2), 'pass', 0.99],
  ['without chance', (tried) => grown(2, tried), 'pass', 1],
  ['always the same', () => BASE_MS, 'warn', 1],
  ['no wait', () => 0, 'fail', 1],
];

/** What the network and a busy machine add. */
const added = () => 1 + 4 * random();

/** One client in one drill: its rows of failures, each followed by the reply that ends it. */
function verdictOn(wait: Policy): string {
  const requests: RequestRecord[] = [];
  let at = 0;
  for (const [row, failures] of ROWS.entries()) {
    let waited = BASE_MS;
    for (let tried = 0; tried <= failures; tried++) {
      requests.push(recordOf({ at, content: `${row}`, status: tried < failures ? 500 : 200 }));
      waited = wait(tried, waited);
      at += 1 + waited + added();
    }
  }
  judge(requests, at, RULES);
  const counts = new Counts();
  for (const request of requests) counts.add(request);
  return gradeOf(counts).checks.find(({ id }) => id === 'backoff')!.verdict;
}

test('the drill has rows of five failures', () => assert.deepEqual(ROWS, [5, 5]));

for (const [name, wait, verdict, least] of POLICIES) {
  test(`${name}: at least ${100 * least} of 100 drills come to "${verdict}"`, () => {
    const counts: Record<string, number> = {};
    for (let drill = 0; drill < DRILLS; drill++) {
      const found = verdictOn(wait);
      counts[found] = (counts[found] ?? 0) + 1;
    }
    assert.ok((counts[verdict] ?? 0) >= least * DRILLS, JSON.stringify(counts));
  });
}
