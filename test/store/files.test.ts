/** What stands in a data directory, what is refused there, and what becomes of it. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { crc32 } from 'node:zlib';
import { SlotLimiter } from '../../src/access/limiter.ts';
import { type Disk, realDisk } from '../../src/store/file/disk.ts';
import { DamagedError, seal } from '../../src/store/file/format.ts';
import { InUseError, openStore } from '../../src/store/file/open.ts';
import { compactFile } from '../../src/store/file/rewrite.ts';
import { backup, readStore, repair, restore } from '../../src/store/file/tools.ts';
import { StoreError } from '../../src/store/model.ts';
import { NewerError } from '../../src/store/record.ts';
import { folder } from '../faults/folder.ts';
import { unlocked } from '../faults/sim-disk.ts';
import { addKey, addPet, check, filesIn, type Opened, order, pet, withStore } from './opened.ts';

const lines = (path: string) => readFileSync(path, 'utf8').trimEnd().split('\n');
const is = (failure: string) => (error: unknown) => error instanceof StoreError && error.failure === failure;
const path = ({ dir }: Opened, name = filesIn(dir)[0]) => join(dir, name);

async function fill({ store, clock }: Opened): Promise<void> {
  for (const name of ['a', 'b', 'c']) await addPet(store, name);
  await order(store, 2);
  await store.write(() => ({ op: 'setCategory', category: { id: 2n ** 60n, name: 'big' } }));
  await addKey(store);
  const entry = { key: 'k1', dayUsed: 3, dayEndsAt: clock.wall(), banStep: 0, banEndsAt: 0 };
  await store.write(() => ({ op: 'usage', at: clock.wall(), entries: [entry] }));
}

/** As if that had been written by a newer program. */
function replaceLine(file: string, number: number, change: (body: string) => string): void {
  const changed = lines(file).map((line, i) => (i === number ? seal(change(line.slice(18))).trimEnd() : line));
  writeFileSync(file, `${changed.join('\n')}\n`);
}

test('every line is JSON, and its checksum is over all that follows it in the line', () =>
  withStore({}, async (opened) => {
    await fill(opened);
    await opened.journal.compact();
    await addPet(opened.store, 'd');
    assert.deepEqual(filesIn(opened.dir), ['store-000002.jsonl']);
    for (const line of lines(path(opened))) {
      assert.equal(JSON.parse(line).crc, crc32(line.slice(18)).toString(16).padStart(8, '0'));
    }
    const { crc: _, ...last } = JSON.parse(lines(path(opened)).at(-1)!);
    assert.deepEqual(last, { batch: 9, n: 0, last: true, op: 'addPet', pet: pet(4, 'd') });
  }));

test('the same content has the same proof, whatever file it comes from', () =>
  withStore({}, async (opened) => {
    await fill(opened);
    const { proof } = await readStore(opened.dir);
    for (const step of [() => opened.journal.compact(), opened.crash, opened.reopen]) {
      await step();
      assert.deepEqual((await readStore(opened.dir)).proof, proof);
    }
    assert.deepEqual({ ...proof, digest: '' }, { pets: 3, orders: 1, categories: 1, keys: 1, digest: '' });
    await addPet(opened.store);
    assert.notEqual((await readStore(opened.dir)).proof.digest, proof.digest);
  }));

test('what a newer version wrote is refused as that, by repair too, and stays', () =>
  withStore({}, async (opened) => {
    await fill(opened);
    await opened.store.close();
    const file = path(opened);
    const whole = readFileSync(file);
    const newer: [number, (body: string) => string][] = [
      [0, (body) => body.replace('"version":2', '"version":3')],
      [4, (body) => body.replace('"op":"addPet"', '"op":"addHorse"')],
    ];
    for (const [number, change] of newer) {
      replaceLine(file, number, change);
      const changed = readFileSync(file);
      for (const attempt of [() => readStore(opened.dir), () => openStore(opened.dir), () => repair(opened.dir)]) {
        await assert.rejects(attempt(), (error: Error) => error instanceof NewerError && error.message.includes(file));
      }
      assert.deepEqual(readFileSync(file), changed);
      writeFileSync(file, whole);
    }
    replaceLine(file, 4, (body) => body.replace('"op":"addPet"', '"op":"addHorse"'));
    writeFileSync(file, readFileSync(file, 'utf8').replace('"name":"a"', '"name":"A"'));
    await assert.rejects(repair(opened.dir), NewerError, 'also where the damage stands before it');
    writeFileSync(file, whole);
    await opened.crash();
  }));

test('a file that is missing, older, emptied, another store’s, or of a name that no petstore gave is refused by name', () =>
  withStore({}, async (opened) => {
    await fill(opened);
    const first = readFileSync(path(opened));
    await opened.reopen();
    await opened.journal.compact();
    await opened.store.close();
    const [file, before] = [path(opened), path(opened, 'store-000001.jsonl')];
    const whole = readFileSync(file);
    const other = folder();
    const { store } = await openStore(other.dir);
    await store.close();
    const refused = async (what: RegExp, name = file) => {
      for (const attempt of [() => readStore(opened.dir), () => openStore(opened.dir), () => repair(opened.dir)]) {
        await assert.rejects(attempt(), (error: Error) => {
          assert.ok(error instanceof DamagedError, error.stack);
          assert.match(error.message, what);
          assert.ok(error.message.includes(name), error.message);
          return true;
        });
      }
    };
    rmSync(file);
    await refused(/the file is missing.*to begin anew or restore a backup here, type `rm .*LOCK`/);
    writeFileSync(before, first);
    await refused(/store-000001\.jsonl is older/);
    rmSync(before);
    writeFileSync(file, '');
    await refused(/ends within its first batch/);
    writeFileSync(file, whole.subarray(whole.indexOf('\n') + 1));
    await refused(/the first line is no header.*Repair cannot help here/);
    writeFileSync(file, whole.subarray(0, 40));
    await refused(/cut off/);
    writeFileSync(file, readFileSync(path({ dir: other.dir } as Opened)));
    await refused(/says that it is store-000001/);
    replaceLine(file, 0, (body) => body.replace('"file":1', '"file":2'));
    await refused(/belongs to another store/);
    writeFileSync(file, whole);
    for (const name of ['store-000003.jsonl', 'store-7.jsonl', 'store-000002.jsonl.bak', 'snapshot-000001.jsonl']) {
      writeFileSync(join(opened.dir, name), whole);
      await refused(/says that it is|no file of this format has such a name|format 1/, join(opened.dir, name));
      rmSync(join(opened.dir, name));
    }
    other.remove();
    await opened.crash();
  }));

test('a FIFO, a directory, a dangling link in its place, and a directory where nothing can be, are refused at once', () =>
  withStore({}, async (opened) => {
    await opened.store.close();
    const file = path(opened);
    const whole = readFileSync(file);
    const stands: (() => void)[] = [
      () => execFileSync('mkfifo', [file]),
      () => mkdirSync(file),
      () => symlinkSync(join(opened.dir, 'nowhere'), file),
    ];
    for (const stand of stands) {
      rmSync(file, { recursive: true });
      stand();
      for (const attempt of [() => readStore(opened.dir), () => openStore(opened.dir)]) {
        await assert.rejects(attempt(), (error: Error) => error.message.includes(file));
      }
    }
    rmSync(file);
    writeFileSync(file, whole);
    await assert.rejects(openStore('/proc/petstore'), /ENOENT|EACCES/);
    await opened.crash();
  }));

test('a directory that holds other files and no store is left as it is', async () => {
  const { dir, remove } = folder();
  writeFileSync(join(dir, 'notes.txt'), 'mine');
  await assert.rejects(openStore(dir), /holds other files and no store/);
  assert.deepEqual(readdirSync(dir), ['notes.txt']);
  await assert.rejects(readStore(join(dir, 'none')), /there is no store/);
  remove();
});

test('reading needs neither the lock nor a directory that can be written', () =>
  withStore({}, async (opened) => {
    await fill(opened);
    chmodSync(opened.dir, 0o500);
    const { proof, state } = await readStore(opened.dir);
    assert.deepEqual([proof.pets, state.keys.get('k1')?.name], [3, 'shop']);
    await assert.rejects(openStore(opened.dir), InUseError);
    chmodSync(opened.dir, 0o700);
  }));

test('who reads while a server puts a new file in place of the one it found reads that', () =>
  withStore({}, async (opened) => {
    await addPet(opened.store);
    const before = join(opened.dir, 'LOCK.before');
    copyFileSync(join(opened.dir, 'LOCK'), before);
    await opened.journal.compact();
    let isStale = true;
    const disk: Disk = {
      ...realDisk,
      list: (dir) => (isStale ? ['LOCK', 'store-000001.jsonl'] : realDisk.list(dir)),
      openToRead: (file) => realDisk.openToRead(isStale && file.endsWith('LOCK') ? before : file),
      size(file) {
        if (file.endsWith('.jsonl')) isStale = false;
        return realDisk.size(file);
      },
    };
    assert.equal((await readStore(opened.dir, { disk })).proof.pets, 1);
    rmSync(before);
  }));

test('a backup of a running store restores with counts and digest', () =>
  withStore({}, async (opened) => {
    const { dir: elsewhere, remove } = folder();
    await fill(opened);
    const { proof } = await readStore(opened.dir);
    const file = join(elsewhere, 'backup.jsonl');
    writeFileSync(`${file}.tmp`, 'of somebody else');
    assert.deepEqual(await backup(opened.dir, file), proof);
    assert.deepEqual(readdirSync(elsewhere), ['backup.jsonl', 'backup.jsonl.tmp']);
    await assert.rejects(backup(opened.dir, file), /exists/);
    await assert.rejects(backup(opened.dir, join(opened.dir, 'b.jsonl')), /b\.jsonl is inside the data directory/);
    const target = join(elsewhere, 'restored');
    assert.deepEqual((await restore(file, target)).proof, proof);
    assert.deepEqual((await readStore(target)).proof, proof);
    await assert.rejects(restore(file, target), /the store in .* is not empty/);
    writeFileSync(file, readFileSync(file, 'utf8').replace('"a"', '"A"'));
    await assert.rejects(restore(file, join(elsewhere, 'other')), (error: Error) => {
      assert.ok(error instanceof DamagedError);
      return (
        /the backup that is damaged; nothing was restored/.test(error.message) && !/petstore repair/.test(error.message)
      );
    });
    assert.ok(!existsSync(join(elsewhere, 'other')));
    remove();
  }));

test('what a refusal tells to type works as it stands, whatever the name of the directory', async () => {
  const { dir: parent, remove } = folder();
  const dir = join(parent, "it's my data");
  const open = () => openStore(dir).then(({ store }) => store);
  await (await open()).close();
  const file = join(dir, 'store-000001.jsonl');
  const toType = (error: Error) => /`(.+?)`/.exec(error.message)![1];
  appendFileSync(file, '{}\n');
  const words = execFileSync('sh', ['-c', `printf '%s\n' ${await open().then(String, toType)}`], { encoding: 'utf8' });
  assert.deepEqual(words.trimEnd().split('\n'), ['petstore', 'repair', '--data', dir]);
  rmSync(file);
  execFileSync('sh', ['-c', await open().then(String, toType)], { cwd: parent });
  await (await open()).close();
  remove();
});

test('repair cuts at the damage, keeps the file, tells what is lost, and nothing comes back', () =>
  withStore({}, async (opened) => {
    await fill(opened);
    await addKey(opened.store);
    await opened.store.close();
    const file = path(opened);
    const whole = readFileSync(file, 'utf8');
    const offset = whole.indexOf(lines(file).find((line) => line.includes('"name":"c"'))!);
    const damagedText = whole.replace('"name":"c"', '"name":"C"');
    writeFileSync(file, damagedText);
    const damage = (error: unknown) => {
      assert.ok(error instanceof DamagedError);
      assert.deepEqual([error.file, error.offset], [file, offset]);
      return /petstore repair --data/.test(error.message);
    };
    await assert.rejects(readStore(opened.dir), damage);
    await assert.rejects(opened.crash(), damage);
    const told = await repair(opened.dir);
    assert.equal(readFileSync(told.kept!, 'utf8'), damagedText);
    assert.deepEqual([told.lostBatches, told.lostBytes, told.revoked], [7, whole.length - offset, []]);
    await opened.crash();
    assert.deepEqual(opened.store.read.counts(), { pets: 2, orders: 0, categories: 0, keys: 0 });
    assert.equal((await addPet(opened.store)).pet.id, told.nextPetId);
    assert.ok(told.nextPetId > 3 && (await order(opened.store, 1)).order.id > 1);
    assert.ok((await addKey(opened.store)).key.slot > 1);
    assert.equal((await repair(opened.dir, { disk: unlocked() })).damage, undefined, 'nothing is left to repair');
  }));

test('ids never come back, however often a store is repaired, and no key has a slot that a limiter cannot hold', () =>
  withStore({}, async (opened) => {
    await fill(opened);
    await opened.store.close();
    const given: number[] = [];
    for (let again = 0; again < 15; again++) {
      // At its first line: what the state holds of ids is all gone, and the header alone tells them.
      const whole = readFileSync(path(opened), 'utf8');
      writeFileSync(path(opened), whole.replace(/"batch"/, '"Batch"'));
      const told = await repair(opened.dir);
      rmSync(told.kept!);
      given.push(told.nextPetId, told.nextOrderId, told.nextSlot * 1_000);
    }
    assert.deepEqual(
      given,
      Array.from({ length: 45 }, (_, i) => given[i % 3] + Math.floor(i / 3) * 1e9),
    );
    await opened.crash();
    const { key } = await addKey(opened.store);
    const limiter = new SlotLimiter({ clock: opened.clock, unix: () => opened.store.unix() });
    assert.equal(limiter.take(key).verdict, 'admitted');
    await opened.store.close();
    writeFileSync(path(opened), readFileSync(path(opened), 'utf8').replace(/"batch"/, '"Batch"'));
    await assert.rejects(repair(opened.dir), /repaired too often.*Restore a backup/);
    rmSync(opened.dir, { recursive: true });
    await opened.crash();
  }));

test('repair of the state that a file began with keeps the rows before the damage, and revokes the keys', () =>
  withStore({}, async (opened) => {
    await fill(opened);
    await opened.journal.compact();
    await addPet(opened.store, 'lost');
    await opened.store.close();
    const file = path(opened);
    const whole = readFileSync(file, 'utf8');
    writeFileSync(file, whole.replace('"dayUsed":3', '"dayUsed":4'));
    const { revoked, nextPetId } = await repair(opened.dir);
    assert.deepEqual(revoked, ['k1']);
    await opened.crash();
    assert.deepEqual(opened.store.read.counts(), { pets: 3, orders: 1, categories: 1, keys: 1 });
    assert.ok(opened.store.read.keys.get('k1')!.revokedAt! > 0 && nextPetId > 4);
    await opened.store.close();
    rmSync(opened.dir, { recursive: true });
    await opened.crash();
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
    await addPet(opened.store, 'kept');
    isFull = true;
    for (const write of [addPet(opened.store), order(opened.store, 1)]) await assert.rejects(write, is('full'));
    assert.equal(opened.store.read.pets.get(1)?.status, 'available');
    await check(opened);
    await opened.crash(); // on a full disk: reads are served, and writes once there is room
    assert.equal(opened.store.read.pets.get(1)?.name, 'kept');
    assert.match(opened.notices.at(-1)!, /no room to write; what is there is served/);
    await assert.rejects(addPet(opened.store), is('full'));
    isFull = false;
    await assert.rejects(addPet(opened.store), is('full'), 'not with every write');
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    assert.equal((await addPet(opened.store, 'next')).pet.id, 2);
    assert.deepEqual(filesIn(opened.dir), ['store-000002.jsonl']);
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
    await assert.rejects(addPet(opened.store), is('unknown'));
    await assert.rejects(addPet(opened.store), is('closed'), 'this one is surely not kept');
    assert.deepEqual(fatal, ['unknown']);
    assert.equal(opened.store.read.counts().pets, 1, 'reads go on until the process ends');
    await opened.store.close();
    fails = false;
    await opened.crash();
    assert.ok(opened.store.read.counts().pets >= 1);
    assert.notEqual(filesIn(opened.dir)[0], 'store-000001.jsonl', 'what was read was written anew');
  });
});

test('a compaction copies what is written meanwhile; one that fails changes nothing, and closing gives it up', async () => {
  let during = async (_signal: AbortSignal) => {};
  const compact: Parameters<typeof openStore>[1] extends infer O | undefined
    ? NonNullable<O extends { compact?: infer C } ? C : never>
    : never = async (dir, extent, signal) => {
    await compactFile(realDisk, dir, extent);
    await during(signal);
  };
  await withStore({ compact }, async (opened) => {
    await fill(opened);
    during = async () => void (await addPet(opened.store, 'meanwhile'));
    await opened.journal.compact();
    assert.equal((await readStore(opened.dir)).state.pets.get(4)?.name, 'meanwhile');
    during = () => Promise.reject(new Error('killed'));
    await assert.rejects(opened.journal.compact(), /killed/);
    assert.deepEqual(filesIn(opened.dir), ['store-000002.jsonl']);
    await addPet(opened.store);
    during = (signal) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    const given = assert.rejects(opened.journal.compact(), { name: 'AbortError' });
    await new Promise((resolve) => setTimeout(resolve, 100));
    await opened.reopen();
    await given;
    assert.deepEqual(opened.notices, []);
  });
});

test('a file is compacted by itself when it has grown', () =>
  withStore({}, async (opened) => {
    // 16 lines of 4 MiB make 64 MiB.
    for (let i = 0; i < 17; i++) {
      const category = { id: 1, name: `${i}`.padEnd(4_150_000) };
      assert.deepEqual(filesIn(opened.dir), ['store-000001.jsonl']);
      await opened.store.write(() => ({ op: 'setCategory', category }));
    }
    for (const began = Date.now(); filesIn(opened.dir).includes('store-000001.jsonl'); ) {
      assert.ok(Date.now() - began < 60_000);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    await opened.reopen();
  }));
