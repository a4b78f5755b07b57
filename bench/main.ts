/**
 * The benchmarks: `npm run bench -- [SUITE …] [--json [FILE]] [--seconds N] [--rounds N] [--no-peers]`.
 * Every suite proves that the replies are right before it times them. A missed aim is marked, and is no failure.
 */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Bench, type Results } from './bench.ts';
import { wrk } from './load.ts';
import { installPeers } from './peers.ts';
import { asPage } from './report.ts';
import { lab } from './suites/lab.ts';
import { limiter } from './suites/limiter.ts';
import { create, getOne, limit, list } from './suites/requests.ts';
import { scale } from './suites/scale.ts';
import { start } from './suites/start.ts';
import { store } from './suites/store.ts';
import { asText } from './table.ts';

const SUITES = new Map<string, (bench: Bench) => Promise<void>>(
  Object.entries({ list, limit, get: getOne, create, limiter, start, scale, store, lab }),
);
const PAGE = fileURLToPath(new URL('report.html', import.meta.url));
const SECONDS_MAX = 3_600;
const ROUNDS_MAX = 100;

const USAGE = `usage: npm run bench -- [${[...SUITES.keys()].join(' | ')}] [options]

Without a suite: all of them, in about seven minutes. wrk is needed (Debian: apt install wrk; macOS: brew install wrk).

  --seconds N     how long each load lasts, in whole seconds (default 1)
  --rounds N      how often each is measured, in turn (default 4)
  --json [FILE]   the results as JSON, to a file or to standard output
  --report FILE   the page (default bench/report.html)
  --no-peers      without what would have to be installed to measure against`;

class UsageError extends Error {}

function readWish(words: string[]) {
  // --json takes a file or nothing.
  const filled = words.flatMap((word, i) => {
    const alone = word === '--json' && (words[i + 1] === undefined || words[i + 1].startsWith('-'));
    return alone && words[i + 1] !== '-' ? [word, '-'] : [word];
  });
  const options = {
    seconds: { type: 'string', default: '1' },
    rounds: { type: 'string', default: '4' },
    json: { type: 'string' },
    report: { type: 'string', default: PAGE },
    peers: { type: 'boolean', default: true },
  } as const;
  const parse = () => parseArgs({ args: filled, options, allowPositionals: true, allowNegative: true });
  const { values, positionals } = asUsage(parse);
  const unknown = positionals.find((name) => !SUITES.has(name));
  if (unknown !== undefined) throw new UsageError(`there is no suite ${unknown}`);
  const within = (name: 'seconds' | 'rounds', max: number) => {
    const value = Number(values[name]);
    if (Number.isInteger(value) && value >= 1 && value <= max) return value;
    throw new UsageError(`--${name} takes a whole number from 1 to ${max}`);
  };
  const suites = positionals.length > 0 ? positionals : [...SUITES.keys()];
  return { ...values, suites, seconds: within('seconds', SECONDS_MAX), rounds: within('rounds', ROUNDS_MAX) };
}

function asUsage<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

/** One line that is written over, on a terminal only. */
function progress(line: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${line.slice(0, (process.stderr.columns ?? 80) - 1)}`);
}

async function measure(wish: ReturnType<typeof readWish>): Promise<Results> {
  const bench = new Bench({ ...wish, progress });
  const interrupted = (signal: NodeJS.Signals) => {
    progress('');
    bench.end().finally(() => process.exit(signal === 'SIGINT' ? 130 : 143));
  };
  process.once('SIGINT', interrupted).once('SIGTERM', interrupted);
  try {
    await installPeers(bench);
    for (const name of wish.suites) await attempt(bench, name);
  } finally {
    progress('');
    await bench.end();
  }
  return bench.results;
}

/** One that fails does not take the others' results with it. */
async function attempt(bench: Bench, name: string): Promise<void> {
  try {
    await SUITES.get(name)!(bench);
    bench.miss(name, 'left out');
  } catch (error) {
    bench.note(`${name} FAILED: ${(error as Error).message}`);
    bench.miss(name, 'the suite failed');
    process.exitCode = 1;
  }
  await bench.stopAll();
}

async function main(words: string[]): Promise<void> {
  if (words.includes('--help') || words.includes('-h')) return console.log(USAGE);
  const wish = readWish(words);
  if (wrk === undefined) throw new UsageError('wrk is not installed');
  const results = await measure(wish);
  const asJson = `${JSON.stringify(results, null, 2)}\n`;
  if (wish.json === '-') process.stdout.write(asJson);
  else console.log(asText(results, process.stdout.isTTY));
  if (wish.json !== undefined && wish.json !== '-') writeFileSync(wish.json, asJson);
  writeFileSync(wish.report, await asPage(results));
  console.error(`\nthe page: ${path.relative(process.cwd(), wish.report)}`);
}

main(process.argv.slice(2)).catch((error: Error) => {
  const isUsage = error instanceof UsageError;
  console.error(`bench: ${error.message}${isUsage ? `\n\n${USAGE}` : ''}`);
  process.exitCode = isUsage ? 2 : 1;
});
