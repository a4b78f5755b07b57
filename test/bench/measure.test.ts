import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Histogram, ratios, spread } from '../../bench/measure.ts';

test('a percentile is at least the true one, and at most 1/64 above it', () => {
  const latencies = fc.array(fc.integer({ min: 0, max: 60_000_000 }), { minLength: 1, maxLength: 400 });
  fc.assert(
    fc.property(latencies, fc.constantFrom(0.5, 0.9, 0.99, 0.999), (microseconds, share) => {
      const histogram = new Histogram();
      for (const one of microseconds) histogram.record(one / 1000);
      const sorted = microseconds.toSorted((a, b) => a - b);
      const exact = sorted[Math.ceil(share * sorted.length) - 1] / 1000;
      const found = histogram.percentile(share);
      assert.ok(found >= exact && found <= exact * (1 + 1 / 64) + 0.001, `${found} for ${exact}`);
    }),
  );
});

test('a summary knows the longest exactly, and an empty histogram knows nothing', () => {
  const histogram = new Histogram();
  assert.ok(Number.isNaN(histogram.percentile(0.5)));
  for (let ms = 1; ms <= 1000; ms++) histogram.record(ms);
  const { p50, p99, p999, max } = histogram.summary();
  assert.equal(Math.round(p50 / 10), 50);
  assert.equal(Math.round(p99 / 10), 99);
  assert.ok(p999 >= 999 && p999 <= 1000);
  assert.equal(max, 1000);
});

test('a spread has the middle of an even number of rounds, and leaves out the rounds that were sat out', () => {
  assert.deepEqual(spread([4, 1, 3, 2]), { median: 2.5, min: 1, max: 4 });
  assert.deepEqual(spread([5, Number.NaN, 1, 3]), { median: 3, min: 1, max: 5 });
  assert.ok(Number.isNaN(spread([]).median));
});

test('ratios are taken round by round, so that a slow round for both changes nothing', () => {
  assert.deepEqual(ratios([100, 10, 50], [50, 5, 25]), { median: 2, min: 2, max: 2 });
});
