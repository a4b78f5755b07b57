/** The servers that the service is measured against. All but two need packages, installed on demand. */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Bench } from './bench.ts';
import { run, type Server } from './processes.ts';
import type { Request } from './requests.ts';

const FOLDER = fileURLToPath(new URL('.', import.meta.url));
const INSTALL_MAX_MS = 900_000;
const IN_MEMORY = 'keys, the window of a day, ids beyond 2^53, request ids, the disk: its animals are in memory only';

export interface Peer {
  name: string;
  file: string;
  /** The package that it needs, if any. */
  needs?: string;
  leavesOut: string;
  /** Its way to ask for the same; by default the service's. */
  request?: (request: Request) => Request;
}

export const PEERS = {
  bare: {
    name: 'bare node:http',
    file: 'bare.mjs',
    leavesOut: 'everything: it sends the same bytes (and parses the body of a POST)',
  },
  fastify: { name: 'Fastify 5', file: 'fastify.mjs', needs: 'fastify', leavesOut: IN_MEMORY },
  express: { name: 'Express 5', file: 'express.mjs', needs: 'express', leavesOut: IN_MEMORY },
  jsonServer: {
    name: 'json-server',
    file: 'json-server.mjs',
    needs: 'json-server',
    leavesOut: `limits, checks of the query, ${IN_MEMORY}`,
    request: (request) => {
      const query = new URL(request.path, 'http://localhost').searchParams;
      return { ...request, path: `/pets?_start=${query.get('after') ?? 0}&_limit=${query.get('limit')}` };
    },
  },
  durable: {
    name: 'smallest durable server',
    file: 'durable.mjs',
    leavesOut: 'keys, limits, checks, reads: it parses, batches, one write and fdatasync a batch, and answers',
  },
  sqlite: {
    name: 'SQLite (WAL, FULL)',
    file: 'sqlite.mjs',
    needs: 'better-sqlite3',
    leavesOut: 'keys, limits, ids beyond 2^53, request ids; its creates are on the disk',
  },
} satisfies Record<string, Peer>;

export const LIBRARY = { name: 'rate-limiter-flexible', file: 'limiter.mjs', needs: 'rate-limiter-flexible' };

/** Without the network the run goes on with what is there. */
export async function installPeers(bench: Bench): Promise<void> {
  const all: Peer[] = Object.values(PEERS);
  if (all.every(isInstalled)) return;
  console.error('installing the peers into bench/ (npm ci), once: minutes where better-sqlite3 has to be compiled');
  try {
    await run(['npm', 'ci', '--prefix', FOLDER, '--fetch-retries=1'], INSTALL_MAX_MS);
  } catch (error) {
    bench.note(`The peers could not be installed: ${(error as Error).message.split('\n', 3).join(' ')}`);
  }
}

export function isInstalled({ needs }: { needs?: string }): boolean {
  if (needs === 'better-sqlite3' && Number.parseInt(process.versions.node, 10) >= 24) return true; // has node:sqlite
  return needs === undefined || existsSync(`${FOLDER}node_modules/${needs}`);
}

/** Those of the wanted peers that can be measured; why one cannot is noted. */
export function availablePeers(bench: Bench, wanted: Peer[]): Peer[] {
  if (!bench.settings.peers) return [];
  return wanted.filter((peer) => {
    if (isInstalled(peer)) return true;
    bench.note(`${peer.name} is left out: ${peer.needs} is not installed in bench/.`);
    return false;
  });
}

export const peerCommand = ({ file }: { file: string }) => [process.execPath, `${FOLDER}peers/${file}`];

export function startPeer(bench: Bench, peer: Peer, args: string[]): Promise<Server> {
  return bench.start(peer.name, [...peerCommand(peer), ...args]);
}
