/** How soon the single file serves, beside the least that its own Node takes. To be run with nothing beside it. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { serveProgram, temporary } from './program.ts';

const BUILT = fileURLToPath(new URL('../dist/petstore', import.meta.url));
const CARRIED = `../dist/.node/node_modules/node-${process.platform}-${process.arch}/bin/node`;
const NODE = fileURLToPath(new URL(CARRIED, import.meta.url));
const TURNS = 40;
const RATIO_MAX = 3;
const skip = existsSync(BUILT) && existsSync(NODE) ? false : 'there is no dist/petstore; npm run build makes it';

async function nothingMs(): Promise<number> {
  const began = performance.now();
  await once(spawn(NODE, ['-e', '0'], { stdio: 'ignore' }), 'exit');
  return performance.now() - began;
}

async function firstReplyMs(data: string): Promise<number> {
  const began = performance.now();
  const server = await serveProgram(['--data', data]);
  const [reply] = await once(http.get(new URL('/readyz', server.url), { agent: false }), 'response');
  const ms = performance.now() - began;
  await server.kill();
  assert.equal(reply.statusCode, 200);
  return ms;
}

test(`the binary answers its first request within ${RATIO_MAX} times the time of node -e 0`, { skip }, async (t) => {
  process.env.TEST_PROGRAM = BUILT;
  const home = await temporary(t);
  const [empty, first]: number[][] = [[], []];
  // What disturbs only ever adds: the best of many turns, taken in turn, is nearest to what the programs need.
  for (let turn = 0; turn < TURNS; turn++) {
    empty.push(await nothingMs());
    first.push(await firstReplyMs(path.join(home, String(turn))));
  }
  const [least, most] = [Math.min(...empty), Math.min(...first)];
  const found = `${most.toFixed(1)} ms; node -e 0: ${least.toFixed(1)} ms; ratio ${(most / least).toFixed(2)}`;
  t.diagnostic(found);
  assert.ok(most <= RATIO_MAX * least, found);
});
