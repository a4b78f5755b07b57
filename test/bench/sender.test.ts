/** The load at a fixed rate, on time that passes only when somebody waits. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Latencies } from '../../bench/measure.ts';
import { sendAtPace } from '../../bench/sender.ts';

class Time {
  now = 0;
  #waiting: { at: number; run: () => void }[] = [];

  at(at: number, run: () => void): void {
    this.#waiting.push({ at, run });
  }

  async until(then: number): Promise<void> {
    for (;;) {
      this.#waiting.sort((a, b) => a.at - b.at);
      if (this.#waiting.length === 0 || this.#waiting[0].at > then) break;
      const { at, run } = this.#waiting.shift()!;
      this.now = Math.max(this.now, at);
      run();
    }
    this.now = Math.max(this.now, then);
  }
}

/** Answers one after the other, 1 ms each, and does nothing at all between 1,000 and 1,500 ms. */
async function stalledLoad() {
  const time = new Time();
  const [latency, late] = [new Latencies(), new Latencies()];
  const sentAt: number[] = [];
  let free = 0;
  const send = (_index: number, answered: () => void) => {
    sentAt.push(time.now);
    free = Math.max(free, time.now) + 1;
    if (free > 1000 && free < 1500) free = 1500;
    time.at(free, answered);
  };
  const pause = (until: number) => time.until(until);
  await sendAtPace({ perSecond: 100, requests: 300, now: () => time.now, pause, send, latency, late });
  await time.until(60_000);
  return { latency, late, sentAt };
}

test('a stalled server does not slow the sender down, and all that fell due meanwhile counts from then', async () => {
  const { sentAt, late, latency } = await stalledLoad();
  assert.equal(sentAt.length, 300);
  assert.deepEqual(sentAt.slice(99, 103), [990, 1000, 1010, 1020]);
  assert.equal(late.longestMs, 0);
  const { p50, p90, p99, max } = latency.summary();
  // A sender that waits for its reply would have met the stall once in 300: p99 would be 1 ms.
  assert.ok(p50 <= 1.1 && p90 > 150 && p99 > 450, JSON.stringify({ p50, p90, p99 }));
  assert.ok(max >= 499 && max <= 501, `longest ${max}`);
});

test('a sender that is held up itself says so, and charges the wait to the latency', async () => {
  const time = new Time();
  const [latency, late] = [new Latencies(), new Latencies()];
  const pause = (until: number) => time.until(until === 500 ? 700 : until);
  const send = (_index: number, answered: () => void) => time.at(time.now, answered);
  await sendAtPace({ perSecond: 10, requests: 10, now: () => time.now, pause, send, latency, late });
  await time.until(2_000);
  assert.deepEqual([late.longestMs, latency.longestMs], [200, 200]);
});
