/** A caller over the limit: what a refusal costs. Bans are off, so that every reply is the limiter's own. */
import { deepStrictEqual } from 'node:assert/strict';
import type { Bench } from '../bench.ts';
import { contest, reachRatio } from '../contest.ts';
import { PEERS } from '../peers.ts';
import { SERVICE } from '../service.ts';
import { get, takeTheField } from '../subjects.ts';

const CONNECTIONS = 32;

export async function limit(bench: Bench): Promise<void> {
  const field = await takeTheField(bench, {
    calls: (key) => [get('/v1/pets?limit=20', key, 429)],
    look: (value) => deepStrictEqual((value as { status: number }).status, 429),
    peers: [],
    asides: ['fastify', 'express', 'hono'],
    refused: true,
  });
  const measured = await contest(bench, 'limit', CONNECTIONS, field.subjects);
  reachRatio(bench, 'limit-bare', measured, SERVICE, PEERS.bare.name);
  await field.stop();
}
