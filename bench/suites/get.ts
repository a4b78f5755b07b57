/** One animal by its id: a thousand different ones in turn. */
import { deepStrictEqual } from 'node:assert/strict';
import { animal } from '../animals.ts';
import type { Bench } from '../bench.ts';
import { contest, reachRatio } from '../contest.ts';
import { PEERS } from '../peers.ts';
import { SERVICE } from '../service.ts';
import { ANIMALS, get, RARE_EVERY, takeTheField } from '../subjects.ts';

const CONNECTIONS = 32;
/** Shares no factor with the number of animals: a walk with this step meets them all. */
const STEP = 389;

export async function getOne(bench: Bench): Promise<void> {
  const ids = Array.from({ length: ANIMALS }, (_, i) => ((i * STEP) % ANIMALS) + 1);
  const field = await takeTheField(bench, {
    calls: (key) => ids.map((id) => get(`/v1/pets/${id}`, key)),
    look: (value) => deepStrictEqual(value, animal(ids[0], RARE_EVERY)),
    peers: [],
    asides: ['fastify', 'express', 'hono'],
  });
  const measured = await contest(bench, 'get', CONNECTIONS, field.subjects);
  reachRatio(bench, 'get-bare', measured, SERVICE, PEERS.bare.name);
  await field.stop();
}
