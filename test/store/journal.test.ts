/** The engine on a file where things go wrong, or slowly, on a simulated disk. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import type { EngineOptions } from '../../src/store/engine.ts';
import { openFileStore, restoreInto } from '../../src/store/file/store.ts';
import type { StoreError } from '../../src/store/model.ts';
import type { Tables } from '../../src/store/tables.ts';
import { SetClock } from '../clock.ts';
import { contentOf, contentOn, quiet } from '../faults/life.ts';
import { codeError, DIR, SimDisk } from '../faults/sim-disk.ts';
import { temporary } from '../program.ts';
import { seeded } from '../random.ts';
import { until } from '../until.ts';
import { backedUp, proofOf, streamed } from './contract.ts';
import { newKey, newReplay } from './plain-model.ts';

const FILE = 'store.jsonl';
const rex = { name: 'Rex', categoryId: 1, status: 'available' as const };

async function opened(disk = new SimDisk(), options: Partial<EngineOptions> = {}, minCompactionBytes?: number) {
  const fatal: Error[] = [];
  const said: string[] = [];
  const say = (message: string) => void said.push(message);
  const log = { info: say, warn: say, error: say };
  const all = { clock: new SetClock(), log, isServing: true, onFatal: (error: Error) => fatal.push(error), ...options };
  const engine = await openFileStore(DIR, all, { disk, minCompactionBytes });
  const add = (name = 'Rex') => engine.store.write((tx) => tx.pets.add({ ...rex, name }));
  return { disk, engine, add, fatal, said };
}

test('a sync, a write or a cut that fails ends it: unknown, told once, and nothing is taken any more', async () => {
  for (const call of ['sync store', 'write store', 'truncate']) {
    const { disk, engine, add, fatal } = await opened();
    await add();
    if (call === 'truncate') disk.room = 10;
    disk.onCall = (now) => {
      if (now === call) throw codeError('EIO');
    };
    const ends = await Promise.allSettled([
      add('lost'),
      engine.store.write(() => {
        throw new Error('refused');
      }),
    ]);
    const failures = ends.map((end) => end.status === 'rejected' && (end.reason as StoreError).failure);
    assert.deepEqual(failures, ['unknown', 'unknown'], call);
    assert.equal(fatal.length, 1);
    assert.equal(engine.ready(), false);
    disk.onCall = () => {};
    await assert.rejects(add('later'), { failure: 'closed' });
    assert.deepEqual([...engine.store.read.pets.all()], [{ id: 1, ...rex }]);
    await engine.close();
  }
});

test('a full disk, at whatever byte: what does not fit is refused, reads go on, and with room so do writes', async () => {
  const dry = await opened();
  const start = dry.disk.bytes(FILE).length;
  for (let n = 0; n < 3; n++) await dry.add(`animal ${n}`);
  const length = dry.disk.bytes(FILE).length;
  await dry.engine.close();
  for (let room = 0; room <= length - start; room++) {
    const { disk, engine, add, fatal } = await opened();
    disk.room = room;
    const names: string[] = [];
    for (let n = 0; n < 3; n++) {
      const refused = ({ failure }: StoreError) => void assert.equal(failure, 'full');
      await add(`animal ${n}`).then(({ name }) => names.push(name), refused);
    }
    const { read } = engine.store;
    assert.deepEqual(
      [...read.pets.all()].map(({ name }) => name),
      names,
    );
    assert.equal(await contentOn(disk.afterPowerFailure(seeded(room))), contentOf(read as Tables));
    disk.room = 1_000;
    assert.equal((await add('late')).id, names.length + 1);
    assert.deepEqual(fatal, []);
    await engine.close();
  }
});

test('a file that has grown is compacted by itself, a restart in between or not', async () => {
  const disk = new SimDisk();
  for (let run = 0; run < 4; run++) {
    const { engine, add } = await opened(disk, {}, 10_000);
    if (run === 0) await add();
    for (let n = 0; n < 40; n++) await engine.store.write((tx) => tx.pets.put({ id: 1, ...rex, name: `${run} ${n}` }));
    await engine.close();
  }
  assert.ok(disk.bytes(FILE).length < 20_000);
});

test('a compaction that finds no room changes nothing, and says so once; a close gives it up', async () => {
  const { disk, engine, add, said, fatal } = await opened(undefined, {}, 2_000);
  await add();
  const grow = () => engine.store.write((tx) => tx.pets.put({ id: 1, ...rex, name: 'x'.repeat(500) }));
  disk.onCall = (call) => {
    if (call === 'write new') throw codeError('ENOSPC');
  };
  for (let n = 0; n < 8; n++) await grow();
  await until(() => said.length > 0);
  assert.deepEqual([said.length, fatal], [1, []]);
  assert.match(said[0], /could not be compacted/);
  assert.deepEqual(
    disk.list().filter((name) => name !== 'LOCK'),
    [FILE],
  );
  let closing: Promise<void> | undefined;
  disk.onCall = (call) => {
    if (call === 'write new') closing ??= engine.close();
  };
  await assert.rejects(engine.compact(), /being closed/);
  await closing;
  assert.equal(await contentOn(disk), contentOf(engine.store.read as Tables));
});

test('a compacted file that may not be durable, or its name, ends it', async () => {
  for (const call of ['sync new', 'rename', 'sync directory', 'sync LOCK']) {
    const { disk, engine, add, fatal } = await opened();
    await engine.store.write((tx) => {
      for (let n = 0; n < 6_000; n++) tx.pets.add({ ...rex, name: 'x'.repeat(400) }); // so much is synced in pieces
    });
    disk.onCall = (now) => {
      if (now === call) throw codeError('EIO');
    };
    await assert.rejects(engine.compact(), { failure: 'unknown' });
    assert.equal(fatal.length, 1);
    await assert.rejects(add(), { failure: 'closed' });
    disk.onCall = () => {};
    await engine.close();
    assert.equal(await contentOn(disk), contentOf(engine.store.read as Tables));
  }
});

test('where the process has no descriptor left, a compaction fails before it begins, or ends well', async () => {
  const { disk, engine, add, said, fatal } = await opened();
  await add();
  const none = () => {
    throw codeError('EMFILE');
  };
  const create = disk.create;
  disk.create = none;
  await assert.rejects(engine.compact(), /EMFILE/);
  // The last one is that of the new file.
  disk.create = async (path) => {
    const fd = await create.call(disk, path);
    disk.openDirectory = disk.openToRead = disk.openToWrite = disk.create = none;
    return fd;
  };
  await engine.compact();
  await add();
  assert.deepEqual([fatal, said], [[], []]);
  await engine.close();
  assert.equal(await contentOn(disk.copy()), contentOf(engine.store.read as Tables));
});

test('a reader and a backup are as of one moment, while the store is written and compacted', async () => {
  const { disk, engine, add } = await opened();
  disk.slowness = seeded(1);
  let isOver = false;
  const loop = async (run: () => Promise<unknown>) => {
    while (!isOver) await run();
  };
  const others = [loop(add), loop(() => engine.compact())];
  try {
    for (let n = 0; n < 30; n++) {
      const reader = await opened(disk, { readOnly: true });
      assert.ok((await proofOf(reader.engine)).counts.pets <= engine.store.read.pets.size);
      await reader.engine.close();
      const { size } = engine.store.read.pets;
      const { proof, pieces } = await backedUp(engine);
      assert.equal(proof.counts.pets, size);
      assert.equal(
        Buffer.concat(pieces)
          .toString()
          .match(/"name":"Rex"/g)?.length ?? 0,
        size,
      );
    }
  } finally {
    isOver = true;
    await Promise.all(others);
    await engine.close();
  }
});

test('the metrics tell how much the store has, and the most that it may have', async () => {
  const { engine, add } = await opened(undefined, { maxBytes: 1_000 });
  while (
    await add().then(
      () => true,
      () => false,
    )
  );
  const metrics = new Map(engine.metrics().map(({ name, value }) => [name, value]));
  assert.equal(metrics.get('petstore_store_max_bytes'), 1_000);
  assert.ok(metrics.get('petstore_store_bytes')! > 900);
  assert.ok(metrics.get('petstore_store_file_bytes')! > 1_000);
  const before = metrics.get('petstore_store_bytes')!;
  await engine.compact();
  const after = engine.metrics().find(({ name }) => name === 'petstore_store_bytes')!.value;
  assert.ok(Math.abs(after - before) < 50);
  await engine.close();
});

test('rows of any size fit into the lines of a compacted file', async (t) => {
  const options = { clock: new SetClock(), log: quiet };
  const dir = join(await temporary(t), 'data');
  const engine = await openFileStore(dir, options); // the simulated disk copies a file at each write
  const body = '\u0001'.repeat(60_000); // six times as long in JSON
  for (let from = 0; from < 100; from += 50) {
    await engine.store.write((tx) => {
      for (let n = from; n < from + 50; n++) {
        tx.replays.put(newReplay(`addPet k1 ${n}`, 1, engine.store.now(), body));
      }
    });
  }
  await engine.compact();
  const reader = await openFileStore(dir, { ...options, readOnly: true });
  assert.equal(reader.store.read.replays.size, 100);
  await reader.close();
  await engine.close();
});

test('a batch that no line of the log could hold is refused, and leaves nothing', async () => {
  const { disk, engine, add } = await opened();
  const before = disk.bytes(FILE);
  const body = '\u0001'.repeat(60_000);
  const huge = engine.store.write((tx) => {
    for (let n = 0; n < 95; n++) tx.replays.put(newReplay(`${n}`, 1, 1, body));
  });
  await assert.rejects(huge, /too many for a line/);
  assert.equal(engine.store.read.replays.size, 0);
  assert.deepEqual(disk.bytes(FILE), before);
  await add();
  assert.equal(await contentOn(disk), contentOf(engine.store.read as Tables));
  await engine.close();
});

test('store time goes on from the last row, whatever the clock of the machine says', async () => {
  const disk = new SimDisk();
  const clock = new SetClock(Date.UTC(2030, 0, 1));
  const first = await opened(disk, { clock });
  clock.advance(5_000);
  await first.add();
  clock.setWall(0);
  assert.equal(first.engine.store.now(), Date.UTC(2030, 0, 1) + 5_000);
  await first.engine.close();
  const behind = new SetClock(Date.UTC(2029, 0, 1));
  const second = await opened(disk, { clock: behind });
  assert.equal(second.engine.store.now(), Date.UTC(2030, 0, 1) + 5_000);
  behind.advance(60_000);
  assert.equal(second.engine.store.now(), Date.UTC(2030, 0, 1) + 65_000, 'or a window would never end');
  await second.engine.close();
  const third = await opened(disk, { clock: new SetClock(Date.UTC(2031, 0, 1)) });
  assert.equal(third.engine.store.now(), Date.UTC(2031, 0, 1));
  await third.engine.close();
});

test('what was counted until the close is kept', async () => {
  const disk = new SimDisk();
  const { engine } = await opened(disk);
  const key = await engine.store.write((tx) => tx.keys.add(newKey('a')));
  await engine.limiter.take(key);
  await engine.limiter.take(key);
  await engine.close();
  const again = await opened(disk);
  assert.equal((await again.engine.limiter.look(key)).day.remaining, key.perDay - 2);
  await again.engine.close();
});

test('a copy of the file restores as a backup does: with its last batches, and no id given again', async () => {
  const { disk, engine, add } = await opened();
  await add('stays');
  await engine.store.write((tx) => tx.pets.delete(tx.pets.add(rex).id));
  const copy = disk.bytes(FILE);
  const { proof } = await backedUp(engine);
  await engine.close();
  const target = new SimDisk();
  assert.deepEqual(await restoreInto(DIR, streamed([copy]), target), proof);
  const restored = await opened(target);
  assert.equal(restored.engine.store.read.pets.get(1)?.name, 'stays');
  assert.equal((await restored.add()).id, 3);
  await restored.engine.close();
});

test('a reader sees the store, and writes nothing', async () => {
  const { disk, engine, add } = await opened();
  await add();
  disk.onCall = (call) => assert.fail(`${call} by a reader`);
  const reader = await opened(disk, { readOnly: true });
  assert.equal(reader.engine.store.read.pets.size, 1);
  assert.deepEqual([await proofOf(reader.engine), reader.said], [await proofOf(engine), []]);
  await assert.rejects(reader.add(), { failure: 'closed' });
  await reader.engine.close();
  const file = disk.names.get(FILE)!;
  file.now = file.now.subarray(0, -5);
  const late = await opened(disk, { readOnly: true });
  assert.equal(late.engine.store.read.pets.size, 0);
  assert.match(late.said.join(), /offset \d+: the last \d+ bytes are no complete line, and are left out/);
  disk.onCall = () => {};
  await engine.close();
});
