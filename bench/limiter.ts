/** The limiter by itself beside rate-limiter-flexible: both find a million keys by their id; the time is handed in. */
import { type Account, newAccount, take } from '../src/access/limiter.ts';
import type { Bench } from './bench.ts';
import { randomIntegers, ratios, spread } from './numbers.ts';
import { isInstalled, LIBRARY, peerCommand } from './peers.ts';
import { run } from './processes.ts';

const KEYS = 1_000_000;
const ROUND_MS = 500;
const LIBRARY_MAX_MS = 300_000;
const LIMITS = { perMinute: 1_000_000_000, perDay: 1_000_000_000 };

export async function compareLimiters(bench: Bench): Promise<void> {
  if (!isInstalled(LIBRARY)) return bench.note(`limiter is left out: ${LIBRARY.name} is not installed in bench/.`);
  const { rounds } = bench.settings;
  bench.progress('limiter: a million keys');
  const own = takesPerSecond(rounds);
  bench.progress(`limiter: ${LIBRARY.name}, a million keys`);
  const printed = await run([...peerCommand(LIBRARY), String(KEYS), String(rounds)], LIBRARY_MAX_MS);
  const library: number[] = JSON.parse(printed);
  const path = 'limiter, a million keys';
  bench.figure(path, '', spread(own), 'takes/s');
  bench.figure(`${path}: ${LIBRARY.name}`, '', spread(library), 'takes/s');
  bench.figure(path, LIBRARY.name, ratios(own, library), '×');
}

/** Two windows each, at random among all keys, of which each has open windows. */
function takesPerSecond(rounds: number): number[] {
  const at = Date.now();
  const accounts: Account[] = []; // by id, as in the service
  for (let id = 0; id < KEYS; id++) {
    accounts.push(newAccount());
    take(accounts[id], LIMITS, at);
  }
  const random = randomIntegers(KEYS);
  return Array.from({ length: rounds }, () => {
    let [takes, admitted] = [0, 0];
    const began = performance.now();
    for (; performance.now() - began < ROUND_MS; takes += 1_024) {
      for (let n = 0; n < 1_024; n++) {
        if (take(accounts[random()], LIMITS, at).verdict === 'admitted') admitted++;
      }
    }
    const seconds = (performance.now() - began) / 1_000;
    if (admitted !== takes) throw new Error(`limiter: ${admitted} of ${takes} takes were admitted`);
    return takes / seconds;
  });
}
