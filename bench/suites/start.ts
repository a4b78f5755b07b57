/** How long from nothing to the first right reply, beside the least that any Node program takes. */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Bench } from '../bench.ts';
import { pinned } from '../machine.ts';
import { ratios, spread } from '../measure.ts';
import { mustAnswer } from '../replies.ts';
import { run } from '../run.ts';
import { startServer } from '../servers.ts';
import { program, SERVICE, Store } from '../service.ts';

const BINARY = fileURLToPath(new URL('../../dist/petstore', import.meta.url));
const CARRIED = `../../dist/.node/node_modules/node-${process.platform}-${process.arch}/bin/node`;
/** The binary is held against its own Node, which starts sooner than older ones. */
const NODE_CARRIED = fileURLToPath(new URL(CARRIED, import.meta.url));
const STARTS_A_ROUND = 3;
const NODE_MAX_MS = 30_000;
const READY = { method: 'GET', path: '/readyz', headers: {}, status: 200 } as const;

export async function start(bench: Bench): Promise<void> {
  const bundled = [process.execPath, await program(bench)];
  const binary = existsSync(BINARY) && existsSync(NODE_CARRIED) ? [BINARY] : undefined;
  const node = binary ? NODE_CARRIED : process.execPath;
  const times = { node: [] as number[], bundled: [] as number[], binary: [] as number[] };
  const starts = STARTS_A_ROUND * bench.rounds;
  for (let i = 0; i < starts; i++) {
    bench.progress(`start: ${i + 1} of ${starts}`);
    times.node.push(await nothingMs(bench, node));
    times.bundled.push(await firstReplyMs(bench, bundled));
    if (binary) times.binary.push(await firstReplyMs(bench, binary));
  }
  bench.figure('start', binary ? 'node -e 0, of the Node that the binary carries' : 'node -e 0', ms(times.node));
  bench.figure('start', `${SERVICE}, one bundled file, to the first 200`, ms(times.bundled));
  if (binary) bench.figure('start', `${SERVICE}, single binary, to the first 200`, ms(times.binary));
  else bench.note('start: dist/petstore is not built, so the bundled file stands in for the single binary.');
  bench.reach('start', ratios(binary ? times.binary : times.bundled, times.node));
}

async function nothingMs(bench: Bench, node: string): Promise<number> {
  const began = performance.now();
  await run(pinned(bench.cores?.server, [node, '-e', '0']), { timeoutMs: NODE_MAX_MS });
  return performance.now() - began;
}

async function firstReplyMs(bench: Bench, command: string[]): Promise<number> {
  const { data } = new Store(bench);
  const began = performance.now();
  const server = await startServer(bench, SERVICE, [...command, 'serve', '--port', '0', '--data', data]);
  await mustAnswer(server.origin, READY);
  const took = performance.now() - began;
  await server.stop();
  return took;
}

function ms(values: number[]): string {
  const { median, min, max } = spread(values);
  return `${median.toFixed(0)} ms (${min.toFixed(0)} to ${max.toFixed(0)})`;
}
