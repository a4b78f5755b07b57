/** The memory store: what is decided on what, what waits for what, its time, and random changes on it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decode } from '../../src/store/change-json.ts';
import { columnsOf } from '../../src/store/changes.ts';
import { MemoryStore } from '../../src/store/memory.ts';
import {
  type Ahead,
  type Change,
  type FirstResult,
  type Journal,
  type KeptCategory,
  ORDER_STATUSES,
  type Order,
  PET_STATUSES,
  type Pet,
  type PetColumns,
  type Reading,
  StoreError,
} from '../../src/store/model.ts';
import { State } from '../../src/store/state.ts';
import { SetClock } from '../clock.ts';
import { type Random, seeded } from '../faults/sim-disk.ts';
import { oneChange } from '../faults/workload.ts';
import { addKey, addPet, aKey, check, is, order, pet, withStore } from './opened.ts';
import { SharedList } from './shared-journal.ts';

/** As the store has it. */
const MAX_WAITING_WRITES = 4096;
const HOUR_MS = 60 * 60 * 1000;
const DAY_MS = 24 * HOUR_MS;
/** Of the random changes. */
const SEED = Number(process.env.SEED ?? 11);
const ROUNDS = 200;

/** A journal that keeps nothing, and whose appends end when and as the test says. */
class Held implements Journal {
  batches: Change[][] = [];
  #end: { resolve(others?: Change[]): void; reject(error: Error): void } | undefined;
  take: (changes: Change[]) => void = () => {};

  async replay(): Promise<void> {}
  async close(): Promise<void> {}

  append(batch: Change[]): Promise<Change[] | undefined> {
    this.batches.push(batch);
    return new Promise((resolve, reject) => {
      this.#end = { resolve, reject };
    });
  }

  follow(take: (changes: Change[]) => void): void {
    this.take = take;
  }

  /** Resolves when a batch has come that has not ended. */
  async begun(): Promise<void> {
    while (!this.#end) await turn();
  }

  async end(others?: Change[] | Error): Promise<void> {
    await this.begun();
    const { resolve, reject } = this.#end!;
    this.#end = undefined;
    if (others instanceof Error) reject(others);
    else resolve(others);
    await turn();
  }
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

const refuse = (store: MemoryStore) =>
  store.write(() => {
    throw new Error('refused');
  });

async function held(): Promise<{ journal: Held; store: MemoryStore }> {
  const journal = new Held();
  return { journal, store: await MemoryStore.open(journal, { clock: new SetClock() }) };
}

test('a decision sees what was accepted before it, a reader only what is durable', () =>
  withStore({}, async ({ store }) => {
    const adds = [addPet(store, 'a'), addPet(store, 'b')];
    const ordered = order(store, 2);
    const seen = store.write((ahead) => {
      assert.equal(ahead.pets.get(2)?.status, 'pending');
      assert.equal(ahead.orders.get(1)?.status, 'placed');
      assert.equal(store.read.pets.get(1), undefined);
      return { op: 'closeOrder', id: 1, status: 'delivered' };
    });
    await Promise.all([...adds, ordered, seen]);
    assert.equal(store.read.pets.get(2)?.status, 'sold');
    assert.deepEqual(store.read.pets.page(0, 9, 'available').items, [pet(1, 'a')]);
    const before = store.read.pets.version;
    const key = (await addKey(store)).key;
    assert.equal(store.read.pets.version, before, 'a key changes no animal');
    await store.write((ahead) => {
      assert.equal(ahead.keys.get('k1'), store.read.keys.get('k1'), 'the identical object while nobody changes it');
      assert.deepEqual([...ahead.allKeys()], [key]);
      return { op: 'setKey', key: aKey(ahead.counters.nextSlot) };
    });
  }));

test('a refusal, or an answer given again, waits until what it rests on is durable', async () => {
  const { journal, store } = await held();
  const once = { caller: 'k1', key: 'a', at: 5 };
  const told: string[] = [];
  const tell = (what: string) => () => void told.push(what);
  const again = (ahead: Ahead) => ({ op: 'again' as const, made: ahead.firstResult('addPet', once) as FirstResult });
  const made = { id: 1, status: 'available', at: 5 };
  await assert.rejects(refuse(store), /refused/, 'where there is nothing to wait for');
  void store.write(() => ({ op: 'addPet', pet: pet(1), once })).then(tell('written'));
  refuse(store).catch(tell('refused'));
  void store.write(again).then(tell('again'));
  await journal.begun();
  const later = store.write(again);
  assert.deepEqual([told, store.read.firstResult('addPet', once)], [[], undefined]);
  await journal.end();
  assert.deepEqual(told, ['written', 'refused', 'again']);
  assert.deepEqual([(await later).made, store.read.firstResult('addPet', once)], [made, made]);
  assert.equal(journal.batches.length, 1, 'nothing was written for that');
});

test('what is durable and cannot be applied is a bug that ends it: nothing more is decided on what is not so', async () => {
  const { journal, store } = await held();
  store.read.apply = () => {
    throw new Error('a bug');
  };
  void addPet(store).finally(() => assert.fail('it is not told what became of it'));
  void addPet(store);
  const ended = assert.rejects(store.close(), /a bug/); // in a process nobody catches it
  await journal.end();
  await ended;
  assert.equal(journal.batches.length, 1);
});

test('after a conflict everything is decided again, refusals too; what a follower gave is decided on', async () => {
  const { journal, store } = await held();
  const first = addPet(store, 'ours');
  const refused = store.write((ahead) => {
    if (ahead.pets.get(1)?.name === 'ours') throw new Error('ours is there');
    return { op: 'setCategory', category: { id: 1, name: ahead.pets.get(1)!.name } };
  });
  await journal.end([{ op: 'addPet', pet: pet(1, 'theirs') }]);
  await journal.end();
  assert.equal((await first).pet.id, 2);
  assert.deepEqual(((await refused) as { category: object }).category, { id: 1, name: 'theirs' });
  const third = addPet(store);
  journal.take([{ op: 'addPet', pet: pet(3, 'theirs') }]);
  assert.equal(store.read.pets.get(3)?.name, 'theirs', 'seen before it is answered for');
  await journal.end();
  assert.equal((await third).pet.id, 4);
  const fifth = addPet(store);
  await journal.begun();
  journal.take([{ op: 'addPet', pet: pet(5, 'theirs') }]);
  await journal.end([]);
  await journal.end();
  assert.equal((await fifth).pet.id, 6);
});

test('what rests on a batch that failed goes with it; what waits is decided on what is kept', async () => {
  const { journal, store } = await held();
  for (const [failure, others] of [
    ['full', 'full'],
    ['unavailable', 'unavailable'],
    ['unknown', 'unavailable'],
  ] as const) {
    const batch = addPet(store);
    const inBatch = refuse(store);
    await journal.begun();
    const later = addPet(store);
    const all = Promise.allSettled([batch, inBatch]);
    await journal.end(new StoreError(failure, 'it failed'));
    const failures = (await all).map((one) => (one as PromiseRejectedResult).reason.failure);
    assert.deepEqual(failures, [failure, others]);
    await journal.end();
    assert.equal((await later).pet.id, store.read.counts().pets);
  }
});

test('a change that cannot be is refused before it is written, and one too large', () =>
  withStore({}, async ({ store }) => {
    await addPet(store);
    const usage = { key: 'k9', dayUsed: 1, dayEndsAt: 1, banStep: 0, banEndsAt: 0 };
    const named = (count: number) =>
      columnsOf(Array.from({ length: count }, () => ({ ...pet(2), name: 'x'.repeat(500) })));
    const huge = named(10_000);
    const impossible: Change[] = [
      { op: 'addPet', pet: pet(5) },
      { op: 'pets', first: 1, ...columnsOf([pet(1)]) },
      { op: 'pets', first: 5, ...columnsOf([pet(5)]), once: { caller: 'import', key: 'a:0', at: 1 } },
      { op: 'closeOrder', id: 1, status: 'delivered' },
      { op: 'setKey', key: aKey(-1) },
      { op: 'usage', at: 1, entries: [usage] },
      { op: 'advance', at: 1, key: 'k9', ms: 1, usage },
    ];
    const tooLarge: Change[] = [
      { op: 'pets', first: 2, ...huge },
      { op: 'fill', at: 1, categories: [], pets: huge },
    ];
    const write = (change: Change) => store.write(() => change);
    for (const one of impossible) await assert.rejects(write(one), /pet|order|key|usage/);
    for (const one of tooLarge) await assert.rejects(write(one), is('rejected'));
    const large = named(2_000);
    const reset = () => write({ op: 'fill', at: 1, categories: [], pets: large });
    for (const one of Array.from({ length: 12 }, reset)) await assert.rejects(one, is('busy'));
    assert.equal((await addPet(store)).pet.id, 2);
  }));

test('what waits is one batch, and has a maximum', async () => {
  const { journal, store } = await held();
  const first = addPet(store);
  await journal.begun();
  const writes = Array.from({ length: MAX_WAITING_WRITES - 1 }, () => addPet(store));
  const refused = refuse(store);
  await assert.rejects(addPet(store), is('busy'));
  await journal.end();
  void journal.end();
  await assert.rejects(refused, /refused/);
  await Promise.all([first, ...writes]);
  assert.deepEqual(
    journal.batches.map(({ length }) => length),
    [1, MAX_WAITING_WRITES - 1],
  );
});

test('a batch waits while each turn of the event loop brings a write, for five turns or 64 writes at most', async () => {
  const { journal, store } = await held();
  const writes: Promise<unknown>[] = [];
  const add = (count = 1) => writes.push(...Array.from({ length: count }, () => addPet(store)));
  const sizes: number[] = [];
  for (const each of [[1], [1, 1, 1], [1, 0, 1], [1, 1, 1, 1, 1, 1, 1], [1, 63, 1], [64, 1]]) {
    for (const count of each) {
      if (count > 0) add(count);
      await turn();
    }
    await journal.end(); // if all but the last was begun before, it leaves the rest
    sizes.push((journal.batches.at(-1) as Change[]).length);
    if (store.read.counts().pets < writes.length) await journal.end();
  }
  await Promise.all(writes);
  assert.deepEqual(sizes, [1, 3, 1, 5, 64, 64]);
});

test('closing takes nothing more, and waits for what was accepted', () =>
  withStore({}, async (opened) => {
    const writes = [addPet(opened.store), addPet(opened.store)];
    const closing = opened.store.close();
    await assert.rejects(addPet(opened.store), is('closed'));
    await Promise.all([...writes, closing]);
    await opened.crash();
    assert.equal(opened.store.read.counts().pets, 2);
    assert.deepEqual(opened.notices, []);
  }));

test('what was made under an Idempotency-Key is known for 24 hours of store time, through crash and compaction', () =>
  withStore({}, async (opened) => {
    const once = { caller: 'k1', key: 'one', at: opened.store.unix() };
    const made = (caller: string, at: number) =>
      opened.store
        .write((ahead) => {
          throw new Error(JSON.stringify(ahead.firstResult('addPet', { ...once, caller, at }) ?? 'nothing'));
        })
        .catch((error) => JSON.parse(error.message));
    await opened.store.write((ahead) => ({ op: 'addPet', pet: pet(ahead.counters.nextPetId), once }));
    for (const step of [async () => {}, opened.crash, () => opened.journal.compact(), opened.reopen]) {
      await step();
      assert.deepEqual(await made('k1', opened.store.unix()), { id: 1, status: 'available', at: once.at });
      assert.equal(await made('k2', opened.store.unix()), 'nothing');
    }
    opened.clock.advance(DAY_MS);
    assert.equal(await made('k1', opened.store.unix()), 'nothing');
    await opened.store.write(() => ({ op: 'usage', at: opened.store.unix(), entries: [] }));
    assert.equal(await made('k1', once.at), 'nothing', 'the record itself is gone');
  }));

test('expired idempotency records go a few at a time, the oldest first; one that was made again counts from then', () => {
  const state = new State();
  const add = (key: number, at: number) => {
    const once = { caller: 'k1', key: `${key}`, at };
    state.apply([{ op: 'addPet', pet: pet(state.counters.nextPetId), once }]);
    return state.idempotency.size;
  };
  for (let key = 0; key < 200; key++) add(key, key);
  const at = DAY_MS + 200;
  assert.deepEqual([add(150, at), add(150, at), add(150, at), add(150, at)], [136, 72, 8, 1]);
  assert.deepEqual([add(1, at + DAY_MS), add(2, at + 2 * DAY_MS)], [1, 1], 'also when all had gone');
});

test('store time runs on, whatever is done to the clock; a start follows it only where that is plausible', async () => {
  const list = new SharedList();
  const began = Date.UTC(2026, 0, 1);
  const at = async (wall: number) => {
    const clock = new SetClock(wall);
    const notices: string[] = [];
    const onNotice = (text: string) => void notices.push(text);
    return { clock, notices, store: await MemoryStore.open(list.journal(), { clock, onNotice }) };
  };
  const { clock, store } = await at(began);
  assert.equal(store.unix(), began, 'an empty store takes the clock as it stands');
  clock.setWall(began - 9 * DAY_MS);
  clock.advance(1_000);
  assert.equal(store.unix(), began + 1_000);
  await store.write(() => ({ op: 'usage', at: store.unix(), entries: [] }));
  const starts = [
    [began + 2_000, began + 2_000],
    [began, began + 1_000], // set back
    [began + 1_000 - 2 * DAY_MS, began + 1_000, '2 days before'],
    [began + 1_000 + 366 * DAY_MS, began + 1_000 + 366 * DAY_MS], // nobody came for a year
    [began + 1_001 + 366 * DAY_MS, began + 1_000, '366 days after'],
    [began + 4_000 * DAY_MS, began + 1_000, '4000 days after'],
  ] as const;
  for (const [wall, unix, notice] of starts) {
    const { store, notices } = await at(wall);
    assert.equal(store.unix(), unix);
    const told = notice && `the clock is ${notice} the last record of the store: time goes on from that record`;
    assert.deepEqual(notices, told === undefined ? [] : [told]);
  }
});

test('where the clock is years off the last record, what it moves between two runs counts', () =>
  withStore({}, async (opened) => {
    const began = opened.clock.wall();
    const write = () => opened.store.write(() => ({ op: 'usage', at: opened.store.unix(), entries: [] }));
    await write();
    const years = 4_000 * DAY_MS;
    /** Between two runs the clock is set from here to there; store time goes on by so much. */
    const runs: [from: number, to: number, passed: number, notice: string][] = [
      [began, began + years, 0, 'after'],
      [began + years, began + years + 40 * HOUR_MS, 40 * HOUR_MS, 'after'],
      [began, began + years, 0, 'after'], // set right, and wrong again
      [began - years, began - years + HOUR_MS, HOUR_MS, 'before'],
      [began - years + 5, began - years, 0, 'before'],
      [began + years, began + 2 * years, 0, 'after'],
    ];
    for (const ending of ['closed', 'crashed']) {
      for (const [from, to, passed, notice] of runs) {
        opened.clock.setWall(from);
        await write();
        await write(); // behind `LOCK`, which was written after the one before
        const before = opened.store.unix();
        if (ending === 'closed') await opened.store.close();
        opened.clock.setWall(to);
        opened.notices.length = 0;
        await opened.crash();
        const told = opened.notices.map((text) => / days (before|after) the last record/.exec(text)?.[1]);
        assert.deepEqual([opened.store.unix() - before, told], [passed, [notice]]);
      }
    }
    opened.clock.setWall(began + years);
    await write();
    await write();
    const before = opened.store.unix();
    opened.clock.setWall(began + years + HOUR_MS);
    for (const _ of ['once', 'again']) await opened.crash();
    assert.equal(opened.store.unix() - before, HOUR_MS, 'also where two runs after it have ended before any write');
    const ahead = opened.store.unix();
    opened.clock.setWall(ahead + HOUR_MS);
    await opened.reopen();
    assert.equal(opened.store.unix(), ahead + HOUR_MS, 'where the clock is right, it alone counts');
  }));

/** Arrays, filtered and sorted. */
class Plain {
  pets: Pet[] = [];
  orders: Order[] = [];
  categories: KeptCategory[] = [];

  #add(first: number, { names, categoryIds, statuses }: Record<keyof PetColumns, unknown[]>): void {
    for (const [i, name] of names.entries()) {
      this.pets.push({ id: first + i, name, categoryId: categoryIds[i], status: statuses[i] } as Pet);
    }
  }

  apply(change: Change): void {
    const petOf = (id: number) => this.pets.find((pet) => pet.id === id)!;
    if (change.op === 'addPet') this.pets.push({ ...change.pet });
    if (change.op === 'placeOrder') {
      this.orders.push({ ...change.order });
      petOf(change.order.petId).status = 'pending';
    }
    if (change.op === 'closeOrder') {
      const order = this.orders.find(({ id }) => id === change.id)!;
      order.status = change.status;
      petOf(order.petId).status = change.status === 'delivered' ? 'sold' : 'available';
    }
    if (change.op === 'setCategory') {
      this.categories = this.categories.filter(({ id }) => id !== change.category.id);
      this.categories.push({ ...change.category, by: change.by });
      this.categories.sort((a, b) => (a.id < b.id ? -1 : 1));
    }
    if (change.op === 'pets') this.#add(change.first, change);
    if (change.op === 'fill') {
      [this.pets, this.orders, this.categories] = [[], [], change.categories.map((one) => ({ ...one, by: undefined }))];
      this.#add(1, change.pets);
    }
  }
}

function decide(ahead: Ahead, random: Random): Change {
  const below = (n: number) => Math.floor(random() * n);
  const some = (max: number) =>
    Array.from({ length: 1 + below(max) }, (_, i) => ({ ...pet(0, `i${i}`, PET_STATUSES[below(3)]), categoryId: i }));
  if (random() < 0.05) return { op: 'pets', first: ahead.counters.nextPetId, ...columnsOf(some(900)) };
  if (random() < 0.003) return { op: 'fill', at: 1, categories: [], pets: columnsOf(some(3000)) };
  return oneChange(ahead, random);
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

test('random changes leave what a plain model holds, through crashes, closes and compactions', (t) => {
  t.diagnostic(`seed ${SEED}`);
  const random = seeded(SEED);
  const plain = new Plain();
  return withStore({}, async (opened) => {
    for (let round = 0; round < ROUNDS; round++) {
      const write = () => opened.store.write((ahead) => decide(ahead, random));
      const writes = Array.from({ length: 1 + Math.floor(random() * 6) }, write);
      for (const change of await Promise.all(writes)) plain.apply(change);
      compare(opened.store.read, plain, random);
      const chance = random();
      if (chance < 0.03) await opened.crash();
      else if (chance < 0.06) await opened.reopen();
      else if (chance < 0.09) await opened.journal.compact();
      if (chance < 0.09) await check(opened);
    }
    const { pets, orders, categories } = opened.store.read.counts();
    assert.deepEqual([pets, orders, categories], [plain.pets.length, plain.orders.length, plain.categories.length]);
  });
});

test('a key that an earlier version kept with an advanced clock is read with it', () => {
  const key = { id: 'k1', slot: 0, name: 'x', plan: 'free', perMinute: 1, perDay: 1, environment: 'production' };
  const line = { op: 'setKey', key: { ...key, createdAt: 1, secrets: [], ahead: 90_000 } };
  assert.deepEqual(decode(line), { op: 'setKey', key: { ...key, createdAt: 1, secrets: [], clockAdvanceMs: 90_000 } });
});
