/** How long from nothing to the first right reply, beside the least that any Node program takes. */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { mustAnswer } from '../ask.ts';
import type { Bench } from '../bench.ts';
import { pinned } from '../machine.ts';
import { ratios, spread } from '../measure.ts';
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
  const isBuilt = existsSync(BINARY) && existsSync(NODE_CARRIED);
  if (!isBuilt) bench.note('start: dist/petstore is not built, so the bundled file stands in for the single binary.');
  const node = isBuilt ? NODE_CARRIED : process.execPath;
  const command = isBuilt ? [BINARY] : [process.execPath, await program(bench)];
  const [nothing, service]: number[][] = [[], []];
  const starts = STARTS_A_ROUND * bench.rounds;
  for (let i = 0; i < starts; i++) {
    bench.progress(`start: ${i + 1} of ${starts}`);
    nothing.push(await msOf(() => run(pinned(bench.cores?.server, [node, '-e', '0']), { timeoutMs: NODE_MAX_MS })));
    const { data } = new Store(bench);
    const words = [...command, 'serve', '--port', '0', '--data', data];
    service.push(
      await msOf(async () => {
        const { origin } = await startServer(bench, SERVICE, words);
        await mustAnswer(origin, READY);
      }),
    );
    await bench.stopAll();
  }
  bench.figure('start', 'node -e 0', told(nothing));
  bench.figure('start', `${isBuilt ? 'single binary' : 'one bundled file'} to the first 200`, told(service));
  bench.reach('start', ratios(service, nothing));
}

async function msOf(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

function told(values: number[]): string {
  const { median, min, max } = spread(values);
  return `${median.toFixed(0)} ms (${min.toFixed(0)} to ${max.toFixed(0)})`;
}
