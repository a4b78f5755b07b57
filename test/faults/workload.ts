/** A store on a simulated disk, worked on at random, with a photograph of the disk before and after every file call. */
import assert from 'node:assert/strict';
import { prove } from '../../src/store/change-json.ts';
import { columnsOf } from '../../src/store/changes.ts';
import type { Disk } from '../../src/store/file/disk.ts';
import { LOCK } from '../../src/store/file/lock.ts';
import { openStore } from '../../src/store/file/open.ts';
import { recover } from '../../src/store/file/rewrite.ts';
import { type Ahead, type Change, type IdempotencyKey, type NewPet, StoreError } from '../../src/store/model.ts';
import { State } from '../../src/store/state.ts';
import { SetClock } from '../clock.ts';
import { aKey } from '../store/opened.ts';
import { DIR, type Random, SimDisk } from './sim-disk.ts';

/** All changes that were accepted, in order. A refusal for want of room begins another one. */
interface History {
  changes: Change[];
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

export async function openSim(disk: SimDisk) {
  if (!disk.names.has(LOCK)) disk.close(await disk.create(LOCK)); // as flock needs it
  return openStore(DIR, { disk, clock: new SetClock(), markEveryMs: 0 });
}

/** What is found on the disk, checked. */
export async function recovered(disk: Disk, dir = DIR): Promise<State> {
  const state = new State();
  await recover(disk, dir, state);
  state.check();
  return state;
}

/** The digest after each number of changes. */
export function digestsOf(history: History): string[] {
  while (history.digests.length <= history.changes.length) {
    const state = new State();
    state.apply(history.changes.slice(0, history.digests.length));
    history.digests.push(prove(state).digest);
  }
  return history.digests;
}

/** Of how many writes to a file one finds no room, once one is acknowledged. */
const WRITES_WITH_ROOM = 25;

export async function work(random: Random, rounds: number): Promise<Moment[]> {
  const disk = new SimDisk();
  const moments: Moment[] = [];
  let history: History = { changes: [], digests: [] };
  let acknowledged = 0;
  disk.onCall = (call) => {
    moments.push({ disk: disk.copy(), history, acknowledged, sent: history.changes.length, call });
    if (call !== 'write done' || acknowledged === 0 || random() * WRITES_WITH_ROOM >= 1) return;
    throw Object.assign(new Error('ENOSPC: simulated'), { code: 'ENOSPC' });
  };
  let { store, journal } = await openSim(disk);
  const write = async () => {
    let place = 0;
    try {
      await store.write((ahead) => {
        const change = oneChange(ahead, random);
        place = history.changes.push(change);
        return change;
      });
      acknowledged = Math.max(acknowledged, place);
    } catch (error) {
      if (!(error instanceof StoreError && error.failure === 'full')) throw error;
      if (history.changes.length > acknowledged) {
        history = { changes: history.changes.slice(0, acknowledged), digests: [] };
      }
    }
  };
  for (let round = 0; round < rounds; round++) {
    const chance = random();
    const isFull = (error: Error) => assert.match(error.message, /ENOSPC|no room/);
    const compaction = chance < 0.08 ? journal.compact().catch(isFull) : undefined;
    if (chance >= 0.08 && chance < 0.25) {
      await store.close();
      ({ store, journal } = await openSim(disk));
    } else {
      await Promise.all(Array.from({ length: 1 + Math.floor(random() * 5) }, write));
    }
    await compaction;
  }
  store.read.check();
  await store.close();
  return moments;
}

const AT = Date.UTC(2026, 0, 1);

interface Chooser {
  ahead: Ahead;
  random: Random;
  once: IdempotencyKey | undefined;
}

const below = (random: Random, n: number) => Math.floor(random() * n);
const usageOf = (random: Random) => ({
  key: 'k1',
  dayUsed: below(random, 99),
  dayEndsAt: AT + 9,
  banStep: 0,
  banEndsAt: 0,
});
const some = (random: Random, count: number) => Array.from({ length: count }, () => newPet(random));
const hasKey = ({ counters }: Ahead) => counters.nextSlot > 0;

/**
 * How often each kind of change comes, and one of it; undefined where none is possible now. A kind without a row is a
 * compile error: what no crash was tried on is not known to survive one. `undefined`: only a whole state holds it.
 */
const KINDS: {
  [O in Change['op']]: [chance: number, make: (chooser: Chooser) => Extract<Change, { op: O }> | undefined] | undefined;
} = {
  placeOrder: [
    0.2,
    ({ ahead, random, once }) => {
      const petId = 1 + below(random, ahead.counters.nextPetId - 1);
      if (ahead.pets.get(petId)?.status !== 'available') return undefined;
      return {
        op: 'placeOrder',
        order: { id: ahead.counters.nextOrderId, petId, status: 'placed', placedAt: AT },
        once,
      };
    },
  ],
  closeOrder: [
    0.15,
    ({ ahead, random }) => {
      const id = 1 + below(random, ahead.counters.nextOrderId - 1);
      if (ahead.orders.get(id)?.status !== 'placed') return undefined;
      return { op: 'closeOrder', id, status: random() < 0.5 ? 'delivered' : 'cancelled' };
    },
  ],
  setCategory: [
    0.05,
    ({ random }) => {
      const id = random() < 0.5 ? 2n ** 60n + BigInt(below(random, 5)) : below(random, 20) - 10;
      const by = random() < 0.5 ? `k${1 + below(random, 2)}` : undefined;
      return { op: 'setCategory', category: { id, name: `c${random()}` }, by };
    },
  ],
  setKey: [
    0.05,
    ({ ahead, random }) => {
      return { op: 'setKey', key: aKey(ahead.counters.nextSlot, { secrets: [{ digest: `d${random()}` }] }) };
    },
  ],
  usage: [
    0.05,
    ({ ahead, random }) => (hasKey(ahead) ? { op: 'usage', at: AT, entries: [usageOf(random)] } : undefined),
  ],
  pets: [
    0.03,
    ({ ahead, random, once }) => {
      return { op: 'pets', first: ahead.counters.nextPetId, ...columnsOf(some(random, 3)), once };
    },
  ],
  fill: [
    0.01,
    ({ random }) => {
      return { op: 'fill', at: AT, categories: [{ id: 1, name: 'one' }], pets: columnsOf(some(random, 2)) };
    },
  ],
  advance: [
    0.01,
    ({ ahead, random }) =>
      hasKey(ahead) ? { op: 'advance', at: AT, key: 'k1', ms: 1_000, usage: usageOf(random) } : undefined,
  ],
  addPet: [0.45, addPet],
  orders: undefined,
  onces: undefined,
  shares: undefined,
};

/** Always possible: it stands in for a kind that is not. */
function addPet({ ahead, random, once }: Chooser): Extract<Change, { op: 'addPet' }> {
  return { op: 'addPet', pet: { id: ahead.counters.nextPetId, ...newPet(random) }, once };
}

export function oneChange(ahead: Ahead, random: Random): Change {
  const once = random() < 0.5 ? { caller: 'k1', key: `key-${random()}`, at: AT } : undefined;
  const chooser = { ahead, random, once };
  let left = random();
  for (const [chance, make] of Object.values(KINDS).filter((kind) => kind !== undefined)) {
    if (left < chance) return make(chooser) ?? addPet(chooser);
    left -= chance;
  }
  return addPet(chooser);
}

function newPet(random: Random): NewPet {
  const name = `näme\u0000"${'x'.repeat(Math.floor(random() * 3) * 200)}${random()}`;
  const categoryId = random() < 0.3 ? 9223372036854775807n : Math.floor(random() * 9);
  return { name, categoryId, status: 'available' };
}
