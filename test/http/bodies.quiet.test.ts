/** How long others wait while bodies in pieces come, and what they take: wants a quiet machine. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { endless, type Flooded, floods, NO_PROC, ONE_BYTE, startFlooded, stoppingMs } from './flood.ts';

/** From Node 26 on others may wait longer, see flood.quiet.test.ts. */
const MAX_WAIT_MS = Number(process.versions.node.split('.')[0]) < 26 ? 250 : 1_000;
const MAX_STOP_MS = 10_000;
const FLOOD_MS = 4_000;

async function assertServes(server: Flooded, tell: (text: string) => void, most = MAX_WAIT_MS): Promise<void> {
  const before = server.cpuMs();
  const began = performance.now();
  let grownMB = 0;
  const waits: number[] = [];
  while (performance.now() - began < FLOOD_MS) {
    waits.push(...(await server.healthMs(200)));
    grownMB = Math.max(grownMB, server.grownMB());
  }
  const busy = Math.round((100 * (server.cpuMs() - before)) / (performance.now() - began));
  const slowest = waits.sort((a, b) => b - a).slice(0, 3);
  tell(
    `${waits.length} answers, the slowest after ${slowest.map(Math.round)} ms; +${Math.round(grownMB)} MB; ${busy} %`,
  );
  assert.ok(waits[0] < most, `/healthz after ${waits[0]} ms`);
  assert.ok(grownMB < 200, `+${grownMB} MB`);
}

for (const [name, total] of Object.entries({ '393 KB': 393_216, '2 MB': 2_000_000, 'no end': undefined })) {
  test(`50 senders without a key of ${name} in one-byte chunks, who come back at once: /healthz in ${MAX_WAIT_MS} ms`, {
    skip: NO_PROC,
  }, async (t) => {
    const server = await startFlooded(t);
    await floods(t, server, { head: endless(), total, requests: [ONE_BYTE], connections: 50, reads: true });
    await assertServes(server, (text) => t.diagnostic(text));
    const stopping = await stoppingMs(server);
    assert.ok(stopping < MAX_STOP_MS, `stopped after ${stopping} ms`);
  });
}

for (const [name, total] of Object.entries({ 'no end': undefined, '65,535 chunks and then nothing': 6 * 65_535 })) {
  test(`60 bodies of ${name} by one Free key: alive with a heap of 512 MB, and SIGTERM ends it`, {
    skip: NO_PROC,
  }, async (t) => {
    const server = await startFlooded(t, 'free', { env: { NODE_OPTIONS: '--max-old-space-size=512' } });
    const head = endless(server.key);
    await floods(t, server, { head, total, requests: [ONE_BYTE], connections: 60, reads: true });
    await assertServes(server, (text) => t.diagnostic(text), 1_000);
    await wait(500);
    const stopping = await stoppingMs(server);
    assert.ok(stopping < MAX_STOP_MS, `stopped after ${stopping} ms`);
  });
}
