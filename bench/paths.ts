/** The paths that are asked for most, each beside bare node:http that sends the same bytes. */
import { deepStrictEqual } from 'node:assert/strict';
import { isBuiltin } from 'node:module';
import type { Bench } from './bench.ts';
import { contest, type Subject } from './contest.ts';
import { number, randomIntegers } from './numbers.ts';
import { PEERS, type Peer, peerCommand } from './peers.ts';
import { get, post, type Reply, type Request, send, sendAll } from './requests.ts';
import { type Animal, animal, animals, SERVICE, Store, UNLIMITED } from './service.ts';

export const ANIMALS = 100_000;
export const PAGE = 20;
const PAGES = 2_048;
const KEYS = 10_000;
/** All are read when replies are captured, so that none is read for the first time while it is timed. */
const ANIMALS_READ = 1_000;
/** More replies of bare node:http would not differ, and take time to capture. */
const CAPTURED = 1_024;
export const CONNECTIONS = 32;
const WRITTEN_BY_NODE = /^(date|connection|keep-alive)$/i;

interface Path {
  /** The word that asks for it. */
  part: string;
  name: string;
  /** By default CONNECTIONS. */
  connections?: number;
  warmUpSeconds?: number;
  requests: (key: string, keys: readonly string[]) => Request[];
  /** Throws unless the body of the first request's reply is right. */
  check: (body: unknown) => void;
  /** Beside bare node:http, with --peers. */
  peers?: Peer[];
  isOverLimit?: boolean;
  /** So many keys more are made, for all requests of the run. */
  keys?: number;
  /** Also measured with so many connections, if the part is asked for by name. */
  crowd?: number;
}

const firstPage = (key: string) => [get(`/v1/pets?limit=${PAGE}`, key)];
const offsets = Array.from({ length: PAGES }, randomIntegers(ANIMALS - PAGE));
const newAnimal = (i: number) => ({ name: `Rex ${i}`, categoryId: (i % 9) + 1, status: 'pending' });
/** The sold animals behind an id: as many as a page has, for offsets are a page away from the end, or fewer. */
const soldAfter = (id: number) =>
  animals(ANIMALS - id, id + 1)
    .filter(({ status }) => status === 'sold')
    .slice(0, PAGE);
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
    name: 'list, a rare status',
    requests: (key) => offsets.map((after) => get(`/v1/pets?limit=${PAGE}&status=sold&after=${after}`, key)),
    check: (body) => deepStrictEqual(body, soldAfter(offsets[0])),
  },
  {
    part: 'list',
    name: 'list, 1 request in 100 adds an animal',
    /** Code that runs for one request in a hundred is compiled later. */
    warmUpSeconds: 4,
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
    peers: [PEERS.limiter],
    isOverLimit: true,
  },
  {
    part: 'limit',
    name: 'admitted, 10,000 keys at random',
    keys: KEYS,
    requests: (_, keys) => Array.from({ length: KEYS }, randomIntegers(KEYS)).map((at) => firstPage(keys[at])[0]),
    check: holdsFirstPage,
    peers: [PEERS.limiter],
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
    peers: isBuiltin('node:sqlite') ? [PEERS.sqlite] : [],
    crowd: 256,
  },
];

export const PATH_NAMES: readonly string[] = PATHS.map(({ name }) => name);
export const PARTS = [...new Set(PATHS.map(({ part }) => part))];

/** All paths of a part, each on a server of its own, on the same store. */
export async function measurePaths(bench: Bench, part: string): Promise<void> {
  for (const path of PATHS.filter((one) => one.part === part)) {
    const subjects = await subjectsOf(bench, path);
    const { name, connections = CONNECTIONS, warmUpSeconds } = path;
    await contest(bench, { path: name, connections, warmUpSeconds }, subjects);
    if (path.crowd !== undefined && bench.settings.thorough) {
      const crowd = `${name}, ${number(path.crowd)} connections`;
      await contest(bench, { path: crowd, connections: path.crowd }, subjects.slice(0, 2));
    }
    await bench.stopServers();
  }
}

/** The store with ANIMALS, filled once a run, and a key for it. */
export async function openShop(bench: Bench, limit = UNLIMITED): Promise<{ store: Store; key: string }> {
  const data = await bench.once('store', async () => {
    const directory = bench.file('data');
    await new Store(bench, directory).fill(ANIMALS);
    return directory;
  });
  const store = new Store(bench, data);
  return { store, key: await bench.once(`key ${limit}`, () => store.key(limit)) };
}

/** The service comes first, then bare node:http, then its peers if they are wanted. */
async function subjectsOf(bench: Bench, path: Path): Promise<Subject[]> {
  bench.progress(`${path.name}: starting`);
  const { store, key } = await openShop(bench, path.isOverLimit ? 1 : UNLIMITED);
  const server = await store.serve();
  const keys = path.keys === undefined ? [] : await store.keys(path.keys);
  const requests = path.requests(key, keys);
  if (path.isOverLimit) await send(server.origin, { ...requests[0], status: 200 });
  const replies = await sendAll(server.origin, requests.slice(0, CAPTURED));
  checkBody(`${SERVICE}, ${path.name}`, replies[0].body, path.check);
  const subjects: Subject[] = [{ name: SERVICE, server, file: bench.jsonFile('requests', requests) }];
  for (const peer of [PEERS.bare, ...(bench.settings.peers ? (path.peers ?? []) : [])]) {
    subjects.push(await startSubject(bench, peer, path.check, requests, replies));
  }
  return subjects;
}

/** `ours` are the requests to the service, and `replies` its replies. */
async function startSubject(bench: Bench, peer: Peer, check: Path['check'], ours: Request[], replies: Reply[]) {
  const requests = ours.map(peer.request ?? ((same) => same));
  const given = {
    replies: async () => bench.jsonFile('replies', replies),
    animals: () => bench.once('animals', async () => bench.jsonFile('animals', animals(ANIMALS))),
    store: async () => bench.file('store'),
  };
  const server = await bench.start(peer.name, peerCommand(peer, [await given[peer.given](), String(ANIMALS)]));
  const reply = await send(server.origin, requests[0]);
  checkBody(peer.name, reply.body, check);
  if (peer.given === 'replies') deepStrictEqual(comparable(reply), comparable(replies[0]), `${peer.name}: other bytes`);
  return { ...peer, server, file: bench.jsonFile('requests', requests) };
}

/** What must be the same of a reply with the same bytes: all but what the server's HTTP writes itself. */
function comparable({ status, rawHeaders, body }: Reply) {
  const lines = rawHeaders.flatMap((name, i) => (i % 2 === 0 ? [`${name.toLowerCase()}: ${rawHeaders[i + 1]}`] : []));
  return { status, body, lines: lines.filter((line) => !WRITTEN_BY_NODE.test(line.split(':')[0])).sort() };
}

function checkBody(subject: string, body: string, check: Path['check']): void {
  try {
    check(JSON.parse(body));
  } catch (error) {
    throw new Error(`${subject}: ${(error as Error).message}`);
  }
}
