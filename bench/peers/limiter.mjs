/**
 * rate-limiter-flexible by itself: two of its RateLimiterMemory in a RateLimiterUnion, as its documentation says to
 * combine them, and the time handed in: `Date.now` stands still. `node limiter.mjs KEYS` prints what it found as JSON.
 */
import { RateLimiterMemory, RateLimiterUnion } from 'rate-limiter-flexible';

const KEYS = Number(process.argv[2]);
const ROUNDS = 3;
const ROUND_MS = 500;

const memory = () => {
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
};
const began = Date.now();
Date.now = () => began;

const minute = new RateLimiterMemory({ keyPrefix: 'minute', points: 1_000_000_000, duration: 60 });
const day = new RateLimiterMemory({ keyPrefix: 'day', points: 1_000_000_000, duration: 86_400 });
const limiter = new RateLimiterUnion(minute, day);
const before = memory();
for (let key = 0; key < KEYS; key++) await limiter.consume(`k${key}`);
const bytesPerKey = (memory() - before) / KEYS;

let state = 0x9e3779b9;
function randomKey() {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return Math.floor((state / 2 ** 32) * KEYS);
}

let perSecond = 0;
for (let round = 0; round < ROUNDS; round++) {
  let takes = 0;
  const start = performance.now();
  for (; performance.now() - start < ROUND_MS; takes += 64) {
    for (let n = 0; n < 64; n++) await limiter.consume(`k${randomKey()}`);
  }
  perSecond = Math.max(perSecond, takes / ((performance.now() - start) / 1_000));
}
console.log(JSON.stringify({ perSecond, bytesPerKey }));
process.exit(0); // its timers would keep the process for a day
