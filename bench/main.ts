/**
 * The benchmarks: `npm run bench -- [SUITE …] [--json [FILE]] [--seconds N] [--rounds N] [--no-peers]`.
 * Every suite proves that the replies are right before it times them. A missed aim is marked, and is no failure.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Bench } from './bench.ts';
import { installPeers } from './peers.ts';
import { asPage } from './report.ts';
import type { Results } from './results.ts';
import { create } from './suites/create.ts';
import { getOne } from './suites/get.ts';
import { json } from './suites/json.ts';
import { limit } from './suites/limit.ts';
import { limiter } from './suites/limiter.ts';
import { list } from './suites/list.ts';
import { mixed } from './suites/mixed.ts';
import { scale } from './suites/scale.ts';
import { SOAK_SECONDS, soak } from './suites/soak.ts';
import { start } from './suites/start.ts';
import { asText } from './table.ts';

const SUITES = new Map<string, (bench: Bench) => Promise<void>>([
  ['list', list],
  ['limit', limit],
  ['get', getOne],
  ['create', create],
  ['mixed', mixed],
  ['limiter', limiter],
  ['json', json],
  ['start', start],
  ['scale', scale],
  ['soak', soak],
]);
/** Ten minutes: only on request. */
const ONLY_ON_REQUEST = 'soak';
const PAGE = fileURLToPath(new URL('report.html', import.meta.url));
const DEFAULT_SECONDS = 1;
const DEFAULT_ROUNDS = 3;
const SECONDS_MAX = 3_600;
const ROUNDS_MAX = 100;

const USAGE = `usage: npm run bench -- [${[...SUITES.keys()].join(' | ')}] [options]

Without a suite: all of them but ${ONLY_ON_REQUEST}, in about four minutes.

  --seconds N     how long each load lasts, whole seconds for wrk (default ${DEFAULT_SECONDS}; soak: ${SOAK_SECONDS} in all)
  --rounds N      how often each is measured, in turn (default ${DEFAULT_ROUNDS})
  --json [FILE]   the results as JSON, to a file or to standard output
  --report FILE   the page (default bench/report.html)
  --no-peers      measure against bare node:http only`;

class UsageError extends Error {}

interface Wish {
  suites: string[];
  seconds: number;
  soakSeconds: number;
  rounds: number;
  peers: boolean;
  json?: string;
  report: string;
}

function readWish(words: string[]): Wish {
  // --json takes a file or nothing.
  const filled = words.flatMap((word, i) => {
    const alone = word === '--json' && (words[i + 1] === undefined || words[i + 1].startsWith('-'));
    return alone && words[i + 1] !== '-' ? [word, '-'] : [word];
  });
  const options = {
    seconds: { type: 'string' },
    rounds: { type: 'string' },
    json: { type: 'string' },
    report: { type: 'string', default: PAGE },
    peers: { type: 'boolean', default: true },
  } as const;
  const { values, positionals } = parse(() =>
    parseArgs({ args: filled, options, allowPositionals: true, allowNegative: true }),
  );
  const unknown = positionals.find((name) => !SUITES.has(name));
  if (unknown !== undefined) throw new UsageError(`there is no suite ${unknown}`);
  const suites = positionals.length > 0 ? positionals : [...SUITES.keys()].filter((name) => name !== ONLY_ON_REQUEST);
  return {
    suites,
    seconds: within('--seconds', values.seconds, DEFAULT_SECONDS, SECONDS_MAX),
    soakSeconds: within('--seconds', values.seconds, SOAK_SECONDS, SECONDS_MAX),
    rounds: Math.ceil(within('--rounds', values.rounds, DEFAULT_ROUNDS, ROUNDS_MAX)),
    peers: values.peers,
    json: values.json,
    report: values.report,
  };
}

function parse<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

function within(name: string, text: string | undefined, otherwise: number, max: number): number {
  if (text === undefined) return otherwise;
  const value = Number(text);
  if (!(value > 0 && value <= max)) throw new UsageError(`${name} takes a number above 0, up to ${max}`);
  return value;
}

/** One line that is written over, on a terminal only. */
function progress(line: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${line.slice(0, (process.stderr.columns ?? 80) - 1)}`);
}

async function measure(wish: Wish): Promise<Results> {
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
  } catch (error) {
    bench.fail(name, (error as Error).message);
    process.exitCode = 1;
  }
  await bench.stopAll();
}

function write(file: string, text: string): void {
  mkdirSync(path.dirname(path.resolve(file)), { recursive: true });
  writeFileSync(file, text);
}

async function main(words: string[]): Promise<void> {
  if (words.includes('--help') || words.includes('-h')) return console.log(USAGE);
  const wish = readWish(words);
  const results = await measure(wish);
  const text = asText(results, wish.json !== '-' && process.stdout.isTTY);
  const asJson = `${JSON.stringify(results, null, 2)}\n`;
  if (wish.json === '-') process.stdout.write(asJson);
  else console.log(text);
  if (wish.json !== undefined && wish.json !== '-') write(wish.json, asJson);
  write(wish.report, asPage(results));
  console.error(`\nthe page: ${path.relative(process.cwd(), wish.report) || wish.report}`);
}

main(process.argv.slice(2)).catch((error: Error) => {
  if (error instanceof UsageError) console.error(`bench: ${error.message}\n\n${USAGE}`);
  else console.error(`bench: ${error.message}`);
  process.exitCode = error instanceof UsageError ? 2 : 1;
});
