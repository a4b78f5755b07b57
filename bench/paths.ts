/** The paths that are asked for most, each beside bare node:http that sends the same bytes. */
import { deepStrictEqual } from 'node:assert/strict';
import type { Bench } from './bench.ts';
import { contest, type Subject } from './contest.ts';
import { randomIntegers } from './numbers.ts';
import { availablePeers, PEERS, type Peer, startPeer } from './peers.ts';
import { get, post, type Request, send, sendAll } from './requests.ts';
import type { Part } from './results.ts';
import { type Animal, animal, animals, SERVICE, Store, UNLIMITED } from './service.ts';

const ANIMALS = 100_000;
const PAGE = 20;
const PAGES = 2_048;
/** All are read when replies are captured, so that none is read for the first time while it is timed. */
const ANIMALS_READ = 1_000;
/** More replies of bare node:http would not differ, and take time to capture. */
const CAPTURED = 1_024;
const CONNECTIONS = 32;

interface Path {
  part: Part;
  name: string;
  /** By default CONNECTIONS. */
  connections?: number;
  warmUpSeconds?: number;
  requests: (key: string) => Request[];
  /** Throws unless the body of the first request's reply is right. */
  check: (body: unknown) => void;
  peers?: Peer[];
  isOverLimit?: boolean;
  /** Also measured with so many connections, if the part is asked for by name. */
  crowd?: number;
}

const firstPage = (key: string) => [get(`/v1/pets?limit=${PAGE}`, key)];
const offsets = Array.from({ length: PAGES }, randomIntegers(ANIMALS - PAGE));
const newAnimal = (i: number) => ({ name: `Rex ${i}`, categoryId: (i % 9) + 1, status: 'pending' });
const holdsFirstPage = (body: unknown) => deepStrictEqual(body, animals(PAGE));

const PATHS: Path[] = [
  {
    part: 'list',
    name: 'list, one page',
    requests: firstPage,
    check: holdsFirstPage,
    crowd: 1_000,
  },
  {
    part: 'list',
    name: 'list, pages at random',
    requests: (key) => offsets.map((after) => get(`/v1/pets?limit=${PAGE}&after=${after}`, key)),
    check: (body) => deepStrictEqual(body, animals(PAGE, offsets[0] + 1)),
    peers: [PEERS.fastify, PEERS.express, PEERS.jsonServer],
  },
  {
    part: 'list',
    name: 'list, 1 request in 100 adds an animal',
    /** Code that runs for one request in a hundred is compiled later. */
    warmUpSeconds: 5,
    requests: (key) => [...new Array(99).fill(firstPage(key)[0]), post('/v1/pets', key, newAnimal(1))],
    check: holdsFirstPage,
  },
  {
    part: 'get',
    name: 'one animal, read before',
    requests: (key) => offsets.slice(0, ANIMALS_READ).map((after) => get(`/v1/pets/${after + 1}`, key)),
    check: (body) => deepStrictEqual(body, animal(offsets[0] + 1)),
  },
  {
    part: 'limit',
    name: '429, over the limit',
    requests: (key) => [get(`/v1/pets?limit=${PAGE}`, key, 429)],
    check: (body) => deepStrictEqual((body as { status: number }).status, 429),
    isOverLimit: true,
  },
  {
    part: 'create',
    name: 'create, durable',
    connections: 64,
    requests: (key) => Array.from({ length: 256 }, (_, i) => post('/v1/pets', key, newAnimal(i))),
    check: (body) => {
      const { id, ...rest } = body as Animal;
      deepStrictEqual(rest, newAnimal(0));
      if (!Number.isSafeInteger(id) || id <= ANIMALS) throw new Error(`the new animal has the id ${id}`);
    },
    peers: [PEERS.durable, PEERS.sqlite],
    crowd: 256,
  },
];

/** All paths of a part, each on a server of its own, on the same store. */
export async function measurePaths(bench: Bench, part: Part): Promise<void> {
  for (const path of PATHS.filter((one) => one.part === part)) {
    const subjects = await subjectsOf(bench, path);
    const { name, connections = CONNECTIONS, warmUpSeconds } = path;
    await contest(bench, { part, path: name, connections, warmUpSeconds }, subjects);
    if (path.crowd !== undefined && bench.settings.thorough) {
      const crowd = `${name}, ${path.crowd.toLocaleString('en')} connections`;
      await contest(bench, { part, path: crowd, connections: path.crowd }, subjects.slice(0, 2));
    }
    await bench.stopServers();
  }
}

/** The service comes first, bare node:http second, then the peers that are wanted and installed. */
async function subjectsOf(bench: Bench, path: Path): Promise<Subject[]> {
  bench.progress(`${path.name}: starting`);
  const data = await bench.once('store', async () => {
    const store = new Store(bench);
    await store.fill(ANIMALS);
    return store.data;
  });
  const store = new Store(bench, { data });
  const limit = path.isOverLimit ? 1 : UNLIMITED;
  const key = await bench.once(`key ${limit}`, () => store.key(limit));
  const requests = path.requests(key);
  const server = await store.serve();
  if (path.isOverLimit) await send(server.origin, { ...requests[0], status: 200 });
  const replies = await sendAll(server.origin, requests.slice(0, CAPTURED));
  checkBody(`${SERVICE}, ${path.name}`, replies[0].body, path.check);
  const file = bench.jsonFile('requests', requests);
  const bare = await startPeer(bench, PEERS.bare, [bench.jsonFile('replies', replies)]);
  const subjects = [
    { name: SERVICE, server, file },
    { ...PEERS.bare, server: bare, file },
  ];
  for (const peer of availablePeers(bench, path.peers ?? [])) {
    subjects.push(await peerSubject(bench, peer, requests, path.check));
  }
  return subjects;
}

async function peerSubject(bench: Bench, peer: Peer, ours: Request[], check: Path['check']): Promise<Subject> {
  const requests = ours.map(peer.request ?? ((same) => same));
  const list = () => bench.once('animals', async () => bench.jsonFile('animals', animals(ANIMALS)));
  const file = requests[0].method === 'POST' ? bench.file('store') : await list();
  const server = await startPeer(bench, peer, [file, String(ANIMALS)]);
  const [{ body }] = await sendAll(server.origin, requests.slice(0, 1));
  checkBody(peer.name, body, check);
  return { ...peer, server, file: bench.jsonFile('requests', requests) };
}

function checkBody(subject: string, body: string, check: Path['check']): void {
  try {
    check(JSON.parse(body));
  } catch (error) {
    throw new Error(`${subject}: ${(error as Error).message}`);
  }
}
