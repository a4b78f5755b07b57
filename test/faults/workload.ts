/** A store on a simulated disk, worked on at random, with a photograph of the disk before and after every file call. */

import { LOCK } from '../../src/store/file/directory.ts';
import type { FileJournal } from '../../src/store/file/journal.ts';
import { openStore } from '../../src/store/file/open.ts';
import { recover } from '../../src/store/file/rewrite.ts';
import type { MemoryStore } from '../../src/store/memory.ts';
import { type Ahead, type ApiKey, type NewPet, type Operation, StoreError } from '../../src/store/model.ts';
import { prove } from '../../src/store/record.ts';
import { State } from '../../src/store/state.ts';
import { SetClock } from '../clock.ts';
import { DIR, type Random, SimDisk } from './sim-disk.ts';

/** All operations that were accepted, in order. A refusal for want of room begins another one. */
interface History {
  operations: Operation[];
  digests: string[];
}

/** One moment: what was on the disk, what had been acknowledged by then, what accepted. */
export interface Moment {
  disk: SimDisk;
  history: History;
  acknowledged: number;
  sent: number;
  call: string;
}

export interface Worked {
  moments: Moment[];
  /** The digest of the state when all was done; of a fresh recovery it is the same. */
  digest: string;
}

export async function openSim(
  disk: SimDisk,
  clock = new SetClock(),
): Promise<{ store: MemoryStore; journal: FileJournal }> {
  if (!disk.names.has(LOCK)) disk.close(await disk.create(LOCK)); // as flock needs it
  return openStore(DIR, { disk, clock });
}

/** What is found on the disk. */
export async function recovered(disk: SimDisk): Promise<State> {
  const state = new State();
  await recover(disk, DIR, state);
  return state;
}

/** The digest after each number of operations. */
export function digestsOf(history: History): string[] {
  while (history.digests.length <= history.operations.length) {
    const state = new State();
    state.apply(history.operations.slice(0, history.digests.length));
    history.digests.push(prove(state).digest);
  }
  return history.digests;
}

export async function work(random: Random, rounds: number): Promise<Worked> {
  const disk = new SimDisk();
  const moments: Moment[] = [];
  let history: History = { operations: [], digests: [] };
  let acknowledged = 0;
  let isFull = false;
  disk.onCall = (call) => {
    const sent = history.operations.length;
    moments.push({ disk: disk.copy(), history, acknowledged, sent, call });
    if (call !== 'write done' || !isFull) return;
    isFull = false;
    throw Object.assign(new Error('ENOSPC: simulated'), { code: 'ENOSPC' });
  };
  const write = async (store: MemoryStore, decide: (ahead: Ahead) => Operation) => {
    let place = 0;
    try {
      await store.write((ahead) => {
        const operation = decide(ahead);
        place = history.operations.push(operation);
        return operation;
      });
      acknowledged = Math.max(acknowledged, place);
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      if (history.operations.length > acknowledged) {
        history = { operations: history.operations.slice(0, acknowledged), digests: [] };
      }
    }
  };
  let { store, journal } = await openSim(disk);
  for (let round = 0; round < rounds; round++) {
    const chance = random();
    const compaction = chance < 0.06 ? journal.compact() : undefined;
    if (chance >= 0.06 && chance < 0.12) {
      await store.close();
      ({ store, journal } = await openSim(disk));
    } else {
      isFull = chance > 0.95 && !compaction;
      const writes = Array.from({ length: 1 + Math.floor(random() * 5) }, () => {
        return write(store, (ahead) => oneOperation(ahead, random));
      });
      await Promise.all(writes);
      isFull = false;
    }
    await compaction;
  }
  store.read.check();
  const digest = digestsOf(history).at(-1)!;
  await store.close();
  return { moments, digest };
}

const AT = Date.UTC(2026, 0, 1);

function oneOperation(ahead: Ahead, random: Random): Operation {
  const chance = random();
  const petId = 1 + Math.floor(random() * (ahead.counters.nextPetId - 1));
  const orderId = 1 + Math.floor(random() * (ahead.counters.nextOrderId - 1));
  const once = random() < 0.5 ? { caller: 'k1', key: `key-${random()}`, at: AT } : undefined;
  const usage = { key: 'k1', dayUsed: Math.floor(random() * 99), dayEndsAt: AT + 9, banStep: 0, banEndsAt: 0 };
  const some = (count: number) => Array.from({ length: count }, () => newPet(random));
  if (chance < 0.2 && ahead.pets.get(petId)?.status === 'available') {
    return { op: 'placeOrder', order: { id: ahead.counters.nextOrderId, petId, status: 'placed', placedAt: AT }, once };
  }
  if (chance < 0.35 && ahead.orders.get(orderId)?.status === 'placed') {
    return { op: 'closeOrder', id: orderId, status: random() < 0.5 ? 'delivered' : 'cancelled' };
  }
  if (chance < 0.4) return { op: 'setCategory', category: { id: BigInt(2 ** 60), name: `c${random()}` } };
  if (chance < 0.45) return { op: 'setKey', key: aKey(ahead.counters.nextSlot, random) };
  if (chance < 0.5 && ahead.counters.nextSlot > 0) return { op: 'usage', at: AT, entries: [usage] };
  if (chance < 0.53) return { op: 'addPets', first: ahead.counters.nextPetId, pets: some(3), once };
  if (chance < 0.54) return { op: 'fill', at: AT, categories: [{ id: 1, name: 'one' }], pets: some(2) };
  if (chance < 0.55 && ahead.counters.nextSlot > 0) return { op: 'advance', at: AT, key: 'k1', ms: 1_000, usage };
  return { op: 'addPet', pet: { id: ahead.counters.nextPetId, ...newPet(random) }, once };
}

function newPet(random: Random): NewPet {
  const name = `näme\u0000"${'x'.repeat(Math.floor(random() * 3) * 200)}${random()}`;
  const categoryId = random() < 0.3 ? 9223372036854775807n : Math.floor(random() * 9);
  return { name, categoryId, status: 'available' };
}

export function aKey(slot: number, random: Random): ApiKey {
  const limits = { perMinute: 60, perDay: 1000 };
  const about = { name: 'a', plan: 'free' as const, environment: 'staging' as const, createdAt: 1 };
  return { id: `k${slot + 1}`, slot, ...about, ...limits, secrets: [{ digest: `d${random()}` }] };
}
