/** `npm run bench`: reads what is wanted, measures it, prints it. Replies are proved right before they are timed. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Bench } from './bench.ts';
import { asPage } from './page.ts';
import { measurePaths, measureReplica } from './paths.ts';
import { ANCHORS, installPeers } from './peers.ts';
import type { Part, Results } from './results.ts';
import { measureScale } from './scale.ts';
import { serveForOthers } from './serve.ts';
import { asText } from './text.ts';

const PATHS: Part[] = ['list', 'get', 'limit', 'create'];
const PARTS: Part[] = [...PATHS, 'scale', 'store'];
const SERVE = 'serve';
const PAGE = fileURLToPath(new URL('report.html', import.meta.url));

const USAGE = `usage: npm run bench -- [${PARTS.join(' | ')}] [options]
       npm run bench -- ${SERVE}

Without a part: ${PATHS.join(', ')}, in less than two minutes. A part by itself is measured with more connections, too.
${SERVE} runs the service with 100,000 animals and a key without limits, for load generators of your own.

  --peers         also Fastify, Hono, Express, json-server, SQLite (installed into bench/, once), and Go's net/http
                  where Go is installed
  --scale         also a million animals: speed, start, memory, compaction; and the start of the binary
  --store URL     also the list through one of two replicas on this PostgreSQL database, which must be empty
  --rounds N      how often each server is loaded, in turn (default 9)
  --seconds N     how long each time (default 0.4)
  --json          the results as JSON
  --report FILE   the page (default bench/report.html)`;

class UsageError extends Error {}

type Wish = ReturnType<typeof readWish>;

function readWish(args: string[]) {
  const no = { type: 'boolean', default: false } as const;
  const options = {
    ...{ peers: no, scale: no, json: no },
    store: { type: 'string' },
    rounds: { type: 'string', default: '9' },
    seconds: { type: 'string', default: '0.4' },
    report: { type: 'string', default: PAGE },
  } as const;
  const { values, positionals } = parseArgs({ args, options, allowPositionals: true });
  const isServe = positionals.length === 1 && positionals[0] === SERVE;
  const named = isServe ? [] : (positionals as Part[]);
  const unknown = named.find((word) => !PARTS.includes(word));
  if (unknown !== undefined) throw new UsageError(`there is no part ${unknown}`);
  const parts = new Set(named.length > 0 ? named : PATHS);
  if (values.scale) parts.add('scale');
  if (values.store !== undefined) parts.add('store');
  if (parts.has('store') && values.store === undefined) throw new UsageError('store needs --store postgres://…');
  const [rounds, seconds] = [Number(values.rounds), Number(values.seconds)];
  if (!Number.isInteger(rounds) || rounds < 2 || rounds > 100) throw new UsageError('--rounds is 2 to 100');
  if (!(seconds >= 0.1 && seconds <= 600)) throw new UsageError('--seconds is 0.1 to 600');
  return { ...values, isServe, parts: [...parts], rounds, seconds, thorough: named.length > 0 };
}

function measurePart(bench: Bench, part: Part, { store = '' }: Wish): Promise<void> {
  if (part === 'scale') return measureScale(bench);
  if (part === 'store') return measureReplica(bench, store);
  return measurePaths(bench, part);
}

async function measure(bench: Bench, wish: Wish): Promise<Results> {
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
  if (wish.peers) bench.note(ANCHORS);
  return bench.results;
}

async function main(args: string[]): Promise<void> {
  if (args.includes('--help') || args.includes('-h')) return console.log(USAGE);
  const wish = readWish(args);
  const bench = new Bench(wish);
  // A second signal does nothing: at ^C under npm there are two, that of the terminal and npm's.
  const signal = new Promise<string>((resolve) => process.on('SIGINT', resolve).on('SIGTERM', resolve));
  try {
    if (wish.isServe) return await serveForOthers(bench, signal);
    void signal.then((name) => bench.end().finally(() => process.exit(name === 'SIGINT' ? 130 : 143)));
    console.error(`measuring ${wish.parts.join(', ')}: each server in turn with what it is compared with`);
    const results = await measure(bench, wish);
    console.log(wish.json ? JSON.stringify(results, null, 2) : asText(results));
    writeFileSync(wish.report, asPage(results));
    console.error(`\nwith plots: ${path.relative(process.cwd(), wish.report)}`);
  } finally {
    await bench.end();
  }
}

main(process.argv.slice(2)).catch((error: NodeJS.ErrnoException) => {
  const isUsage = error instanceof UsageError || error.code?.startsWith('ERR_PARSE_ARGS');
  console.error(`bench: ${error.message}${isUsage ? `\n\n${USAGE}` : ''}`);
  process.exitCode = isUsage ? 2 : 1;
});
