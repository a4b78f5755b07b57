/** The operations most asked for, each beside bare node:http that sends the same bytes, and beside others. */
import { deepStrictEqual } from 'node:assert/strict';
import { type Animal, animal, animals } from '../animals.ts';
import { ask, get, mustAnswer, post } from '../ask.ts';
import type { Bench } from '../bench.ts';
import { atRate, contest, reachRatio, type Subject, sideBySide } from '../contest.ts';
import { PEERS } from '../peers.ts';
import { SERVICE, Store } from '../service.ts';
import { ANIMALS, RARE_EVERY, takeTheField } from '../subjects.ts';

const CONNECTIONS = 32;
const READS_PER_SECOND = 2_000;
const CREATES_PER_SECOND = 1_000;
const BODIES = 256;
/** Shares no factor with the number of animals: a walk with this step meets them all. */
const STEP = 389;
const { bare, fastify, express, durable, sqlite } = PEERS;

/** The first page: key checked, both windows taken, all headers. */
export async function list(bench: Bench): Promise<void> {
  const subjects = await takeTheField(bench, {
    calls: (key) => [get('/v1/pets?limit=20', key)],
    look: (value) => deepStrictEqual(value, animals(20, RARE_EVERY)),
    peers: ['fastify', 'express'],
  });
  const measured = await contest(bench, 'list', CONNECTIONS, subjects);
  const beside = await sideBySide(bench, 'list', CONNECTIONS, [subjects[0], subjects[1]]);
  reachRatio(bench, 'list-bare', measured, [SERVICE, bare.name], beside);
  reachRatio(bench, 'list-fastify', measured, [SERVICE, fastify.name]);
  reachRatio(bench, 'list-express', measured, [SERVICE, express.name]);
  const crowded = await contest(bench, 'list', 1_000, subjects.slice(0, 2));
  reachRatio(bench, 'list-crowd', crowded, [SERVICE, bare.name]);
  await unchanged(bench, subjects[0]);
  for (const subject of subjects) await atRate(bench, 'list', subject, READS_PER_SECOND);
}

/** Who has the list already and asks whether it is still so, beside who asks for it again. */
async function unchanged(bench: Bench, whole: Subject): Promise<void> {
  const [call] = whole.calls;
  const { headers } = await mustAnswer(whole.server.origin, call);
  const again = { ...call, headers: { ...call.headers, 'If-None-Match': String(headers.etag) }, status: 304 };
  const prove = async () => {
    const { status, body } = await ask(whole.server.origin, again);
    deepStrictEqual([status, body], [304, '']);
  };
  await prove();
  const told = { ...whole, name: `${SERVICE}, 304`, calls: [again] };
  const measured = await contest(bench, 'list', CONNECTIONS, [told, whole]);
  const beside = await sideBySide(bench, 'list', CONNECTIONS, [told, await another(bench)]);
  reachRatio(bench, 'list-unchanged', measured, [told.name, SERVICE], beside);
  await prove(); // wrk counts a 200 in its place as right
}

/** A second server that answers the list: at once with the first, each has a process whose CPU time is its own. */
async function another(bench: Bench): Promise<Subject> {
  const store = new Store(bench);
  await store.fill(ANIMALS, RARE_EVERY);
  const calls = [get('/v1/pets?limit=20', await store.key())];
  return { name: `${SERVICE}, 200`, server: await store.serve(), calls };
}

/** A caller over the limit: what a refusal costs. Bans are off, so that every reply is the limiter's own. */
export async function limit(bench: Bench): Promise<void> {
  const subjects = await takeTheField(bench, {
    calls: (key) => [get('/v1/pets?limit=20', key, 429)],
    look: (value) => deepStrictEqual((value as { status: number }).status, 429),
    peers: [],
    refused: true,
  });
  await besideBare(bench, 'limit', subjects);
}

/** One animal by its id: a thousand different ones in turn. */
export async function getOne(bench: Bench): Promise<void> {
  const ids = Array.from({ length: ANIMALS }, (_, i) => ((i * STEP) % ANIMALS) + 1);
  const subjects = await takeTheField(bench, {
    calls: (key) => ids.map((id) => get(`/v1/pets/${id}`, key)),
    look: (value) => deepStrictEqual(value, animal(ids[0], RARE_EVERY)),
    peers: [],
  });
  await besideBare(bench, 'get', subjects);
}

async function besideBare(bench: Bench, suite: 'limit' | 'get', [service, other]: Subject[]): Promise<void> {
  const measured = await contest(bench, suite, CONNECTIONS, [service, other]);
  const beside = await sideBySide(bench, suite, CONNECTIONS, [service, other]);
  reachRatio(bench, `${suite}-bare`, measured, [SERVICE, bare.name], beside);
}

/** Adding animals: a 201 of the service, of the smallest durable server and of SQLite is on the disk. */
export async function create(bench: Bench): Promise<void> {
  const bodies = Array.from({ length: BODIES }, (_, i) => ({ name: `Rex ${i}`, categoryId: i % 9, status: 'pending' }));
  const subjects = await takeTheField(bench, {
    calls: (key) => bodies.map((body) => post('/v1/pets', key, body)),
    look: (value) => {
      const { id, ...rest } = value as Animal;
      deepStrictEqual(rest, bodies[0]);
      if (!Number.isSafeInteger(id) || id < 1) throw new Error(`the new animal has the id ${id}`);
    },
    peers: ['durable', 'sqlite'],
    bareParses: true,
  });
  const measured = await contest(bench, 'create', 64, subjects);
  reachRatio(bench, 'create-bare', measured, [SERVICE, bare.name]);
  reachRatio(bench, 'create-durable', measured, [SERVICE, durable.name]);
  reachRatio(bench, 'create-sqlite', measured, [SERVICE, sqlite.name]);
  const crowded = await contest(bench, 'create', 256, subjects.slice(0, 2));
  reachRatio(bench, 'create-crowd', crowded, [SERVICE, bare.name]);

  // Ids have no gaps: if the one that the last 201 stands for is there, none that was promised is missing.
  const [{ server, calls }] = subjects;
  const promised = ANIMALS + 1 + measured.get(SERVICE)!.requests + crowded.get(SERVICE)!.requests;
  await mustAnswer(server.origin, {
    ...calls[0],
    method: 'GET',
    path: `/v1/pets/${promised}`,
    body: undefined,
    status: 200,
  });
  for (const subject of subjects.slice(0, 3)) await atRate(bench, 'create', subject, CREATES_PER_SECOND);
}
