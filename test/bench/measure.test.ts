import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Latencies, ratios, spread } from '../../bench/measure.ts';

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

test('a spread has the middle of an even number of rounds, and leaves out what is not known', () => {
  assert.deepEqual(spread([4, 1, 3, 2]), { median: 2.5, min: 1, max: 4 });
  assert.deepEqual(spread([5, Number.NaN, 1, 3]), { median: 3, min: 1, max: 5 });
  assert.ok(Number.isNaN(spread([]).median));
});

test('ratios are taken round by round, so that a slow round for both changes nothing', () => {
  assert.deepEqual(ratios([100, 10, 50], [50, 5, 25]), { median: 2, min: 2, max: 2 });
});
