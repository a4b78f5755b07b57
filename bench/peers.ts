/** The servers that the service is measured against. Some need packages, installed on demand. */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { run } from './processes.ts';
import type { Request } from './requests.ts';

const FOLDER = fileURLToPath(new URL('.', import.meta.url));
const IN_MEMORY =
  'keys, the window of a day, the filter by status, ids beyond 2^53, request ids, the disk: its animals are in memory only';
const SAME_BYTES = 'all but HTTP: it sends the same bytes';

export interface Peer {
  name: string;
  file: string;
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
    leavesOut: `${SAME_BYTES}, and parses the body of a POST`,
    given: 'replies',
  },
  fastify: { name: 'Fastify 5', file: 'fastify.mjs', leavesOut: IN_MEMORY, given: 'animals' },
  express: { name: 'Express 5', file: 'express.mjs', leavesOut: IN_MEMORY, given: 'animals' },
  limiter: {
    name: 'rate-limiter-flexible',
    file: 'limiter.mjs',
    leavesOut: `the window of a day and bans, and but for the limit of a minute ${SAME_BYTES}`,
    given: 'replies',
  },
  jsonServer: {
    name: 'json-server',
    file: 'json-server.mjs',
    leavesOut: `limits, checks of the query, ${IN_MEMORY}`,
    given: 'animals',
    request: (request) => {
      const query = new URL(request.path, 'http://localhost').searchParams;
      return { ...request, path: `/pets?_start=${query.get('after') ?? 0}&_limit=${query.get('limit')}` };
    },
  },
  sqlite: {
    name: 'SQLite, group commit',
    file: 'sqlite.mjs',
    leavesOut: 'keys, limits, checks, ids beyond 2^53, request ids; what came in one turn is one durable transaction',
    given: 'store',
  },
} satisfies Record<string, Peer>;

/** Once. */
export async function installPeers(): Promise<void> {
  if (existsSync(`${FOLDER}node_modules`)) return;
  console.error('installing the peers into bench/ (npm ci)');
  await run(['npm', 'ci', '--prefix', FOLDER]);
}

/** What starts it. */
export const peerCommand = ({ file }: Peer, args: string[]) => [process.execPath, `${FOLDER}peers/${file}`, ...args];
