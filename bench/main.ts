/** `npm run bench`: reads what is wanted, measures it, prints it. Replies are proved right before they are timed. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Bench } from './bench.ts';
import { compareLimiters } from './limiter.ts';
import { asPage } from './page.ts';
import { measurePaths } from './paths.ts';
import { installPeers } from './peers.ts';
import type { Part, Results } from './results.ts';
import { measureScale } from './scale.ts';
import { measureStore } from './store.ts';
import { asText } from './text.ts';
import { checkWithWrk } from './wrk.ts';

const PATHS: Part[] = ['list', 'get', 'limit', 'create'];
const PARTS: Part[] = [...PATHS, 'limiter', 'scale', 'store', 'wrk'];
const PAGE = fileURLToPath(new URL('report.html', import.meta.url));

const USAGE = `usage: npm run bench -- [${PARTS.join(' | ')}] [options]

Without a part: ${PATHS.join(', ')}, in a minute and a half. A part by itself is measured with more connections, too.

  --peers         also Fastify, Express, json-server, SQLite, rate-limiter-flexible: installed into bench/ once
  --scale         also a million animals: speed, start, memory, compaction; and the start of the binary
  --store URL     also the list through two replicas on this PostgreSQL database, which must be empty
  --wrk           also the load generator beside wrk
  --rounds N      how often each server is loaded, in turn (default 6)
  --seconds N     how long each time (default 0.4)
  --details       everything that was measured, in place of the summary
  --json          the results as JSON
  --report FILE   the page (default bench/report.html)`;

class UsageError extends Error {}

type Wish = ReturnType<typeof readWish>;

function readWish(args: string[]) {
  const no = { type: 'boolean', default: false } as const;
  const options = {
    ...{ peers: no, scale: no, wrk: no, details: no, json: no },
    store: { type: 'string' },
    rounds: { type: 'string', default: '6' },
    seconds: { type: 'string', default: '0.4' },
    report: { type: 'string', default: PAGE },
  } as const;
  const { values, positionals } = parseArgs({ args, options, allowPositionals: true });
  const named = positionals as Part[];
  const unknown = named.find((word) => !PARTS.includes(word));
  if (unknown !== undefined) throw new UsageError(`there is no part ${unknown}`);
  const parts = new Set(named.length > 0 ? named : PATHS);
  if (values.peers && named.length === 0) parts.add('limiter');
  if (values.scale) parts.add('scale');
  if (values.store !== undefined) parts.add('store');
  if (values.wrk) parts.add('wrk');
  if (parts.has('store') && values.store === undefined) throw new UsageError('store needs --store postgres://…');
  const [rounds, seconds] = [Number(values.rounds), Number(values.seconds)];
  if (!Number.isInteger(rounds) || rounds < 2 || rounds > 100) throw new UsageError('--rounds is 2 to 100');
  if (!(seconds >= 0.1 && seconds <= 600)) throw new UsageError('--seconds is 0.1 to 600');
  const peers = values.peers || named.includes('limiter');
  return { ...values, parts: [...parts], rounds, seconds, peers, thorough: named.length > 0 };
}

function measurePart(bench: Bench, part: Part, { store = '' }: Wish): Promise<void> {
  if (part === 'limiter') return compareLimiters(bench);
  if (part === 'scale') return measureScale(bench);
  if (part === 'store') return measureStore(bench, store);
  if (part === 'wrk') return checkWithWrk(bench);
  return measurePaths(bench, part);
}

async function measure(wish: Wish): Promise<Results> {
  const bench = new Bench(wish);
  const interrupted = (signal: NodeJS.Signals) => {
    bench.end().finally(() => process.exit(signal === 'SIGINT' ? 130 : 143));
  };
  process.once('SIGINT', interrupted).once('SIGTERM', interrupted);
  try {
    if (wish.peers) await installPeers(bench);
    for (const part of wish.parts) {
      try {
        await measurePart(bench, part, wish);
      } catch (error) {
        // The results of the other parts are still worth having.
        bench.note(`${part} FAILED: ${(error as Error).message}`);
        process.exitCode = 1;
      }
      await bench.stopServers();
    }
  } finally {
    await bench.end();
  }
  return bench.results;
}

async function main(args: string[]): Promise<void> {
  if (args.includes('--help') || args.includes('-h')) return console.log(USAGE);
  const wish = readWish(args);
  console.error(`measuring ${wish.parts.join(', ')}: each server in turn with what it is compared with`);
  const results = await measure(wish);
  if (wish.json) console.log(JSON.stringify(results, null, 2));
  else console.log(asText(results, wish.details));
  writeFileSync(wish.report, asPage(results));
  const more = wish.json || wish.details ? '' : '; --details prints everything that was measured';
  console.error(`\nwith plots: ${path.relative(process.cwd(), wish.report)}${more}`);
}

main(process.argv.slice(2)).catch((error: NodeJS.ErrnoException) => {
  const isUsage = error instanceof UsageError || error.code?.startsWith('ERR_PARSE_ARGS');
  console.error(`bench: ${error.message}${isUsage ? `\n\n${USAGE}` : ''}`);
  process.exitCode = isUsage ? 2 : 1;
});
