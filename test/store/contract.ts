/** What every engine promises of a store. Both engines run it. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { DAY_MS } from '../../src/clock.ts';
import type { Engine, EngineOptions, Proof } from '../../src/store/engine.ts';
import {
  type Id,
  type Order,
  type Page,
  type Row,
  type StoreError,
  schemaOf,
  type TableName,
} from '../../src/store/model.ts';
import { below, choose, type Random, seeded } from '../random.ts';
import { INT64S, newKey, newReplay, PLACED_AT, PlainStore, randomWork, STATUSES } from './plain-model.ts';

/** Where one store is, over restarts. */
export interface Place {
  open(options?: Partial<EngineOptions>): Promise<Engine>;
  restore(lines: AsyncIterable<Uint8Array>): Promise<Proof>;
}

export interface EngineUnderTest {
  readonly name: string;
  /** True if several engines can be open at one place. */
  readonly hasReplicas: boolean;
  newPlace(): Place | Promise<Place>;
}

const SEED = Number(process.env.STORE_SEED ?? 1 + Math.floor(Math.random() * 1e6));
const ROUNDS = 6;
const WORKS = 80;
const rex = { name: 'Rex', categoryId: 1, status: 'available' as const };

/** What a function gives, or the message with which it fails. */
async function outcome<T>(run: () => T | Promise<T>): Promise<T | string> {
  try {
    return await run();
  } catch (error) {
    return (error as Error).message;
  }
}

/** Keeps all pieces of a backup, and returns them with its proof. */
export async function backedUp(engine: Pick<Engine, 'backup'>): Promise<{ pieces: Uint8Array[]; proof: Proof }> {
  const lines = engine.backup();
  const pieces: Uint8Array[] = [];
  for (;;) {
    const { done, value } = await lines.next();
    if (done) return { pieces, proof: value };
    pieces.push(value);
  }
}

export const proofOf = async (engine: Pick<Engine, 'backup'>): Promise<Proof> => (await backedUp(engine)).proof;

/** The rows of a page, as a plain model gives them. */
export function rowsOf(name: TableName, { texts, next }: Page<Id>): { items: Row[]; more: boolean } {
  const items = texts.map(schemaOf(name).parse);
  if (next !== undefined) assert.equal(next, items.at(-1)?.id);
  return { items, more: next !== undefined };
}

export async function* streamed(pieces: Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* pieces;
}

export function storeContract(under: EngineUnderTest): void {
  const { name, hasReplicas } = under;

  /** Engines at one place: two where that can be. */
  async function openBoth(place: Place): Promise<Engine[]> {
    const one = await place.open();
    return hasReplicas ? [one, await place.open()] : [one];
  }
  const closeAll = async (engines: Engine[]) => {
    for (const engine of engines) await engine.close();
  };

  describe(`a store on ${name}`, () => {
    test('does what a plain model does, transaction by transaction and over restarts', async (t) => {
      t.diagnostic(`STORE_SEED=${SEED}`);
      const random = seeded(SEED);
      const place = await under.newPlace();
      const plain = new PlainStore();
      for (let round = 0; round < ROUNDS; round++) {
        const engine = await place.open();
        const { store } = engine;
        compareReads(engine, plain, random);
        for (let n = 0; n < WORKS; n++) {
          const work = randomWork(below(random, 2 ** 31), store.now());
          assert.deepEqual(await outcome(() => store.write(work)), await outcome(() => plain.write(work)));
          compareReads(engine, plain, random);
        }
        await engine.close();
      }
    });

    test('gives ids without gaps and doubles to concurrent writers, and none for what is refused', async () => {
      const place = await under.newPlace();
      const engines = await openBoth(place);
      const refused = new Error('refused');
      const writer = async (number: number) => {
        const ids: number[] = [];
        for (let n = 0; n < 40; n++) {
          const write = engines[number % engines.length].store.write((tx) => {
            const { id } = tx.pets.add(rex);
            if (n % 4 === 3) throw refused;
            return id;
          });
          const id = await write.catch((error) => assert.equal(error, refused));
          if (id !== undefined) ids.push(id);
        }
        return ids;
      };
      const ids = (await Promise.all(Array.from({ length: 16 }, (_, number) => writer(number)))).flat();
      assert.deepEqual(
        ids.sort((a, b) => a - b),
        Array.from(ids, (_, index) => index + 1),
      );
      await closeAll(engines);
    });

    test('shows what was acknowledged to every later reader, and nothing before', async () => {
      const engine = await (await under.newPlace()).open();
      const { store } = engine;
      for (let n = 1; n <= 20; n++) {
        const write = store.write((tx) => tx.pets.add(rex));
        assert.equal(store.read.pets.get(n), undefined);
        const pet = await write;
        assert.deepEqual(store.read.pets.get(n), pet);
        assert.equal(store.read.pets.size, n);
      }
      await engine.close();
    });

    test('keeps 64-bit integers exact, and finds keys by the digests that they have now', async () => {
      const place = await under.newPlace();
      let engine = await place.open();
      for (const id of INT64S) {
        await engine.store.write((tx) => tx.categories.put({ id, name: String(id) }));
        await engine.store.write((tx) => tx.pets.add({ ...rex, categoryId: id }));
      }
      const key = await engine.store.write((tx) => tx.keys.add(newKey('first')));
      await engine.store.write((tx) => tx.keys.put({ ...tx.keys.get(key.id)!, secrets: [{ digest: 'second' }] }));
      for (let run = 0; run < 2; run++) {
        const { read } = engine.store;
        assert.deepEqual(
          rowsOf('categories', read.categories.page({ limit: 99 })).items.map(({ id }) => id),
          [...INT64S].sort((a, b) => (a < b ? -1 : 1)),
        );
        for (const [index, id] of INT64S.entries()) assert.equal(read.pets.get(index + 1)?.categoryId, id);
        assert.equal(read.keys.find('second')?.id, key.id);
        assert.equal(read.keys.find('first'), undefined);
        await engine.close();
        engine = await place.open();
      }
      await engine.close();
    });

    test('finds the placed order of an animal as the transaction leaves it', async () => {
      const engine = await (await under.newPlace()).open();
      const place = (petId: number) => ({ petId, status: 'placed' as const, placedAt: PLACED_AT });
      const found = await engine.store.write((tx) => {
        const order = tx.orders.add(place(1));
        const before = [tx.orders.find(1)?.id, tx.orders.find(2)];
        tx.orders.put({ ...order, status: 'cancelled' });
        return [...before, tx.orders.find(1)];
      });
      assert.deepEqual(found, [1, undefined, undefined]);
      await engine.store.write((tx) => tx.orders.add(place(1)));
      const later = await engine.store.write((tx) => {
        const durable = tx.orders.find(1)?.id;
        tx.orders.delete(2);
        const removed = tx.orders.find(1);
        tx.orders.add(place(2));
        return [durable, removed, tx.orders.find(2)?.id];
      });
      assert.deepEqual(later, [2, undefined, 3]);
      await engine.close();
    });

    test('never gives an id again, whatever was removed', async () => {
      const place = await under.newPlace();
      let engine = await place.open();
      await engine.store.write((tx) => [tx.pets.add(rex), tx.pets.add(rex), tx.pets.add(rex), tx.pets.add(rex)]);
      await engine.store.write((tx) => [2, 4].forEach((id) => void tx.pets.delete(id)));
      await engine.store.write((tx) => {
        const { id } = tx.pets.add(rex);
        tx.pets.delete(id);
        assert.equal(tx.pets.get(id), undefined);
      });
      for (const compacts of [false, true]) {
        if (compacts) await engine.compact();
        await engine.close();
        engine = await place.open();
        const { pets } = engine.store.read;
        assert.deepEqual([pets.size, pets.lastId, pets.get(2), pets.get(4)], [2, 5, undefined, undefined]);
        assert.deepEqual(rowsOf('pets', pets.page({ after: 1, limit: 9 })), {
          items: [{ id: 3, ...rex }],
          more: false,
        });
      }
      assert.equal((await engine.store.write((tx) => tx.pets.add(rex))).id, 6);
      await engine.close();
    });

    test('refuses rows that no start would accept, and leaves nothing of a transaction that throws', async () => {
      const engine = await (await under.newPlace()).open();
      const { store } = engine;
      await store.write((tx) => tx.pets.add(rex));
      const bad = [
        { name: 'a\u0000b' },
        { name: '\ud800' },
        { name: 'x'.repeat(511) },
        { name: undefined },
        { categoryId: 5n },
        { categoryId: 2n ** 63n },
        { categoryId: 1.5 },
        { status: 'lost' },
        { color: 'red' },
      ];
      for (const wrong of bad) {
        const add = store.write((tx) => {
          tx.pets.put({ id: 1, ...rex, name: 'changed' });
          tx.categories.put({ id: 7, name: 'new' });
          tx.pets.delete(1);
          tx.pets.add({ ...rex, ...wrong } as never);
        });
        await assert.rejects(add, /must be|is unknown/, JSON.stringify(Object.keys(wrong)));
      }
      await assert.rejects(
        store.write(async () => {}),
        /must be synchronous/,
      );
      // Too late to change anything.
      const tx = await store.write((tx) => tx);
      tx.categories.put({ id: 1, name: 'late' });
      assert.deepEqual(rowsOf('pets', store.read.pets.page({ limit: 9 })).items, [{ id: 1, ...rex }]);
      assert.equal(store.read.categories.size, 0);
      assert.equal((await store.write((tx) => tx.pets.add(rex))).id, 2);
      await engine.close();
    });

    test('counts replays for 24 hours, by key', async () => {
      const place = await under.newPlace();
      let engine = await place.open();
      const now = engine.store.now();
      const old = newReplay('addPet k1 old', 1, now - DAY_MS);
      const live = newReplay('addPet k1 live', 1, now - DAY_MS + 3_600_000);
      await engine.store.write((tx) =>
        [old, live, newReplay('addPet k2 x', 2, now)].forEach(tx.replays.put, tx.replays),
      );
      for (let run = 0; run < 2; run++) {
        const { replays } = engine.store.read;
        assert.equal(await engine.store.write((tx) => tx.replays.get(old.id)), undefined);
        assert.deepEqual(replays.get(live.id), live);
        assert.deepEqual(replays.ofKey(1), { size: 1, oldestAt: live.at });
        assert.deepEqual(replays.ofKey(3).size, 0);
        await engine.close();
        engine = await place.open();
      }
      await engine.close();
    });

    test('closes with all that was accepted durable, and takes nothing more', async () => {
      const place = await under.newPlace();
      const engine = await place.open();
      const writes = Array.from({ length: 50 }, () => engine.store.write((tx) => tx.pets.add(rex)));
      await engine.close();
      await assert.rejects(
        engine.store.write((tx) => tx.pets.add(rex)),
        ({ failure }: StoreError) => failure === 'closed',
      );
      await Promise.all(writes);
      const again = await place.open();
      assert.equal(again.store.read.pets.size, 50);
      await again.close();
    });

    test('moves by a backup, with the same digest, and restores nothing onto what is not empty', async () => {
      const place = await under.newPlace();
      const engine = await place.open();
      const random = seeded(SEED);
      for (let n = 0; n < WORKS; n++) {
        await engine.store.write(randomWork(below(random, 2 ** 31), engine.store.now())).catch(() => {});
      }
      await engine.store.write((tx) => tx.pets.delete(tx.pets.add(rex).id));
      const { pieces, proof } = await backedUp(engine);
      assert.deepEqual(await proofOf(engine), proof);
      const { lastId } = engine.store.read.pets;
      await engine.close();
      await assert.rejects(place.restore(streamed(pieces)), /not empty/);

      const other = await under.newPlace();
      const cut = [...pieces.slice(0, -1), pieces[pieces.length - 1].subarray(0, -9)];
      await assert.rejects(other.restore(streamed(cut)), /damaged data/);
      await assert.rejects(other.restore(streamed([Buffer.from('a picture')])), /it is no backup/i);
      assert.deepEqual(await other.restore(streamed(pieces)), proof);
      const moved = await other.open();
      const again = await backedUp(moved);
      assert.deepEqual(again.proof, proof);
      const [idBefore, idNow] = [pieces, again.pieces].map(([header]) => JSON.parse(header.toString()).store);
      assert.notEqual(idNow, idBefore);
      assert.equal((await moved.store.write((tx) => tx.pets.add(rex))).id, lastId + 1);
      await moved.close();
    });
  });
}

function compareReads({ store: { read } }: Engine, plain: PlainStore, random: Random): void {
  const row = (name: TableName, id: Id): Row | undefined => plain.tables[name].get(id);
  const [id, limit, big] = [1 + below(random, 30), 1 + below(random, 10), choose(random, INT64S)];
  const status = choose(random, [...STATUSES, undefined]);
  assert.deepEqual(read.pets.get(id), row('pets', id));
  assert.deepEqual(read.orders.get(id), row('orders', id));
  const orders = plain.page('orders', undefined, Number.POSITIVE_INFINITY, 'placed').items as Order[];
  const placed = orders.find(({ petId }) => petId === id);
  assert.deepEqual(read.orders.find(id), placed);
  assert.deepEqual(read.categories.get(big), row('categories', big));
  assert.deepEqual(read.keys.get(id), row('keys', id));
  const replay = `addPet k${1 + (id % 3)} once-${id}`;
  assert.deepEqual(read.replays.get(replay), row('replays', replay));
  const page = read.pets.page({ after: id, limit, status });
  assert.deepEqual(rowsOf('pets', page), plain.page('pets', id, limit, status));
  assert.deepEqual(rowsOf('orders', read.orders.page({ limit })), plain.page('orders', undefined, limit));
  const after = random() < 0.5 ? big : undefined;
  assert.deepEqual(
    rowsOf('categories', read.categories.page({ after, limit })),
    plain.page('categories', after, limit),
  );
  assert.deepEqual([...read.keys.all()], plain.page('keys', undefined, Number.POSITIVE_INFINITY).items);
  for (const name of ['pets', 'orders', 'keys'] as const) assert.equal(read[name].lastId, plain.lastIds[name]);
  for (const name of ['pets', 'orders', 'keys', 'categories', 'replays'] as const) {
    assert.equal(read[name].size, plain.tables[name].size, name);
  }
  const keyId = 1 + below(random, 3);
  const ofKey = [...plain.tables.replays.values()].filter((replay) => (replay as { keyId: number }).keyId === keyId);
  assert.equal(read.replays.ofKey(keyId).size, ofKey.length);
}
