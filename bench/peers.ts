/** Those that the service is measured against: installed on first use, and done without where that fails. */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Bench } from './bench.ts';
import { run } from './run.ts';
import { type Server, startServer } from './servers.ts';

export const FOLDER = fileURLToPath(new URL('.', import.meta.url));
const IN_MEMORY = 'the key check, the window of a day, the disk: its animals live in memory only';
const INSTALL_MAX_MS = 300_000;

/** Each peer's name, its file, the package that must be there for it, and what it does not do that the service does. */
export const PEERS = {
  bare: {
    name: 'bare node:http',
    file: 'bare.mjs',
    needs: undefined,
    leavesOut: 'everything: it sends the same bytes',
  },
  durable: {
    name: 'smallest durable',
    file: 'durable.mjs',
    needs: undefined,
    leavesOut: 'keys, limits, checks, reads: it parses, batches, writes and syncs, and answers',
  },
  fastify: { name: 'Fastify', file: 'fastify.mjs', needs: 'fastify', leavesOut: IN_MEMORY },
  express: { name: 'Express', file: 'express.mjs', needs: 'express', leavesOut: IN_MEMORY },
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
  if (!bench.wantsPeers || existsSync(`${FOLDER}node_modules/.package-lock.json`)) return;
  console.error('installing the peers into bench: npm ci, once, a minute or so');
  try {
    await run(['npm', 'ci', '--prefix', FOLDER, '--fetch-retries=1'], { timeoutMs: INSTALL_MAX_MS });
  } catch (error) {
    bench.note(`The peers could not be installed (${(error as Error).message.split('\n')[0]}).`);
  }
}

/** Whether it can be measured against; why not is noted. */
export function hasPeer(bench: Bench, peer: Peer): boolean {
  const { name, needs } = PEERS[peer];
  const builtIn = peer === 'sqlite' && Number(process.versions.node.split('.')[0]) >= 24;
  const has = needs === undefined || (bench.wantsPeers && (builtIn || existsSync(`${FOLDER}node_modules/${needs}`)));
  if (!has) bench.note(`${name} is left out: ${bench.wantsPeers ? 'it is not installed in bench' : '--no-peers'}.`);
  return has;
}

export async function startPeer(bench: Bench, peer: Peer, args: string[]): Promise<Server> {
  return startServer(bench, PEERS[peer].name, [process.execPath, `${FOLDER}peers/${PEERS[peer].file}`, ...args]);
}
