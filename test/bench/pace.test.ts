import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Histogram } from '../../bench/measure.ts';
import { sendAtPace } from '../../bench/pace.ts';

/** Time that passes only when somebody waits. */
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
function stallingServer(time: Time): (answered: () => void) => void {
  let free = 0;
  return (answered) => {
    free = Math.max(free, time.now) + 1;
    if (free > 1000 && free < 1500) free = 1500;
    time.at(free, answered);
  };
}

async function pacedLoad(perSecond: number, requests: number) {
  const time = new Time();
  const serve = stallingServer(time);
  const latency = new Histogram();
  const late = new Histogram();
  const sentAt: number[] = [];
  await sendAtPace({
    perSecond,
    requests,
    now: () => time.now,
    pause: (until) => time.until(until),
    send: (_index, answered) => {
      sentAt.push(time.now);
      serve(answered);
    },
    latency,
    late,
  });
  await time.until(60_000);
  return { latency, late, sentAt };
}

test('a stalled server does not slow the sender down', async () => {
  const { sentAt, late } = await pacedLoad(100, 300);
  assert.equal(sentAt.length, 300);
  assert.deepEqual(sentAt.slice(99, 103), [990, 1000, 1010, 1020]);
  assert.equal(late.maxMs, 0);
});

test('all that fell due during a stall count from when they were due, and show in p99', async () => {
  const { latency } = await pacedLoad(100, 300);
  assert.equal(latency.count, 300);
  const { p50, p90, p99, max } = latency.summary();
  // A sender that waits for its reply would have met the stall once in 300: p99 would be 1 ms.
  assert.ok(p50 <= 1.1, `p50 ${p50}`);
  assert.ok(p90 > 150, `p90 ${p90}`);
  assert.ok(p99 > 450, `p99 ${p99}`);
  assert.ok(max >= 499 && max <= 501, `longest ${max}`);
});

test('a sender that is held up itself says so, and charges the wait to the latency', async () => {
  const time = new Time();
  const [latency, late] = [new Histogram(), new Histogram()];
  const pause = (until: number) => time.until(until === 500 ? 700 : until);
  const send = (_index: number, answered: () => void) => time.at(time.now, answered);
  await sendAtPace({ perSecond: 10, requests: 10, now: () => time.now, pause, send, latency, late });
  await time.until(2_000);
  assert.equal(late.maxMs, 200);
  assert.equal(latency.maxMs, 200);
});
