/** `npm run bench`: reads what is wanted, measures it, prints it. Replies are proved right before they are timed. */
import { parseArgs } from 'node:util';
import { Bench } from './bench.ts';
import { measurePaths, PARTS } from './paths.ts';
import { installPeers } from './peers.ts';
import { measureScale } from './scale.ts';
import { serveForOthers } from './serve.ts';
import { asText } from './text.ts';

const SERVE = 'serve';

const USAGE = `usage: npm run bench -- [${PARTS.join(' | ')}] [options]
       npm run bench -- ${SERVE}

Without a part: all, in some two minutes. A part by itself is measured with more connections, too.
${SERVE} runs the service with 100,000 animals and a key without limits, for load generators of your own.

  --peers      also Fastify, Express, json-server and rate-limiter-flexible (installed into bench/, once), and SQLite
               where Node has it
  --scale      also a million animals: speed, start, memory
  --rounds N   how often each server is loaded, in turn (default 9)
  --json       the results as JSON`;

class UsageError extends Error {}

type Wish = ReturnType<typeof readWish>;

function readWish(args: string[]) {
  const no = { type: 'boolean', default: false } as const;
  const options = {
    ...{ peers: no, scale: no, json: no, help: { ...no, short: 'h' } },
    rounds: { type: 'string', default: '9' },
  } as const;
  const { values, positionals: named } = parseArgs({ args, options, allowPositionals: true });
  const isServe = named.length === 1 && named[0] === SERVE;
  const unknown = named.find((word) => !isServe && !PARTS.includes(word));
  if (unknown !== undefined) throw new UsageError(`there is no part ${unknown}`);
  const rounds = Number(values.rounds);
  if (!Number.isInteger(rounds) || rounds < 2 || rounds > 100) throw new UsageError('--rounds is 2 to 100');
  return { ...values, isServe, parts: named.length > 0 ? named : PARTS, rounds, thorough: named.length > 0 };
}

async function measure(bench: Bench, { parts, peers, scale }: Wish): Promise<void> {
  if (peers) await installPeers();
  for (const part of new Set(parts)) await measurePaths(bench, part);
  if (scale) await measureScale(bench);
}

async function main(args: string[]): Promise<void> {
  const wish = readWish(args);
  if (wish.help) return console.log(USAGE);
  const bench = new Bench(wish);
  // A second signal does nothing: at ^C under npm there are two, that of the terminal and npm's.
  const signal = new Promise<string>((resolve) => process.on('SIGINT', resolve).on('SIGTERM', resolve));
  try {
    if (wish.isServe) return await serveForOthers(bench, signal);
    void signal.then((name) => bench.end().finally(() => process.exit(name === 'SIGINT' ? 130 : 143)));
    console.error('measuring each server in turn with what it is compared with');
    await measure(bench, wish);
  } finally {
    await bench.end();
  }
  console.log(wish.json ? JSON.stringify(bench.results, null, 2) : asText(bench.results));
}

main(process.argv.slice(2)).catch((error: Error & { code?: unknown }) => {
  const isUsage = error instanceof UsageError || String(error.code).startsWith('ERR_PARSE_ARGS');
  console.error(`bench: ${error.message}${isUsage ? `\n\n${USAGE}` : ''}`);
  process.exitCode = isUsage ? 2 : 1;
});
