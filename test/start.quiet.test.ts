/** How soon the single file serves, beside the least that its own Node takes. To be run with nothing beside it. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const BUILT = fileURLToPath(new URL('../dist/petstore', import.meta.url));
const CARRIED = `../dist/.node/node_modules/node-${process.platform}-${process.arch}/bin/node`;
const NODE = fileURLToPath(new URL(CARRIED, import.meta.url));
const TURNS = 40;
const RATIO_MAX = 3;
const skip = existsSync(BUILT) && existsSync(NODE) ? false : 'there is no dist/petstore; npm run build makes it';

const home = mkdtempSync(path.join(tmpdir(), 'petstore-start-'));
after(() => rmSync(home, { recursive: true, force: true }));

async function nothingMs(): Promise<number> {
  const began = performance.now();
  await once(spawn(NODE, ['-e', '0'], { stdio: 'ignore' }), 'exit');
  return performance.now() - began;
}

async function firstReplyMs(data: string): Promise<number> {
  const began = performance.now();
  const child = spawn(BUILT, ['serve', '--port', '0', '--data', data], { stdio: ['ignore', 'pipe', 'ignore'] });
  try {
    const [line] = await once(child.stdout.setEncoding('utf8'), 'data');
    const url = new URL('/readyz', line.trim().split(' ').at(-1));
    const [reply] = await once(http.get(url, { agent: false }), 'response');
    assert.equal(reply.statusCode, 200);
    return performance.now() - began;
  } finally {
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }
}

test(`the binary answers its first request within ${RATIO_MAX} times the time of node -e 0`, { skip }, async (t) => {
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
