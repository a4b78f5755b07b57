/** The servers that the service is measured against. Some need packages, installed on demand, and one needs Go. */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Bench } from './bench.ts';
import { isOnPath } from './machine.ts';
import { run, type Server } from './processes.ts';
import type { Request } from './requests.ts';

const FOLDER = fileURLToPath(new URL('.', import.meta.url));
const INSTALL_MAX_MS = 900_000;
const IN_MEMORY = 'keys, the window of a day, ids beyond 2^53, request ids, the disk: its animals are in memory only';
const SAME_BYTES = 'all but HTTP: it sends the same bytes';

export interface Peer {
  name: string;
  file: string;
  /** Measured even if no peers are wanted. */
  isBaseline?: boolean;
  /** The package that it needs, if any; or `go`. */
  needs?: string;
  leavesOut: string;
  /** What it is started with: captured replies, animals, or a file for them and the last id. */
  given: 'replies' | 'animals' | 'store';
  /** Its way to ask for the same; by default the service's. */
  request?: (request: Request) => Request;
}

export const PEERS = {
  bare: {
    name: 'bare node:http',
    file: 'bare.mjs',
    isBaseline: true,
    leavesOut: `${SAME_BYTES}, and parses the body of a POST`,
    given: 'replies',
  },
  floor: {
    name: 'node:net',
    file: 'floor.mjs',
    isBaseline: true,
    leavesOut: 'HTTP too: it sends the bytes of one reply for each head, and parses nothing',
    given: 'replies',
  },
  go: { name: 'Go net/http', file: 'bare.go', needs: 'go', leavesOut: SAME_BYTES, given: 'replies' },
  fastify: { name: 'Fastify 5', file: 'fastify.mjs', needs: 'fastify', leavesOut: IN_MEMORY, given: 'animals' },
  hono: { name: 'Hono 4', file: 'hono.mjs', needs: 'hono', leavesOut: IN_MEMORY, given: 'animals' },
  express: { name: 'Express 5', file: 'express.mjs', needs: 'express', leavesOut: IN_MEMORY, given: 'animals' },
  jsonServer: {
    name: 'json-server',
    file: 'json-server.mjs',
    needs: 'json-server',
    leavesOut: `limits, checks of the query, ${IN_MEMORY}`,
    given: 'animals',
    request: (request) => {
      const query = new URL(request.path, 'http://localhost').searchParams;
      return { ...request, path: `/pets?_start=${query.get('after') ?? 0}&_limit=${query.get('limit')}` };
    },
  },
  durable: {
    name: 'smallest durable server',
    file: 'durable.mjs',
    leavesOut: 'keys, limits, checks, reads: it parses, batches, one write and fdatasync a batch, and answers',
    given: 'store',
  },
  sqlite: {
    name: 'SQLite (WAL, FULL)',
    file: 'sqlite.mjs',
    needs: 'better-sqlite3',
    leavesOut: 'keys, limits, ids beyond 2^53, request ids; its creates are on the disk',
    given: 'store',
  },
} satisfies Record<string, Peer>;

/** Not measured here: what others found on one core of the machine that the project's figures are from. */
export const ANCHORS =
  'Anchors, measured once and elsewhere (wrk, one core, November 2026, Node 26; CPU µs of a list request, a page of 20): ' +
  'a node:net echo 10, Bun.serve 14, nginx with a static file 16, bare node:http 24, Go net/http 30; ' +
  'petstore 17 to 20, as it was then: its replies went around node:http.';

/** Without the network the run goes on with what is there. */
export async function installPeers(bench: Bench): Promise<void> {
  const all: Peer[] = Object.values(PEERS);
  if (all.every((peer) => peer.needs === 'go' || isInstalled(peer))) return;
  console.error('installing the peers into bench/ (npm ci), once: minutes where better-sqlite3 has to be compiled');
  try {
    await run(['npm', 'ci', '--prefix', FOLDER, '--fetch-retries=1'], INSTALL_MAX_MS);
  } catch (error) {
    bench.note(`The peers could not be installed: ${(error as Error).message.split('\n', 3).join(' ')}`);
  }
}

function isInstalled({ needs }: Peer): boolean {
  if (needs === 'go') return isOnPath('go');
  if (needs === 'better-sqlite3' && Number.parseInt(process.versions.node, 10) >= 24) return true; // has node:sqlite
  return needs === undefined || existsSync(`${FOLDER}node_modules/${needs}`);
}

/** Those of the wanted peers that can be measured; why one cannot is noted. */
export function availablePeers(bench: Bench, wanted: Peer[]): Peer[] {
  return wanted.filter((peer) => {
    if (!peer.isBaseline && !bench.settings.peers) return false;
    if (isInstalled(peer)) return true;
    bench.note(`${peer.name} is left out: ${peer.needs} is not installed${peer.needs === 'go' ? '' : ' in bench/'}.`);
    return false;
  });
}

export async function startPeer(bench: Bench, { name, file, needs }: Peer, args: string[]): Promise<Server> {
  const source = `${FOLDER}peers/${file}`;
  if (needs !== 'go') return bench.start(name, [process.execPath, source, ...args]);
  const program = await bench.once(`go build ${file}`, async () => {
    const built = bench.file('go');
    await run(['go', 'build', '-o', built, source], INSTALL_MAX_MS);
    return built;
  });
  return bench.start(name, [program, ...args]);
}
