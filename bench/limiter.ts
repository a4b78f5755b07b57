/** The limiter by itself beside rate-limiter-flexible: both find a million keys by their id; the time is handed in. */
import type { Bench } from './bench.ts';
import { ratios, spread } from './numbers.ts';
import { isInstalled, LIBRARY, peerCommand } from './peers.ts';
import { run } from './processes.ts';

const KEYS = 1_000_000;
const ROUND_MS = 500;
const LIBRARY_MAX_MS = 300_000;
const LIMITS = { perMinute: 1_000_000_000, perDay: 1_000_000_000 };
const MODULE = new URL('../src/access/limiter.ts', import.meta.url);

/** What is needed of the service's limiter: a pure function on the account of one caller. */
interface Limits<Account> {
  newAccount(): Account;
  take(account: Account, limits: typeof LIMITS, at: number): { verdict: string };
}

export async function compareLimiters(bench: Bench): Promise<void> {
  const limiter: Partial<Limits<object>> = await import(MODULE.href);
  if (typeof limiter.take !== 'function' || typeof limiter.newAccount !== 'function') {
    return bench.note('limiter is left out: src/access/limiter.ts has no function take.');
  }
  if (!isInstalled(LIBRARY)) return bench.note(`limiter is left out: ${LIBRARY.name} is not installed in bench/.`);
  bench.progress('limiter: a million keys');
  const own = takesPerSecond(limiter as Limits<object>, bench.settings.rounds);
  bench.progress(`limiter: ${LIBRARY.name}, a million keys`);
  const printed = await run([...peerCommand(LIBRARY), String(KEYS), String(bench.settings.rounds)], LIBRARY_MAX_MS);
  const library: number[] = JSON.parse(printed);
  const path = 'limiter, a million keys';
  bench.results.figures.push(
    { part: 'limiter', path: `${path}: takes a second`, value: spread(own), unit: '' },
    { part: 'limiter', path: `${path}: ${LIBRARY.name}`, value: spread(library), unit: '' },
    { part: 'limiter', path, against: LIBRARY.name, value: ratios(own, library), unit: '×' },
  );
}

/** Two windows each, at random among all keys, of which each has open windows. */
function takesPerSecond<Account>({ newAccount, take }: Limits<Account>, rounds: number): number[] {
  const at = Date.now();
  const accounts = new Map<string, Account>();
  const ids = Array.from({ length: KEYS }, (_, i) => `k${i}`);
  for (const id of ids) {
    accounts.set(id, newAccount());
    take(accounts.get(id)!, LIMITS, at);
  }
  const random = randomKeys();
  return Array.from({ length: rounds }, () => {
    let [takes, admitted] = [0, 0];
    const began = performance.now();
    for (; performance.now() - began < ROUND_MS; takes += 1_024) {
      for (let n = 0; n < 1_024; n++) {
        if (take(accounts.get(ids[random()])!, LIMITS, at).verdict === 'admitted') admitted++;
      }
    }
    const seconds = (performance.now() - began) / 1_000;
    if (admitted !== takes) throw new Error(`limiter: ${admitted} of ${takes} takes were admitted`);
    return takes / seconds;
  });
}

function randomKeys(): () => number {
  let state = 0x9e3779b9;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * KEYS);
  };
}
