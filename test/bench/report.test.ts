import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { AIMS, inUnit, standing } from '../../bench/aims.ts';
import type { Results } from '../../bench/bench.ts';
import { describeMachine } from '../../bench/machine.ts';
import { FOLDER } from '../../bench/peers.ts';
import { asPage } from '../../bench/report.ts';
import { asText } from '../../bench/table.ts';

const even = (value: number) => ({ median: value, min: value, max: value });
const latency = { p50: 0.1, p90: 0.2, p99: 1, p999: 2, max: 3 };
const machine = describeMachine(undefined);
const nothing: Results = { machine, rows: [], ratios: [], figures: [], growth: [], reached: [], notes: [] };

test('an aim is reached, dreamt of or missed, whichever way is good; what is to be equal is so within its spread', () => {
  const of = (id: string) => AIMS.find((aim) => aim.id === id)!;
  const stands = (id: string, value: number, max = value) =>
    standing(of(id), { aim: 'lab', value: { ...even(value), max } });
  assert.equal(stands('list-bare', 1.2), 'dreamt of');
  assert.equal(stands('list-bare', 1.05), 'reached');
  assert.equal(stands('list-bare', 1.04, 1.3), 'MISSED');
  assert.equal(stands('scale-start', 0.4), 'dreamt of');
  assert.equal(stands('scale-start', 1.01), 'MISSED');
  assert.equal(stands('lab', 0.99, 1.01), 'reached');
  assert.equal(stands('lab', 0.95, 0.97), 'MISSED');
  assert.equal(standing(of('lab'), undefined), 'not measured');
  assert.equal(inUnit(of('scale-start'), 0.4), '+0.40 s');
});

test('the table tells each aim of what ran, the missed one and the one that could not be measured plainly', () => {
  const reached: Results['reached'] = [
    { aim: 'list-bare', value: even(0.5) },
    { aim: 'list-fastify', missing: 'Fastify is not installed' },
  ];
  const text = asText({ ...nothing, reached }, false);
  assert.match(text, /bare node:http.+≥ 1\.05.+≥ 1\.20.+0\.50.+MISSED/);
  assert.match(text, /not measured: Fastify is not installed/);
  assert.doesNotMatch(text, /SQLite/);
});

const growth = [1_000, 1_000_000].map((animals) => {
  return { animals, firstPerSecond: 100, rarePerSecond: 80, memoryMb: 70, startSeconds: 1 };
});
const rows = [
  { suite: 'list', subject: 'petstore', how: 'saturated', perSecond: even(1000), latency },
  { suite: 'list', subject: 'petstore', how: 'at a rate', latency },
];

test('the page stands alone, and lets nothing through as markup', async () => {
  const page = await asPage({ ...nothing, rows, growth, notes: ['<script>alert(1)</script>'] });
  assert.match(page, />1,000</);
  assert.doesNotMatch(page, /<script|<link|src=|url\(/);
  assert.doesNotMatch(page, /NaN|undefined|Infinity/);
});

const hasPlots = existsSync(`${FOLDER}node_modules/@observablehq/plot`);
test('the page has its plots', { skip: !hasPlots && 'the packages of bench are not installed' }, async () => {
  const page = await asPage({ ...nothing, rows, growth });
  assert.equal(page.match(/<svg /g)?.length, 5);
  assert.match(page, /var\(--s0\)/);
});
