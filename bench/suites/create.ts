/** Adding animals: a 201 of the service and of SQLite is on the disk; the frameworks keep them in memory only. */
import { deepStrictEqual } from 'node:assert/strict';
import type { Animal } from '../animals.ts';
import type { Bench } from '../bench.ts';
import { atRate, contest, reachRatio } from '../contest.ts';
import { PEERS } from '../peers.ts';
import { mustAnswer } from '../replies.ts';
import { SERVICE } from '../service.ts';
import { ANIMALS, get, post, takeTheField } from '../subjects.ts';

const CONNECTIONS = 64;
const BODIES = 256;
const PER_SECOND = 1_000;

export async function create(bench: Bench): Promise<void> {
  const bodies = Array.from({ length: BODIES }, (_, i) => ({ name: `Rex ${i}`, categoryId: i % 9, status: 'pending' }));
  const field = await takeTheField(bench, {
    calls: (key) => bodies.map((body) => post('/v1/pets', key, body)),
    look: (value) => {
      const { id, ...rest } = value as Animal;
      deepStrictEqual(rest, bodies[0]);
      if (!Number.isSafeInteger(id) || id < 1) throw new Error(`the new animal has the id ${id}`);
    },
    peers: ['sqlite'],
    asides: ['fastify', 'express', 'hono', 'jsonServer'],
    bareParses: true,
  });
  const measured = await contest(bench, 'create', CONNECTIONS, field.subjects);
  reachRatio(bench, 'create-bare', measured, SERVICE, PEERS.bare.name);
  reachRatio(bench, 'create-sqlite', measured, SERVICE, PEERS.sqlite.name);

  // Ids have no gaps: if the one that the last 201 stands for is there, none that was promised is missing.
  const promised = ANIMALS + 1 + measured.get(SERVICE)!.requests;
  await mustAnswer(field.subjects[0].server.origin, get(`/v1/pets/${promised}`, field.key));

  for (const subject of field.subjects.slice(0, 3)) {
    const order = { perSecond: PER_SECOND, connections: CONNECTIONS, seconds: 2 * bench.seconds };
    await atRate(bench, 'create', subject, order);
  }
  await field.stop();
}
