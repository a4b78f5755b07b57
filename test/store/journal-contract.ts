/**
 * What every journal must do below a MemoryStore, whatever keeps the batches: several stores over one list of them, or
 * one, which then has nothing to collide with.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { MemoryStore } from '../../src/store/memory.ts';
import { type Ahead, type Made, StoreError } from '../../src/store/model.ts';
import { seeded } from '../faults/sim-disk.ts';
import { addKey, addPet, checked, pet } from './opened.ts';

/** A list of batches, empty at first, that stores are opened on. */
export interface Keeping {
  open(): Promise<MemoryStore>;
  /** Closes the stores, and removes what is kept. */
  remove(): Promise<void>;
}

interface Contract {
  name: string;
  /** How many stores may be open at once on one list. */
  stores: number;
  keep(): Promise<Keeping>;
}

const ROUNDS = 40;
const AT = Date.UTC(2026, 0, 1);
const SEED = Number(process.env.SEED ?? Date.now() % 1e6);

export function testJournal({ name, stores: count, keep }: Contract): void {
  const on = async (work: (stores: MemoryStore[], keeping: Keeping) => Promise<void>) => {
    const keeping = await keep();
    const stores: MemoryStore[] = [];
    try {
      for (let i = 0; i < count; i++) stores.push(await keeping.open());
      await work(stores, keeping);
    } finally {
      await Promise.allSettled(stores.map((store) => store.close()));
      await keeping.remove();
    }
  };

  test(`${name}: no id twice, no animal ordered twice, one thing under an Idempotency-Key, equal digests`, (t) =>
    on(async (stores, keeping) => {
      t.diagnostic(`seed ${SEED}`);
      const random = seeded(SEED);
      const told = { pets: [] as number[], ordered: [] as number[], once: new Map<string, Set<number>>() };
      for (let round = 0; round < ROUNDS; round++) {
        await Promise.all(stores.flatMap((store) => someWrites(store, round, random, told)));
      }
      assert.equal(new Set(told.pets).size, told.pets.length, 'no id twice');
      assert.equal(new Set(told.ordered).size, told.ordered.length, 'no animal ordered twice');
      for (const [key, ids] of told.once) assert.equal(ids.size, 1, key);
      assert.equal(told.once.size, ROUNDS);
      for (const store of stores) await addKey(store); // each hears of all that was written before
      await addKey(stores[0]);
      if (stores.length === 1) await stores[0].close();
      const proof = checked(await keeping.open());
      assert.deepEqual([proof.pets, proof.orders], [told.pets.length + ROUNDS, told.ordered.length]);
      assert.equal(checked(stores[0]).digest, proof.digest);
    }));

  test(`${name}: what one has acknowledged, whoever opens later reads`, () =>
    on(async ([store], keeping) => {
      await addPet(store, '  Rex\u0000 "ß" 🐶\n');
      await store.write(() => ({ op: 'setCategory', category: { id: -9223372036854775808n, name: 'far' } }));
      if (count === 1) await store.close();
      const { read } = await keeping.open();
      assert.deepEqual(read.pets.get(1), pet(1, '  Rex\u0000 "ß" 🐶\n'));
      assert.deepEqual(read.categories.page(undefined, 9).items, [{ id: -9223372036854775808n, name: 'far' }]);
    }));

  test(`${name}: a fill and the lab's time are seen alike by all`, () =>
    on(async (stores) => {
      const [store] = stores;
      const once = { caller: 'k1', key: 'a', at: AT };
      await addKey(store);
      await store.write(() => ({ op: 'addPet', pet: pet(1), once }));
      const usage = { key: 'k1', dayUsed: 7, dayEndsAt: AT + 1, banStep: 0, banEndsAt: 0 };
      const aged = store.write(() => ({ op: 'advance', at: AT, key: 'k1', ms: 86_400_000, usage }));
      const again = store.write((ahead) => ({
        op: 'addPet',
        pet: pet(ahead.counters.nextPetId),
        once: ahead.made('addPet', once) ? undefined : once,
      }));
      await aged;
      assert.deepEqual((await again).once, once, 'what is decided behind it sees what it leaves');
      const filled = store.write(() => ({
        op: 'fill',
        at: AT,
        categories: [{ id: 5, name: 'c' }],
        pets: [pet(9, 'one')],
      }));
      const behind = addPet(store, 'two');
      await filled;
      assert.equal((await behind).pet.id, 2);
      for (const other of stores) {
        await addPet(other);
        assert.deepEqual(other.read.pets.get(1), pet(1, 'one'));
        assert.equal(other.read.keys.get('k1')?.ahead, 86_400_000);
        assert.deepEqual(other.read.usage.get('k1'), usage);
        assert.deepEqual(
          { ...checked(other), digest: '', pets: 0 },
          { pets: 0, orders: 0, categories: 1, keys: 1, digest: '' },
        );
      }
    }));
}

interface Told {
  pets: number[];
  ordered: number[];
  once: Map<string, Set<number>>;
}

function someWrites(store: MemoryStore, round: number, random: () => number, told: Told): Promise<unknown>[] {
  const petId = 1 + Math.floor(random() * (round + 1));
  const key = `round ${round}`;
  return [
    ...[1, 2, 3].map(() => addPet(store).then(({ pet }) => told.pets.push(pet.id))),
    store.write((ahead) => orderOne(ahead, petId)).then(({ order }) => told.ordered.push(order.petId), expected),
    ...[1, 2].map(async () => {
      const decided = await store.write((ahead) => addOnce(ahead, key)).catch(expected);
      if (!decided) return;
      const id = decided.op === 'again' ? decided.made.id : decided.pet.id;
      told.once.set(key, (told.once.get(key) ?? new Set()).add(id));
    }),
  ];
}

function expected(error: Error): undefined {
  const isExpected = error.message === 'taken' || (error instanceof StoreError && error.failure === 'in_flight');
  if (!isExpected) throw error;
}

function orderOne(ahead: Ahead, petId: number) {
  if (ahead.pets.get(petId)?.status !== 'available') throw new Error('taken');
  const order = { id: ahead.counters.nextOrderId, petId, status: 'placed' as const, placedAt: AT };
  return { op: 'placeOrder' as const, order };
}

function addOnce(ahead: Ahead, key: string) {
  const once = { caller: 'k1', key, at: AT };
  const made: Made | 'accepted' | undefined = ahead.made('addPet', once);
  if (made === 'accepted') throw new StoreError('in_flight', 'under way');
  if (made) return { op: 'again' as const, made };
  return { op: 'addPet' as const, pet: pet(ahead.counters.nextPetId), once };
}
