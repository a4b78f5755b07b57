/** Random operations against a plain model: arrays, filtered and sorted. The seed is printed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type Ahead,
  type Category,
  type NewPet,
  type Operation,
  ORDER_STATUSES,
  type Order,
  PET_STATUSES,
  type Pet,
  type Reading,
} from '../../src/store/model.ts';
import { type Random, seeded } from '../faults/sim-disk.ts';
import { check, withStore } from './opened.ts';

const SEED = Number(process.env.SEED ?? 11);
const ROUNDS = 600;

class Plain {
  pets: Pet[] = [];
  orders: Order[] = [];
  categories: Category[] = [];

  apply(operation: Operation): void {
    const petOf = (id: number) => this.pets.find((pet) => pet.id === id)!;
    if (operation.op === 'addPet') this.pets.push({ ...operation.pet });
    if (operation.op === 'placeOrder') {
      this.orders.push({ ...operation.order });
      petOf(operation.order.petId).status = 'pending';
    }
    if (operation.op === 'closeOrder') {
      const order = this.orders.find(({ id }) => id === operation.id)!;
      order.status = operation.status;
      petOf(order.petId).status = operation.status === 'delivered' ? 'sold' : 'available';
    }
    if (operation.op === 'setCategory') {
      this.categories = this.categories.filter(({ id }) => id !== operation.category.id);
      this.categories.push(operation.category);
      this.categories.sort((a, b) => (a.id < b.id ? -1 : 1));
    }
    if (operation.op === 'addPets') {
      for (const [i, pet] of operation.pets.entries()) this.pets.push({ ...pet, id: operation.first + i });
    }
    if (operation.op === 'fill') {
      this.pets = operation.pets.map((pet, i) => ({ ...pet, id: i + 1 }));
      this.orders = [];
      this.categories = [];
    }
  }
}

function some(random: Random, max: number): NewPet[] {
  return Array.from({ length: 1 + Math.floor(random() * max) }, (_, i) => {
    return { name: `i${i}`, categoryId: 2n ** 62n, status: PET_STATUSES[Math.floor(random() * 3)] };
  });
}

function decide(ahead: Ahead, random: Random): Operation {
  const below = (n: number) => Math.floor(random() * n);
  if (random() < 0.05) return { op: 'addPets', first: ahead.counters.nextPetId, pets: some(random, 900) };
  if (random() < 0.003) return { op: 'fill', at: 1, categories: [], pets: some(random, 3000) };
  const petId = 1 + below(ahead.counters.nextPetId - 1);
  const id = 1 + below(ahead.counters.nextOrderId - 1);
  const chance = random();
  if (chance < 0.3 && ahead.pets.get(petId)?.status === 'available') {
    return { op: 'placeOrder', order: { id: ahead.counters.nextOrderId, petId, status: 'placed', placedAt: below(9) } };
  }
  if (chance < 0.5 && ahead.orders.get(id)?.status === 'placed') {
    return { op: 'closeOrder', id, status: chance < 0.4 ? 'delivered' : 'cancelled' };
  }
  if (chance < 0.55) {
    const far = random() < 0.5 ? 2n ** 60n + BigInt(below(5)) : below(20) - 10;
    return { op: 'setCategory', category: { id: far, name: `c${below(9)}` } };
  }
  const status = PET_STATUSES[below(3)];
  return { op: 'addPet', pet: { id: ahead.counters.nextPetId, name: `n${below(99)}`, categoryId: below(9), status } };
}

function compare(read: Reading, plain: Plain, random: Random): void {
  const limit = 1 + Math.floor(random() * 30);
  const pageOf = <T>(items: T[]) => ({ items: items.slice(0, limit), more: items.length > limit });
  const after = Math.floor(random() * ((plain.pets.at(-1)?.id ?? 0) + 1));
  const of = <T extends { id: number; status: string }>(rows: T[], status?: string) =>
    pageOf(rows.filter((row) => row.id > after && (!status || row.status === status)));
  for (const status of [undefined, ...PET_STATUSES]) {
    assert.deepEqual(read.pets.page(after, limit, status), of(plain.pets, status));
  }
  for (const status of [undefined, ...ORDER_STATUSES]) {
    assert.deepEqual(read.orders.page(after, limit, status), of(plain.orders, status));
  }
  const from = random() < 0.3 ? undefined : plain.categories[0]?.id;
  const wanted = plain.categories.filter(({ id }) => from === undefined || id > from);
  assert.deepEqual(read.categories.page(from, limit), pageOf(wanted));
}

test('random operations leave what a plain model holds, through crashes, closes and compactions', (t) => {
  t.diagnostic(`seed ${SEED}`);
  const random = seeded(SEED);
  const plain = new Plain();
  return withStore({}, async (opened) => {
    for (let round = 0; round < ROUNDS; round++) {
      const count = 1 + Math.floor(random() * 6);
      const write = () => opened.store.write((ahead) => decide(ahead, random));
      for (const operation of await Promise.all(Array.from({ length: count }, write))) plain.apply(operation);
      compare(opened.store.read, plain, random);
      const chance = random();
      if (chance < 0.01) await opened.crash();
      else if (chance < 0.02) await opened.reopen();
      else if (chance < 0.03) await opened.journal.compact();
      if (chance < 0.03) await check(opened);
    }
    const [pets, orders, categories] = [plain.pets, plain.orders, plain.categories].map((rows) => rows.length);
    assert.deepEqual(opened.store.read.counts(), { pets, orders, categories, keys: 0 });
  });
});
