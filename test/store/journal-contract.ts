/**
 * What every journal must do below a MemoryStore, whatever keeps the batches: several stores over one list of them, or
 * one, which then has nothing to collide with.
 */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { columnsOf } from '../../src/store/changes.ts';
import type { MemoryStore } from '../../src/store/memory.ts';
import type { Ahead } from '../../src/store/model.ts';
import { seeded } from '../faults/sim-disk.ts';
import { addKey, addPet, checked, order, pet } from './opened.ts';

interface Contract {
  name: string;
  /** How many stores may be open at once on one list. */
  stores: number;
  /** Makes a list of batches, empty at first. Gives what opens a store on it. */
  keep(t: TestContext): Promise<() => Promise<MemoryStore>>;
}

const ROUNDS = 40;
const AT = Date.UTC(2026, 0, 1);
const SEED = Number(process.env.SEED ?? Date.now() % 1e6);
const NAME = '  Rex\u0000 "ß" 🐶\n';

export function testJournal({ name, stores: count, keep }: Contract): void {
  const on = async (
    t: TestContext,
    work: (stores: MemoryStore[], open: () => Promise<MemoryStore>) => Promise<void>,
  ) => {
    const stores: MemoryStore[] = [];
    const keeping = await keep(t);
    const open = async () => {
      stores.push(await keeping());
      return stores.at(-1)!;
    };
    try {
      while (stores.length < count) await open();
      await work([...stores], open);
    } finally {
      await Promise.allSettled(stores.map((store) => store.close()));
    }
  };

  test(`${name}: no id twice, no animal ordered twice, one thing under an Idempotency-Key, equal digests`, (t) =>
    on(t, async (stores, open) => {
      t.diagnostic(`seed ${SEED}`);
      const random = seeded(SEED);
      const told: Told = { pets: [], ordered: [], once: new Map() };
      for (let round = 0; round < ROUNDS; round++) {
        await Promise.all(stores.flatMap((store) => someWrites(store, round, random, told)));
      }
      assert.equal(new Set(told.pets).size, told.pets.length, 'no id twice');
      assert.equal(new Set(told.ordered).size, told.ordered.length, 'no animal ordered twice');
      for (const [key, ids] of told.once) assert.equal(ids.size, 1, key);
      assert.equal(told.once.size, ROUNDS);
      await stores[0].write(() => ({ op: 'setCategory', category: { id: -9223372036854775808n, name: NAME } }));
      for (const store of stores) await addKey(store); // each hears of all that was written before
      await addKey(stores[0]);
      if (stores.length === 1) await stores[0].close();
      const proof = checked(await open());
      assert.deepEqual([proof.pets, proof.orders], [told.pets.length + ROUNDS, told.ordered.length]);
      assert.equal(checked(stores[0]).digest, proof.digest);
    }));

  test(`${name}: a fill and the lab's time are seen alike by all`, (t) =>
    on(t, async (stores) => {
      const [store] = stores;
      const once = { caller: 'k1', key: 'a', at: AT };
      await addKey(store);
      await store.write(() => ({ op: 'addPet', pet: pet(1), once }));
      const usage = { key: 'k1', dayUsed: 7, dayEndsAt: AT + 1, banStep: 0, banEndsAt: 0 };
      const aged = store.write(() => ({ op: 'advance', at: AT, key: 'k1', ms: 86_400_000, usage }));
      const again = store.write((ahead) => addOnce(ahead, once.key));
      await aged;
      assert.equal((await again).op, 'addPet', 'what is decided behind it sees what it leaves');
      const content = { categories: [{ id: 5, name: 'c' }], pets: columnsOf([pet(9, 'one')]) };
      const filled = store.write(() => ({ op: 'fill', at: AT, ...content }));
      const behind = addPet(store, 'two');
      await filled;
      assert.equal((await behind).pet.id, 2);
      for (const other of stores) {
        await addPet(other);
        assert.deepEqual(other.read.pets.get(1), pet(1, 'one'));
        assert.equal(other.read.keys.get('k1')?.clockAdvanceMs, 86_400_000);
        assert.deepEqual(other.read.usage.get('k1'), usage);
        const { orders, categories, keys } = checked(other);
        assert.deepEqual([orders, categories, keys], [0, 1, 1]);
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
    ...[1, 2, 3].map(() => addPet(store, NAME).then(({ pet }) => told.pets.push(pet.id))),
    order(store, petId).then(({ order }) => told.ordered.push(order.petId), expected),
    ...[1, 2].map(async () => {
      const decided = await store.write((ahead) => addOnce(ahead, key)).catch(expected);
      if (!decided) return;
      const id = decided.op === 'again' ? decided.made.id : decided.pet.id;
      told.once.set(key, (told.once.get(key) ?? new Set()).add(id));
    }),
  ];
}

function expected(error: Error): undefined {
  if (!/^order \d+: pet \d+ is (pending|missing)$/.test(error.message)) throw error;
}

function addOnce(ahead: Ahead, key: string) {
  const once = { caller: 'k1', key, at: AT };
  const made = ahead.firstResult('addPet', once);
  if (made) return { op: 'again' as const, made };
  return { op: 'addPet' as const, pet: pet(ahead.counters.nextPetId), once };
}
