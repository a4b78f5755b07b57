/** Those that the service is measured against: installed on first use, and done without where that fails. */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Bench } from './bench.ts';
import { programOnPath } from './machine.ts';
import { run } from './run.ts';
import { type Server, startServer } from './servers.ts';

const FOLDER = fileURLToPath(new URL('peers', import.meta.url));
const IN_MEMORY = 'the key check, the window of a day, the disk: its animals live in memory only';
const INSTALL_MAX_MS = 300_000;
/** Who has no network is to know it soon. */
const NPM_FLAGS = ['--no-audit', '--no-fund', '--fetch-retries=1', '--fetch-retry-mintimeout=1000'];

/** Each peer's name, its file, the package that must be there for it, and what it does not do that the service does. */
export const PEERS = {
  bare: {
    name: 'bare node:http',
    file: 'bare.mjs',
    needs: undefined,
    leavesOut: 'everything: it sends the same bytes',
  },
  fastify: { name: 'Fastify', file: 'fastify.mjs', needs: 'fastify', leavesOut: IN_MEMORY },
  express: { name: 'Express', file: 'express.mjs', needs: 'express', leavesOut: IN_MEMORY },
  hono: { name: 'Hono', file: 'hono.mjs', needs: 'hono', leavesOut: IN_MEMORY },
  jsonServer: {
    name: 'json-server',
    file: 'json-server.mjs',
    needs: 'json-server',
    leavesOut: 'keys, limits, validation; it writes its whole file for each create, without fsync',
  },
  sqlite: {
    name: 'SQLite',
    file: 'sqlite.mjs',
    needs: 'better-sqlite3',
    leavesOut: 'keys, limits, request ids; its creates are on the disk as ours are',
  },
} as const;

export type Peer = keyof typeof PEERS;

/** `npm ci` where the peers are not installed yet; without network the run goes on without them. */
export async function installPeers(bench: Bench): Promise<void> {
  if (!bench.wantsPeers || existsSync(`${FOLDER}/node_modules/.package-lock.json`)) return;
  console.error('installing the peers into bench/peers: npm ci, once, a minute or so');
  try {
    const npm = programOnPath('npm') ?? 'npm';
    await run([npm, 'ci', '--prefix', FOLDER, ...NPM_FLAGS], { timeoutMs: INSTALL_MAX_MS });
    bench.note('The peers were installed into bench/peers with npm ci.');
  } catch (error) {
    const { message } = error as Error;
    const why = /npm error code (\S+)/.exec(message)?.[1] ?? message.split('\n')[0];
    bench.note(`The peers could not be installed (npm ci: ${why}).`);
  }
}

export function peerFile(peer: Peer): string {
  return `${FOLDER}/${PEERS[peer].file}`;
}

/** Why a peer cannot be measured against, or nothing. */
export function peerMissing(bench: Bench, peer: Peer): string | undefined {
  const { name, needs } = PEERS[peer];
  if (needs === undefined) return undefined;
  if (!bench.wantsPeers) return 'measured without peers';
  const builtIn = peer === 'sqlite' && Number(process.versions.node.split('.')[0]) >= 24;
  if (builtIn || existsSync(`${FOLDER}/node_modules/${needs}`)) return undefined;
  const why = `${name} is not installed in bench/peers`;
  bench.note(`${why}: left out.`);
  return why;
}

export async function startPeer(bench: Bench, peer: Peer, args: string[]): Promise<Server> {
  return startServer(bench, PEERS[peer].name, [process.execPath, peerFile(peer), ...args]);
}
