/** Sets up the service and its peers for one operation: filled and asked alike, and proved right before it is timed. */
import { writeFileSync } from 'node:fs';
import { animals } from './animals.ts';
import { ask, type Call, mustAnswer } from './ask.ts';
import type { Bench } from './bench.ts';
import type { Subject } from './contest.ts';
import { hasPeer, PEERS, type Peer, startPeer } from './peers.ts';
import type { Server } from './servers.ts';
import { SERVICE, Store } from './service.ts';

export const ANIMALS = 1_000;
export const RARE_EVERY = 40;
const EVERY_REPLY_HAS = ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset', 'x-request-id'];

export interface Operation {
  /** Made with the key that the service gave out; peers are sent the same. */
  calls(key: string): Call[];
  /** Looks at the body of the first call's reply, and throws if it is not right. */
  look(value: unknown): void;
  peers: Peer[];
  /** The bare server reads and parses each request's body too. */
  bareParses?: boolean;
  /** All requests are over the limit. */
  refused?: boolean;
}

/** The service comes first, bare node:http second, then the other peers that are installed. */
export async function takeTheField(bench: Bench, operation: Operation): Promise<Subject[]> {
  const store = new Store(bench);
  await store.fill(ANIMALS, RARE_EVERY);
  const calls = operation.calls(await store.key(operation.refused ? 1 : undefined));
  const service = await store.serve();
  if (operation.refused) await ask(service.origin, calls[0]);
  const reply = await mustAnswer(service.origin, calls[0], operation.look);
  const missing = EVERY_REPLY_HAS.filter((name) => !/\S/.test(String(reply.headers[name] ?? '')));
  if (missing.length > 0) throw new Error(`a reply of the service came without ${missing}`);

  const captured = bench.file('replies.json');
  const others = operation.bareParses ? [] : calls.slice(1); // asked for again, a write would change what is there
  const replies = [reply];
  for (const call of others) replies.push(await mustAnswer(service.origin, call));
  writeFileSync(captured, JSON.stringify(replies));
  const subjects: Subject[] = [{ name: SERVICE, server: service, calls }];
  const join = async (peer: Peer, starting: Promise<Server>) => {
    const server = await starting;
    await mustAnswer(server.origin, calls[0], operation.look);
    subjects.push({ name: PEERS[peer].name, server, calls });
  };
  await join('bare', startPeer(bench, 'bare', [captured, operation.bareParses ? 'parse' : '']));
  for (const peer of operation.peers.filter((peer) => hasPeer(bench, peer))) {
    await join(peer, startPeer(bench, peer, [peerFile(bench, peer)]));
  }
  return subjects;
}

function peerFile(bench: Bench, peer: Peer): string {
  const file = bench.file(`${peer}.json`);
  if (peer === 'fastify' || peer === 'express') writeFileSync(file, JSON.stringify(animals(ANIMALS, RARE_EVERY)));
  return file;
}
