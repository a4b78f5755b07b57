import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, renameSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { test } from 'node:test';
import { MAX_BATCH_RECORDS } from '../../src/store/commit.ts';
import { type Disk, realDisk } from '../../src/store/disk.ts';
import { compactFiles } from '../../src/store/generation.ts';
import { type Ahead, type NewPet, StoreError } from '../../src/store/model.ts';
import { ONCE_MS } from '../../src/store/onces.ts';
import { readSnapshot } from '../../src/store/read-snapshot.ts';
import { recover } from '../../src/store/recovery.ts';
import { addPet, check, order, pet, withStore } from './opened.ts';

const ABOUT = { name: 'a', plan: 'free', environment: 'staging', createdAt: 1 } as const;
const KEY = { ...ABOUT, perMinute: 60, perDay: 1_000 };

test('what was written is read, exact to the last digit, after a close and after a crash', () =>
  withStore({}, async (opened) => {
    const write = opened.store.write((ahead) => ({
      op: 'addPet' as const,
      pet: { ...pet(ahead.nextPetId(), '  Rex\u0000 "ß" 🐶\n'), categoryId: 9007199254740993n },
    }));
    assert.equal(opened.store.read.counts().pets, 0, 'nothing is shown that is not durable');
    const { pet: added } = await write;
    const before = opened.store.read.petsVersion;
    await opened.store.write(() => ({ op: 'setCategory', category: { id: -9223372036854775808n, name: 'far' } }));
    assert.equal(opened.store.read.petsVersion, before, 'a category changes no animal');
    for (const again of [opened.reopen, opened.crash, opened.crash, opened.reopen]) {
      await again();
      assert.deepEqual(opened.store.read.pet(1), added);
      assert.deepEqual(opened.store.read.categories(undefined, 9).items, [{ id: -9223372036854775808n, name: 'far' }]);
    }
  }));

test('a decision sees what was accepted before it, a reader only what is durable', () =>
  withStore({}, async ({ store }) => {
    const adds = [addPet(store, 'a'), addPet(store, 'b')];
    const ordered = order(store, 2);
    const seen = store.write((ahead) => {
      assert.equal(ahead.pet(2)?.status, 'pending');
      assert.equal(ahead.order(1)?.status, 'placed');
      assert.equal(store.read.pet(1), undefined);
      return { op: 'closeOrder', id: 1, status: 'delivered' };
    });
    await Promise.all([...adds, ordered, seen]);
    assert.equal(store.read.pet(2)?.status, 'sold');
    assert.deepEqual(store.read.pets(0, 9, 'available').items, [pet(1, 'a')]);
  }));

test('a refusal that rests on something not yet durable waits until it is', () =>
  withStore({}, async ({ store }) => {
    await addPet(store);
    const first = order(store, 1);
    let isDurable = false;
    void first.then(() => {
      isDurable = true;
    });
    const second = store.write((ahead) => {
      if (ahead.pet(1)?.status !== 'available') throw new Error('taken');
      throw new Error('not reached');
    });
    await assert.rejects(second, /taken/);
    assert.ok(isDurable);
    await first;
  }));

test('an operation that cannot be is refused before it is written', () =>
  withStore({}, async ({ store }) => {
    await addPet(store);
    const impossible = [
      () => store.write(() => ({ op: 'addPet', pet: pet(5) })),
      () => store.write(() => ({ op: 'closeOrder', id: 1, status: 'delivered' })),
      () => store.write(() => ({ op: 'seed', categories: [], pets: [pet(2)] })),
      () => store.write(() => ({ op: 'endImport', import: 'none', first: 2, count: 1 })),
    ];
    for (const attempt of impossible) await assert.rejects(attempt(), /cannot be/);
    assert.equal(store.read.counts().pets, 1);
  }));

test('one too large for a record is rejected, and the next one goes on', () =>
  withStore({}, async ({ store }) => {
    const huge = addPet(store, 'x'.repeat(5_000_000));
    await assert.rejects(huge, (error) => error instanceof StoreError && error.failure === 'rejected');
    await addPet(store);
    assert.equal(store.read.counts().pets, 1);
  }));

test('no room: the batch and what rests on it are refused as full, and the next write tries again', async () => {
  let isFull = false;
  const disk: Disk = {
    ...realDisk,
    async write(fd, bytes, position) {
      if (!isFull) return realDisk.write(fd, bytes, position);
      await realDisk.write(fd, bytes.subarray(0, bytes.length / 2), position);
      throw Object.assign(new Error('no space'), { code: 'ENOSPC' });
    },
  };
  await withStore({ disk }, async (opened) => {
    const { store } = opened;
    await addPet(store, 'kept');
    isFull = true;
    const refused = [addPet(store), order(store, 1)];
    for (const write of refused) {
      await assert.rejects(write, (error) => error instanceof StoreError && error.failure === 'full');
    }
    assert.equal(store.read.pet(1)?.status, 'available');
    await check(opened);
    isFull = false;
    assert.equal((await addPet(store, 'next')).pet.id, 2);
    await opened.crash();
  });
});

test('a failed fdatasync: unknown, told once, and nothing is taken any more', async () => {
  let fails = false;
  const disk: Disk = {
    ...realDisk,
    sync: (fd) => (fails ? Promise.reject(Object.assign(new Error('EIO'), { code: 'EIO' })) : realDisk.sync(fd)),
  };
  const fatal: string[] = [];
  await withStore({ disk, onFatal: (error) => fatal.push(error.failure) }, async (opened) => {
    await addPet(opened.store);
    fails = true;
    const is = (failure: string) => (error: unknown) => error instanceof StoreError && error.failure === failure;
    await assert.rejects(addPet(opened.store), is('unknown'));
    await assert.rejects(addPet(opened.store), is('closed'), 'this one is surely not kept');
    assert.deepEqual(fatal, ['unknown']);
    assert.equal(opened.store.read.counts().pets, 1, 'reads go on until the process ends');
    await assert.rejects(opened.store.close(), is('unknown'), 'no end that looks like a good one');
    fails = false;
    await opened.crash();
    assert.ok(opened.store.read.counts().pets >= 1);
  });
});

test('a failed fdatasync of the next log is no less: nothing is taken any more, and closing says so', async () => {
  let fails = false;
  const disk: Disk = { ...realDisk, sync: (fd) => (fails ? Promise.reject(new Error('EIO')) : realDisk.sync(fd)) };
  const fatal: string[] = [];
  await withStore({ disk, onFatal: (error) => fatal.push(error.failure) }, async (opened) => {
    await addPet(opened.store);
    fails = true;
    await assert.rejects(opened.store.compact(), /a new log could not be written: EIO/);
    fails = false;
    assert.deepEqual(fatal, ['unknown']);
    await assert.rejects(addPet(opened.store), (error) => error instanceof StoreError && error.failure === 'closed');
    await assert.rejects(opened.store.close(), /a new log could not be written/);
    await opened.crash();
    assert.equal(opened.store.read.counts().pets, 1);
  });
});

test('what was made under an Idempotency-Key is known for 24 hours, through crash and compaction', () =>
  withStore({}, async (opened) => {
    const { clock } = opened;
    const began = clock.wall();
    const once = (key: string) =>
      opened.store.write((ahead) => {
        assert.equal(ahead.inFlight('addPet', 'k1', key), false);
        return { op: 'addPet', pet: pet(ahead.nextPetId()), once: { caller: 'k1', key, at: clock.wall() } };
      });
    const first = once('one');
    await assert.rejects(
      opened.store.write((ahead) => {
        assert.ok(ahead.inFlight('addPet', 'k1', 'one'));
        throw new Error('in flight');
      }),
      /in flight/,
    );
    await first;
    const made = { id: 1, status: 'available', at: began };
    for (const step of [async () => {}, opened.crash, () => opened.store.compact(), opened.reopen]) {
      await step();
      assert.deepEqual(opened.store.read.made('addPet', 'k1', 'one', clock.wall()), made);
      assert.equal(opened.store.read.made('addPet', 'k2', 'one', clock.wall()), undefined);
      assert.equal(opened.store.read.made('placeOrder', 'k1', 'one', clock.wall()), undefined);
    }
    clock.advance(ONCE_MS);
    assert.equal(opened.store.read.made('addPet', 'k1', 'one', clock.wall()), undefined);
    await opened.store.compact();
    assert.equal(opened.store.read.made('addPet', 'k1', 'one', began), undefined, 'the record itself is gone');
  }));

test('an import is seen all at once or never, behind the animals that were added before its end', () =>
  withStore({}, async (opened) => {
    const part = (name: string, count: number) => {
      const pets = Array.from({ length: count }, (): NewPet => ({ name, categoryId: 1, status: 'sold' }));
      return opened.store.write(() => ({ op: 'importPart', import: name, pets }));
    };
    const end = (name: string, count: number) =>
      opened.store.write((ahead) => ({ op: 'endImport', import: name, first: ahead.nextPetId(), count }));
    await addPet(opened.store);
    await part('one', 2);
    await part('two', 1);
    await part('one', 1);
    assert.equal((await addPet(opened.store)).pet.id, 2);
    assert.deepEqual([opened.store.read.pet(3), opened.store.read.counts().pets], [undefined, 2]);
    await assert.rejects(opened.store.compact(), /import is under way/);
    await assert.rejects(end('one', 4), /it has 3 animals, not 4/);
    const ended = end('one', 3);
    const added = addPet(opened.store);
    assert.deepEqual([((await ended) as { first: number }).first, (await added).pet.id], [3, 6]);
    const idsNamed = (name: string) =>
      opened.store.read.pets(0, 9).items.flatMap((one) => (one.name === name ? one.id : []));
    assert.deepEqual(idsNamed('one'), [3, 4, 5]);
    await assert.rejects(end('one', 3), /it has 0 animals/);
    for (const again of [opened.crash, opened.reopen]) {
      await part('three', 2);
      await again();
      assert.equal((await addPet(opened.store)).pet.id, opened.store.read.counts().pets, 'no id is left out');
      await assert.rejects(end('three', 2), /it has 0 animals/);
    }
    await part('four', 1);
    opened.store.forgetImport('four');
    await opened.store.compact();
    await opened.reopen();
    assert.deepEqual([...idsNamed('two'), ...idsNamed('three'), ...idsNamed('four')], []);
    assert.deepEqual(opened.notices, []);
  }));

test('while the animals of an import get their ids, readers see none of them, and writes wait', async (t) => {
  let ticks = 0;
  t.mock.method(performance, 'now', () => (ticks += 10)); // every step takes longer than its share of a turn
  await withStore({}, async ({ store }) => {
    const pets = Array.from({ length: 5_000 }, (): NewPet => ({ name: 'Rex', categoryId: 1, status: 'available' }));
    await store.write(() => ({ op: 'importPart', import: 'one', pets }));
    const seen = new Set<number>();
    let isOver = false;
    const ended = store
      .write((ahead) => ({ op: 'endImport', import: 'one', first: ahead.nextPetId(), count: 5_000 }))
      .finally(() => {
        isOver = true;
      });
    const added = addPet(store).then(({ pet }) => assert.deepEqual([pet.id, store.read.counts().pets], [5_001, 5_001]));
    let turns = 0;
    for (; !isOver; turns++) {
      seen.add(store.read.counts().pets).add(store.read.pets(0, 100).items.length);
      if (store.read.pet(1) !== undefined) seen.add(-1);
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.ok(turns >= 10, `${turns} turns of the event loop`);
    assert.deepEqual([...seen], [0]);
    await Promise.all([ended, added]);
  });
});

test('what is decided while an import is taken in rests on all of its batch, once', async (t) => {
  let ticks = 0;
  t.mock.method(performance, 'now', () => (ticks += 10));
  await withStore({}, async (opened) => {
    const { store } = opened;
    const pets = Array.from({ length: 5_000 }, (): NewPet => ({ name: 'Rex', categoryId: 1, status: 'available' }));
    const aKey = (ahead: Ahead) => {
      const slot = ahead.keyCount();
      return { op: 'setKey' as const, key: { id: `k${slot + 1}`, slot, ...KEY, secrets: [{ digest: `of ${slot}` }] } };
    };
    await store.write(() => ({ op: 'importPart', import: 'one', pets }));
    const before = addPet(store);
    const inBatch = [
      store.write(aKey),
      store.write(() => ({ op: 'importPart', import: 'one', pets: pets.slice(0, 3) })),
      store.write((ahead) => ({ op: 'endImport', import: 'one', first: ahead.nextPetId(), count: 5_003 })),
      addPet(store),
    ];
    const added = addPet(store).then(({ pet }) => pet.id);
    let isOver = false;
    const over = Promise.all(inBatch).finally(() => {
      isOver = true;
    });
    const meanwhile: Promise<{ key: { id: string } }>[] = [];
    while (!isOver) {
      await new Promise((resolve) => setImmediate(resolve));
      meanwhile.push(store.write(aKey));
    }
    await Promise.all([before, over]);
    assert.equal(await added, 5_006);
    assert.deepEqual(
      (await Promise.all(meanwhile)).map(({ key }) => key.id),
      meanwhile.map((_, at) => `k${at + 2}`),
    );
    assert.equal(store.read.counts().pets, 5_006);
    await opened.reopen();
  });
});

test('a closed store takes nothing, and closing waits for what was accepted', () =>
  withStore({}, async (opened) => {
    const writes = [addPet(opened.store), addPet(opened.store)];
    const closing = opened.store.close();
    await assert.rejects(addPet(opened.store), (error) => error instanceof StoreError && error.failure === 'closed');
    await Promise.all([...writes, closing]);
    await opened.crash();
    assert.equal(opened.store.read.counts().pets, 2);
    assert.deepEqual(opened.notices, []);
  }));

test('refusals that wait for a batch to be durable have a maximum', () =>
  withStore({}, async ({ store }) => {
    const first = addPet(store);
    const refuse = () =>
      store.write(() => {
        throw new Error('refused');
      });
    const refused = await Promise.allSettled(Array.from({ length: MAX_BATCH_RECORDS + 2 }, refuse));
    const messages = refused.map((result) => (result as PromiseRejectedResult).reason.message);
    assert.deepEqual(messages.slice(-3), ['refused', 'too many refusals are waiting', 'too many refusals are waiting']);
    await first;
  }));

test('closing gives up a compaction that is under way, and nothing is lost', async () => {
  let begun = () => {};
  const hasBegun = new Promise<void>((resolve) => {
    begun = resolve;
  });
  const compact = (_dir: string, _generation: number, signal: AbortSignal) =>
    new Promise((_, reject) => {
      begun();
      signal.addEventListener('abort', () => reject(signal.reason));
    });
  await withStore({ compact }, async (opened) => {
    await addPet(opened.store);
    const given = assert.rejects(opened.store.compact(), { name: 'AbortError' });
    await hasBegun;
    await addPet(opened.store);
    await opened.reopen();
    await given;
    assert.equal(opened.store.read.counts().pets, 2);
    assert.deepEqual(opened.notices, []);
  });
});

test('what the last compaction of a killed process renames, while the next process starts, does no harm', async () => {
  const disk: Disk = {
    ...realDisk,
    unlink(path) {
      if (path.endsWith('.tmp')) renameSync(path, path.slice(0, -'.tmp'.length));
      return realDisk.unlink(path);
    },
  };
  await withStore({ disk }, async (opened) => {
    await addPet(opened.store);
    writeFileSync(`${opened.dir}/snapshot-000002.jsonl.tmp`, '');
    await opened.crash();
    assert.equal(opened.store.read.counts().pets, 1);
    await opened.reopen();
  });
});

test('a compaction hears that its server has ended before it gives the snapshot its name', () =>
  withStore({}, async ({ store, dir }) => {
    await addPet(store);
    const server = createServer().listen(`${dir}/pipe`);
    const ours = connect(`${dir}/pipe`);
    const [theirs] = await once(server, 'connection');
    let hasEnded = false;
    ours.resume().on('end', () => {
      hasEnded = true;
    });
    const disk: Disk = {
      ...realDisk,
      openToRead(path) {
        if (path.endsWith('.tmp')) theirs.destroy();
        return realDisk.openToRead(path);
      },
      async rename() {
        assert.ok(hasEnded);
        throw new Error('it would have ended');
      },
    };
    await assert.rejects(compactFiles(disk, dir, 2), /it would have ended/);
    assert.ok(!existsSync(`${dir}/snapshot-000002.jsonl.tmp`), 'what came to nothing takes no room');
    server.close();
  }));

test('others have their turns while a large log, or a large snapshot, is read', () =>
  withStore({}, async (opened) => {
    const turnsWhile = async (work: Promise<unknown>) => {
      let turns = 0;
      let isOver = false;
      const turn = () => {
        turns++;
        if (!isOver) setImmediate(turn);
      };
      setImmediate(turn);
      await work;
      isOver = true;
      return turns;
    };
    // More than two parts of each file; no line of the snapshot longer than a line may be.
    const categories = Array.from({ length: 4 * 512 }, (_, id) => ({ id, name: 'x'.repeat(1_500) }));
    for (const category of categories) void opened.store.write(() => ({ op: 'setCategory', category }));
    await addPet(opened.store);
    assert.ok((await turnsWhile(recover(realDisk, opened.dir))) > 0);
    await opened.store.compact();
    assert.ok((await turnsWhile(recover(realDisk, opened.dir))) > 0);
    assert.ok((await turnsWhile(readSnapshot(realDisk, `${opened.dir}/snapshot-000002.jsonl`))) > 0);
  }));
