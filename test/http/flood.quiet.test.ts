/** How long others wait while one kind of flood goes on: wants a quiet machine. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FLOODED, floods, NO_PROC, startFlooded } from './flood.ts';

/** From Node 26 on the rest of what has come is still parsed when a flood is noticed. */
const MAX_WAIT_MS = Number(process.versions.node.split('.')[0]) < 26 ? 250 : 1_000;
const FLOOD_MS = 3_000;

for (const name of Object.keys(FLOODED(''))) {
  test(`50 clients that flood with ${name}, and come back at once: /healthz answers in ${MAX_WAIT_MS} ms`, async (t) => {
    const server = await startFlooded(t);
    const stop = await floods(t, server, { requests: [FLOODED(server.key)[name]], connections: 50, reads: true });
    const waits = await server.healthMs(FLOOD_MS);
    assert.ok((await stop()) > 100, 'they came back');
    t.diagnostic(`${waits.length} answers, the slowest after ${waits.slice(0, 3).map(Math.round)} ms`);
    assert.ok(waits[0] < MAX_WAIT_MS, `after ${waits[0]} ms`);
  });
}

test('900 clients that read nothing take 200 MB at most', { skip: NO_PROC }, async (t) => {
  const server = await startFlooded(t);
  await floods(t, server, { requests: [FLOODED(server.key).document], connections: 900, reads: false });
  let grownMB = 0;
  for (const end = performance.now() + FLOOD_MS; performance.now() < end; await server.healthMs(1))
    grownMB = Math.max(grownMB, server.grownMB());
  t.diagnostic(`+${Math.round(grownMB)} MB`);
  assert.ok(grownMB < 200, `+${grownMB} MB`);
});
