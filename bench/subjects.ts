/** Sets up the service and its peers for one operation: filled alike, asked alike, each proved right before it is timed. */
import { writeFileSync } from 'node:fs';
import { animals, writeJson } from './animals.ts';
import type { Bench } from './bench.ts';
import type { Subject } from './contest.ts';
import type { Call } from './load.ts';
import { type Peer, peerMissing, startPeer } from './peers.ts';
import { ask, mustAnswer, mustHaveLimitHeaders } from './replies.ts';
import { Store } from './service.ts';

export const ANIMALS = 1_000;
export const RARE_EVERY = 40;
/** Long enough that no peer's window ends during a run. */
const REFUSING_WINDOW_MS = 3_600_000;

export interface Operation {
  /** Made with the key that the service gave out; peers are sent the same. */
  calls(key: string): Call[];
  /** Looks at the body of the first call's reply, and throws if it is not right. */
  look(value: unknown): void;
  peers: Peer[];
  /** Peers that no aim names. */
  asides: Peer[];
  /** The peer that is the limit reads and parses the request's body too. */
  bareParses?: boolean;
  /** All requests are over the limit. */
  refused?: boolean;
}

export interface Field {
  subjects: Subject[];
  store: Store;
  key: string;
  stop(): Promise<void>;
}

/** The service comes first, bare node:http second, then the other peers that are installed. */
export async function takeTheField(bench: Bench, operation: Operation): Promise<Field> {
  const store = new Store(bench);
  await store.fill(ANIMALS, RARE_EVERY);
  const key = await store.key(operation.refused ? 1 : undefined);
  const calls = operation.calls(key);
  const service = await store.serve('--ban-after', '0');
  if (operation.refused) await ask(service.origin, calls[0]);
  const reply = await mustAnswer(service.origin, calls[0], operation.look);
  mustHaveLimitHeaders(reply);

  const captured = bench.file('reply.http');
  writeFileSync(captured, reply.raw, 'latin1');
  const bare = await startPeer(bench, 'bare', operation.bareParses ? [captured, 'parse'] : [captured]);
  await mustAnswer(bare.origin, calls[0], operation.look);

  const subjects: Subject[] = [
    { server: service, calls },
    { server: bare, calls },
  ];
  for (const peer of [...operation.peers, ...operation.asides]) {
    if (peerMissing(bench, peer) !== undefined) continue;
    const subject = await peerSubject(bench, peer, operation, calls);
    subjects.push({ ...subject, aside: operation.asides.includes(peer) });
  }
  const stop = async () => {
    await Promise.all(subjects.map(({ server }) => server.stop()));
  };
  return { subjects, store, key, stop };
}

async function peerSubject(bench: Bench, peer: Peer, operation: Operation, calls: Call[]): Promise<Subject> {
  const server = await startPeer(bench, peer, peerArguments(bench, peer, operation));
  const own = peer === 'jsonServer' ? calls.map((call) => ({ ...call, path: call.path.replace('?', '?_') })) : calls;
  if (operation.refused) await ask(server.origin, own[0]);
  await mustAnswer(server.origin, own[0], operation.look);
  return { server, calls: own };
}

function peerArguments(bench: Bench, peer: Peer, operation: Operation): string[] {
  if (peer === 'sqlite') return [bench.file('pets.db')];
  const pets = animals(ANIMALS, RARE_EVERY);
  if (peer === 'jsonServer') return [writeJson(bench.file('db.json'), { pets })];
  const limits = operation.refused ? ['1', String(REFUSING_WINDOW_MS)] : [];
  return [writeJson(bench.file('animals.json'), pets), ...limits];
}

export function get(path: string, key: string, status = 200): Call {
  return { method: 'GET', path, headers: { Authorization: `Bearer ${key}` }, status };
}

export function post(path: string, key: string, value: unknown): Call {
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' };
  return { method: 'POST', path, headers, body: JSON.stringify(value), status: 201 };
}
