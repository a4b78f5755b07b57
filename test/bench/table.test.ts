import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AIMS, inUnit, standing } from '../../bench/aims.ts';
import { describeMachine } from '../../bench/machine.ts';
import { asPage } from '../../bench/report.ts';
import type { Results } from '../../bench/results.ts';
import { asText, left, right, table } from '../../bench/table.ts';

const even = (value: number) => ({ median: value, min: value, max: value });

function results(more: Partial<Results>): Results {
  const machine = describeMachine(undefined, false);
  const none = { rows: [], ratios: [], figures: [], growth: [], reached: [], notes: [] };
  return { machine, began: '2026-01-01T00:00:00.000Z', tookSeconds: 1, secondsEach: 1, rounds: 1, ...none, ...more };
}

test('columns are as wide as their widest cell, numbers to the right', () => {
  const text = table(
    [left('name'), right('n')],
    [
      ['a', '1'],
      ['longer', '1,000'],
    ],
  );
  assert.equal(text, ['name        n', '──────  ─────', 'a           1', 'longer  1,000'].join('\n'));
});

test('an aim is reached, dreamt of or missed, whichever way is good', () => {
  const [list] = AIMS.filter(({ id }) => id === 'list-bare');
  const [start] = AIMS.filter(({ id }) => id === 'scale-start');
  const at = (value: number) => ({ aim: 'list-bare' as const, value: even(value) });
  assert.equal(standing(list, at(1.01)), 'dreamt of');
  assert.equal(standing(list, at(0.95)), 'reached');
  assert.equal(standing(list, at(0.94)), 'MISSED');
  assert.equal(standing(start, at(0.4)), 'dreamt of');
  assert.equal(standing(start, at(1.01)), 'MISSED');
  assert.equal(standing(list, undefined), 'not measured');
  assert.equal(inUnit(start, 0.4), '+0.40 s');
});

test('the table tells each aim of what ran, the missed one and the one that could not be measured plainly', () => {
  const text = asText(
    results({
      reached: [
        { aim: 'list-bare', value: even(0.5) },
        { aim: 'list-fastify', missing: 'Fastify is not installed' },
      ],
    }),
    false,
  );
  assert.match(text, /bare node:http.+≥ 0\.95.+≥ 1\.00.+0\.50.+MISSED/);
  assert.match(text, /not measured: Fastify is not installed/);
  assert.doesNotMatch(text, /SQLite/);
});

test('the page stands alone, and lets nothing through as markup', () => {
  const latency = { p50: 0.1, p90: 0.2, p99: 1, p999: 2, max: 3 };
  const page = asPage(
    results({
      rows: [
        { suite: 'list', subject: 'petstore', how: 'saturated', perSecond: even(1000), latency },
        { suite: 'list', subject: 'petstore', how: 'at a rate', latency },
      ],
      growth: [1_000, 1_000_000].map((animals) => ({
        animals,
        firstPerSecond: 100,
        randomPerSecond: 90,
        rarePerSecond: 80,
        memoryMb: 70,
        startSeconds: 1,
      })),
      notes: ['<script>alert(1)</script>'],
    }),
  );
  assert.equal(page.match(/<svg /g)?.length, 5);
  assert.doesNotMatch(page, /<script|<link|src=|url\(|https?:/);
  assert.doesNotMatch(page, /NaN|undefined|Infinity/);
});
