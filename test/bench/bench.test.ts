/** What the benchmarks reckon and tell, and their load at a fixed rate, on time that passes only when somebody waits. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { AIMS, inUnit, standing } from '../../bench/aims.ts';
import type { Results } from '../../bench/bench.ts';
import { describeMachine } from '../../bench/machine.ts';
import { cpuSeconds, Latencies, ratios, spread } from '../../bench/measure.ts';
import { FOLDER } from '../../bench/peers.ts';
import { asPage } from '../../bench/report.ts';
import { sendAtPace } from '../../bench/sender.ts';
import { asText } from '../../bench/table.ts';
import { NO_PROC } from '../http/flood.ts';

test('a summary tells each share within a thousandth, and the longest exactly', () => {
  const latencies = new Latencies();
  for (let ms = 1; ms <= 1000; ms++) latencies.record(ms);
  const { p50, p90, p99, p999, max } = latencies.summary();
  for (const share of [p50 / 500, p90 / 900, p99 / 990, p999 / 999, max / 1000]) {
    assert.ok(share >= 0.999 && share <= 1.003, `${share}`);
  }
  latencies.record(12_345.678);
  assert.equal(latencies.summary().max, 12_345.678);
});

test('a spread leaves out what is not known; ratios are taken round by round, so that a slow round changes nothing', () => {
  assert.deepEqual(spread([4, 1, 3, 2]), { median: 2.5, min: 1, max: 4 });
  assert.deepEqual(spread([5, Number.NaN, 1, 3]), { median: 3, min: 1, max: 5 });
  assert.ok(Number.isNaN(spread([]).median));
  assert.deepEqual(ratios([100, 10, 50], [50, 5, 25]), { median: 2, min: 2, max: 2 });
});

test('the CPU time of a process is told in less than a hundredth of a second', { skip: NO_PROC }, () => {
  const own = () => Object.values(process.cpuUsage()).reduce((sum, micros) => sum + micros) / 1e6;
  const times = [1, 2, 3].map(() => {
    const before = cpuSeconds(process.pid);
    for (const until = own() + 0.03; own() < until; );
    return cpuSeconds(process.pid) - before;
  });
  for (const used of times) assert.ok(used > 0.02 && used < 1, `${used} s`);
  const isWhole = (used: number) => Math.round(used * 1e6) % 10_000 === 0; // one of them may be so by chance
  assert.ok(!times.every(isWhole), `${times} s: whole ticks`);
});

/** When a pause ends that is to end at a time, and when the reply is there to what is sent at a time. */
type Times = Record<'pauseEnd' | 'answerAt', (ms: number) => number>;

async function paced(perSecond: number, requests: number, { pauseEnd, answerAt }: Times) {
  const [latency, late] = [new Latencies(), new Latencies()];
  const sentAt: number[] = [];
  const replies: { at: number; answered: () => void }[] = [];
  let now = 0;
  const passUntil = async (then: number) => {
    while (replies.length > 0 && replies[0].at <= then) {
      const { at, answered } = replies.shift()!;
      now = Math.max(now, at);
      answered();
    }
    now = Math.max(now, then);
  };
  const pause = (until: number) => passUntil(pauseEnd(until));
  const send = (_index: number, answered: () => void) => {
    sentAt.push(now);
    replies.push({ at: answerAt(now), answered });
  };
  await sendAtPace({ perSecond, requests, now: () => now, pause, send, latency, late });
  await passUntil(60_000);
  return { latency, late, sentAt };
}

test('a stalled server does not slow the sender down, and all that fell due meanwhile counts from then', async () => {
  let free = 0;
  /** One after the other, 1 ms each, and nothing at all between 1,000 and 1,500 ms. */
  const stalled = (now: number) => {
    free = Math.max(free, now) + 1;
    if (free > 1000 && free < 1500) free = 1500;
    return free;
  };
  const { sentAt, late, latency } = await paced(100, 300, { pauseEnd: (until) => until, answerAt: stalled });
  assert.equal(sentAt.length, 300);
  assert.deepEqual(sentAt.slice(99, 103), [990, 1000, 1010, 1020]);
  assert.equal(late.longestMs, 0);
  const { p50, p90, p99, max } = latency.summary();
  // A sender that waits for its reply would have met the stall once in 300: p99 would be 1 ms.
  assert.ok(p50 <= 1.1 && p90 > 150 && p99 > 450, JSON.stringify({ p50, p90, p99 }));
  assert.ok(max >= 499 && max <= 501, `longest ${max}`);
});

test('a sender that is held up itself says so, and charges the wait to the latency', async () => {
  const pauseEnd = (until: number) => (until === 500 ? 700 : until);
  const { late, latency } = await paced(10, 10, { pauseEnd, answerAt: (now) => now });
  assert.deepEqual([late.longestMs, latency.longestMs], [200, 200]);
});

const even = (value: number) => ({ median: value, min: value, max: value });

test('an aim is reached, dreamt of or missed, whichever way is good; what is to be equal is so within its spread', () => {
  const of = (id: string) => AIMS.find((aim) => aim.id === id)!;
  const cases: [id: string, value: number, max: number, stands: string][] = [
    ['list-bare', 1.25, 1.25, 'dreamt of'],
    ['list-bare', 1.1, 1.1, 'reached'],
    ['list-bare', 1.09, 1.3, 'MISSED'],
    ['start', 3, 3.1, 'reached'],
    ['start', 3.01, 3.1, 'MISSED'],
    ['scale-start', 0.4, 0.4, 'dreamt of'],
    ['scale-start', 1.01, 1.01, 'MISSED'],
    ['lab', 0.99, 1.01, 'reached'],
    ['lab', 0.95, 0.97, 'MISSED'],
  ];
  for (const [id, value, max, stands] of cases) {
    assert.equal(standing(of(id), { aim: 'lab', value: { ...even(value), max } }), stands, `${id} ${value}`);
  }
  assert.equal(standing(of('lab'), undefined), 'not measured');
  assert.equal(inUnit(of('scale-start'), 0.4), '+0.40 s');
});

const machine = describeMachine(undefined);
const nothing: Results = { machine, rows: [], ratios: [], figures: [], growth: [], reached: [], notes: [] };

test('the table tells each aim of what ran, the missed one and the one that could not be measured plainly', () => {
  const missing = 'Fastify is not installed';
  const reached: Results['reached'] = [
    { aim: 'list-bare', value: even(0.5) },
    { aim: 'list-fastify', missing },
  ];
  const text = asText({ ...nothing, reached }, false);
  assert.match(text, /bare node:http.+≥ 1\.10.+≥ 1\.25.+0\.50.+MISSED/);
  assert.match(text, /not measured: Fastify is not installed/);
  assert.doesNotMatch(text, /SQLite/);
});

test('the page stands alone, lets nothing through as markup, and has its plots', async (t) => {
  const figures = { firstPerSecond: 100, rarePerSecond: 80, memoryMb: 70, startSeconds: 1 };
  const growth = [1_000, 1_000_000].map((animals) => ({ animals, ...figures }));
  const latency = { p50: 0.1, p90: 0.2, p99: 1, p999: 2, max: 3 };
  const rows = [
    { suite: 'list', subject: 'petstore', how: 'saturated', perSecond: even(1000), latency },
    { suite: 'list', subject: 'petstore', how: 'at a rate', latency },
  ];
  const page = await asPage({ ...nothing, rows, growth, notes: ['<script>alert(1)</script>'] });
  assert.match(page, />1,000</);
  assert.doesNotMatch(page, /<script|<link|src=|url\(|NaN|undefined|Infinity/);
  if (!existsSync(`${FOLDER}node_modules/@observablehq/plot`)) return t.skip('the packages of bench are not installed');
  assert.equal(page.match(/<svg /g)?.length, 5);
  assert.match(page, /var\(--s0\)/);
});
