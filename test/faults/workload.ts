/** A store on a simulated disk, worked on at random, with a photograph of the disk before and after every file call. */
import { SetClock } from '../../src/clock.ts';
import { type Ahead, type Operation, StoreError } from '../../src/store/model.ts';
import { perform } from '../../src/store/operations.ts';
import { prove } from '../../src/store/snapshot.ts';
import { State } from '../../src/store/state.ts';
import { FileStore } from '../../src/store/store.ts';
import { type Random, SimDisk } from './sim-disk.ts';

export const DIR = '/sim';

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

export async function openSim(disk: SimDisk, clock = new SetClock()): Promise<FileStore> {
  return FileStore.open(DIR, { disk, clock, lock: false });
}

/** The digest after each number of operations; an import under way counts as never having been. */
export function digestsOf(history: History): string[] {
  while (history.digests.length <= history.operations.length) {
    const state = new State();
    for (const operation of history.operations.slice(0, history.digests.length)) perform(operation, state);
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
  const write = (store: FileStore, decide: (ahead: Ahead) => Operation) => {
    const decided = store.write((ahead) => {
      const operation = decide(ahead);
      history.operations.push(operation);
      return operation;
    });
    const place = history.operations.length;
    return decided.then(
      () => {
        acknowledged = Math.max(acknowledged, place);
      },
      (error) => {
        if (!(error instanceof StoreError)) throw error;
        if (history.operations.length > acknowledged) {
          history = { operations: history.operations.slice(0, acknowledged), digests: [] };
        }
      },
    );
  };
  let store = await openSim(disk);
  for (let round = 0; round < rounds; round++) {
    const chance = random();
    if (chance < 0.06) await store.compact();
    else if (chance < 0.12) {
      await store.close();
      store = await openSim(disk);
    } else {
      isFull = chance > 0.95;
      const name = `import ${random()}`;
      const writes = random() < 0.1 ? anImport(name, random) : someWrites(random);
      await Promise.all(writes.map((decide) => write(store, decide)));
      store.forgetImport(name); // it may not have come to its end
      isFull = false;
    }
  }
  store.check();
  const digest = digestsOf(history).at(-1)!;
  await store.close();
  return { moments, digest };
}

type Decide = (ahead: Ahead) => Operation;

function someWrites(random: Random): Decide[] {
  const count = 1 + Math.floor(random() * 5);
  return Array.from({ length: count }, () => (ahead: Ahead) => oneOperation(ahead, random));
}

function anImport(name: string, random: Random): Decide[] {
  const count = 3 + Math.floor(random() * 4);
  const part =
    (size: number): Decide =>
    () => ({ op: 'importPart', import: name, pets: Array.from({ length: size }, () => newPet(random)) });
  const parts = [part(2), part(count - 2)];
  if (random() < 0.3) return parts;
  return [...parts, (ahead) => ({ op: 'endImport', import: name, first: ahead.nextPetId(), count })];
}

function oneOperation(ahead: Ahead, random: Random): Operation {
  const chance = random();
  const wall = Date.UTC(2026, 0, 1);
  const petId = 1 + Math.floor(random() * (ahead.nextPetId() - 1));
  const orderId = 1 + Math.floor(random() * (ahead.nextOrderId() - 1));
  const once = random() < 0.5 ? { caller: 'k1', key: `key-${random()}`, at: wall } : undefined;
  if (chance < 0.2 && ahead.pet(petId)?.status === 'available') {
    return { op: 'placeOrder', order: { id: ahead.nextOrderId(), petId, status: 'placed', placedAt: wall }, once };
  }
  if (chance < 0.35 && ahead.order(orderId)?.status === 'placed') {
    return { op: 'closeOrder', id: orderId, status: random() < 0.5 ? 'delivered' : 'cancelled' };
  }
  if (chance < 0.4) return { op: 'setCategory', category: { id: BigInt(2 ** 60), name: `c${random()}` } };
  if (chance < 0.45) return { op: 'setKey', key: aKey(ahead.keyCount(), random) };
  if (chance < 0.5 && ahead.keyCount() > 0) {
    const entry = { key: 'k1', dayUsed: 5, dayEndsAt: wall + 9, banStep: 0, banEndsAt: 0 };
    return { op: 'usage', at: wall, entries: [entry] };
  }
  return { op: 'addPet', pet: { id: ahead.nextPetId(), ...newPet(random) }, once };
}

function newPet(random: Random) {
  const name = `näme\u0000"${'x'.repeat(Math.floor(random() * 3) * 200)}${random()}`;
  const categoryId = random() < 0.3 ? 9223372036854775807n : Math.floor(random() * 9);
  return { name, categoryId, status: 'available' as const };
}

function aKey(slot: number, random: Random) {
  const limits = { perMinute: 60, perDay: 1000 };
  const about = { name: 'a', plan: 'free' as const, environment: 'staging' as const, createdAt: 1 };
  return { id: `k${slot + 1}`, slot, ...about, ...limits, secrets: [{ digest: `d${random()}` }] };
}
