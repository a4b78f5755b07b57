/**
 * rate-limiter-flexible by itself: two of its RateLimiterMemory in a RateLimiterUnion, as its documentation says to
 * combine them, and the time handed in: `Date.now` stands still. `node limiter.mjs KEYS ROUNDS` prints the takes a second
 * of each round as JSON.
 *
 * Left out: strikes and bans.
 */
import { RateLimiterMemory, RateLimiterUnion } from 'rate-limiter-flexible';

const [KEYS, ROUNDS] = process.argv.slice(2).map(Number);
const ROUND_MS = 500;

const began = Date.now();
Date.now = () => began;

const minute = new RateLimiterMemory({ keyPrefix: 'minute', points: 1_000_000_000, duration: 60 });
const day = new RateLimiterMemory({ keyPrefix: 'day', points: 1_000_000_000, duration: 86_400 });
const limiter = new RateLimiterUnion(minute, day);
const ids = Array.from({ length: KEYS }, (_, i) => `k${i}`);
for (const id of ids) await limiter.consume(id);

let state = 0x9e3779b9;
function randomId() {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return ids[Math.floor((state / 2 ** 32) * KEYS)];
}

const rounds = [];
while (rounds.length < ROUNDS) {
  let takes = 0;
  const start = performance.now();
  for (; performance.now() - start < ROUND_MS; takes += 64) {
    for (let n = 0; n < 64; n++) await limiter.consume(randomId());
  }
  rounds.push(takes / ((performance.now() - start) / 1_000));
}
console.log(JSON.stringify(rounds));
process.exit(0); // its timers would keep the process for a day
