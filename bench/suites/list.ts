/** The first page of the list: key checked, both windows taken, all headers. The most asked of all operations. */
import { deepStrictEqual } from 'node:assert/strict';
import { animals } from '../animals.ts';
import type { Bench } from '../bench.ts';
import { atRate, contest, reachRatio } from '../contest.ts';
import { PEERS } from '../peers.ts';
import { SERVICE } from '../service.ts';
import { get, RARE_EVERY, takeTheField } from '../subjects.ts';

const CONNECTIONS = 32;
const MODEST_PER_SECOND = 2_000;
/** The sender is written in JavaScript, and is to be nowhere near its own limit. */
const BRISK_MAX_PER_SECOND = 8_000;

export async function list(bench: Bench): Promise<void> {
  const field = await takeTheField(bench, {
    calls: (key) => [get('/v1/pets?limit=20', key)],
    look: (value) => deepStrictEqual(value, animals(20, RARE_EVERY)),
    peers: ['fastify', 'express'],
    asides: ['hono', 'jsonServer'],
  });
  const measured = await contest(bench, 'list', CONNECTIONS, field.subjects);
  reachRatio(bench, 'list-bare', measured, SERVICE, PEERS.bare.name);
  reachRatio(bench, 'list-fastify', measured, SERVICE, PEERS.fastify.name);
  reachRatio(bench, 'list-express', measured, SERVICE, PEERS.express.name);

  const slowest = (name: string) => Math.min(...measured.get(name)!.perSecond);
  const order = { connections: CONNECTIONS, seconds: 2 * bench.seconds };
  for (const subject of field.subjects.filter(({ aside }) => !aside)) {
    const keepsUp = slowest(subject.server.name) > 1.5 * MODEST_PER_SECOND;
    if (keepsUp) await atRate(bench, 'list', subject, { ...order, perSecond: MODEST_PER_SECOND });
  }
  const half = Math.floor(slowest(SERVICE) / 2000) * 1000;
  const brisk = Math.min(BRISK_MAX_PER_SECOND, half);
  if (brisk > MODEST_PER_SECOND) {
    for (const subject of field.subjects.slice(0, 2)) {
      await atRate(bench, 'list', subject, { ...order, perSecond: brisk });
    }
  }
  await field.stop();
}
