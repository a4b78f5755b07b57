import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { crc32 } from 'node:zlib';
import { backup, restore, verify } from '../../src/store/backup.ts';
import { DamagedError } from '../../src/store/damage.ts';
import { realDisk } from '../../src/store/disk.ts';
import { compactFiles } from '../../src/store/generation.ts';
import { InUseError } from '../../src/store/lock.ts';
import { recover } from '../../src/store/recovery.ts';
import { repair } from '../../src/store/repair.ts';
import { FileStore } from '../../src/store/store.ts';
import { folder } from '../faults/folder.ts';
import { checkRealDisk } from '../faults/real-disk.ts';
import { addPet, check, type Opened, order, pet, withStore } from './opened.ts';

const lines = (path: string) => readFileSync(path, 'utf8').trimEnd().split('\n');

async function fill(opened: Opened): Promise<void> {
  const { store, clock } = opened;
  for (const name of ['a', 'b', 'c']) await addPet(store, name);
  await order(store, 2);
  await store.write(() => ({ op: 'setCategory', category: { id: 2n ** 60n, name: 'big' } }));
  await store.write(() => ({ op: 'setKey', key: key('k1', 0) }));
  const entry = { key: 'k1', dayUsed: 3, dayEndsAt: clock.wall(), banStep: 0, banEndsAt: 0 };
  await store.write(() => ({ op: 'usage', at: clock.wall(), entries: [entry] }));
}

function key(id: string, slot: number) {
  const about = { name: 'shop', plan: 'free' as const, environment: 'production' as const, createdAt: 1 };
  return { id, slot, ...about, perMinute: 60, perDay: 1000, secrets: [{ digest: 'ab'.repeat(32) }] };
}

test('every line is JSON, and its checksum is over all that follows it in the line', () =>
  withStore({}, async (opened) => {
    await fill(opened);
    await opened.store.compact();
    await fill2(opened);
    const names = readdirSync(opened.dir).filter((name) => name.endsWith('.jsonl'));
    assert.deepEqual(names, ['log-000002.jsonl', 'snapshot-000002.jsonl']);
    for (const line of names.flatMap((name) => lines(join(opened.dir, name)))) {
      assert.equal(JSON.parse(line).crc, crc32(line.slice(18)).toString(16).padStart(8, '0'));
    }
    const [, record] = lines(join(opened.dir, 'log-000002.jsonl'));
    const { crc: _, ...read } = JSON.parse(record);
    assert.deepEqual(read, { seq: 9, batch: 9, left: 0, op: 'addPet', pet: pet(4, 'd') });
  }));

async function fill2({ store }: Opened): Promise<void> {
  await addPet(store, 'd');
}

test('the state is the same whatever the generation, and so is its digest', () =>
  withStore({}, async (opened) => {
    await fill(opened);
    const { proof } = await verify(opened.dir);
    for (const step of [() => opened.store.compact(), opened.crash, opened.reopen]) {
      await step();
      assert.deepEqual((await verify(opened.dir)).proof, proof);
    }
    assert.deepEqual({ ...proof, digest: '' }, { pets: 3, orders: 1, categories: 1, keys: 1, digest: '' });
    await addPet(opened.store);
    assert.notEqual((await verify(opened.dir)).proof.digest, proof.digest);
  }));

test('a format version of another program is refused by name, and the files stay', () =>
  withStore({}, async (opened) => {
    await opened.store.close();
    const path = join(opened.dir, 'snapshot-000001.jsonl');
    const before = readFileSync(path);
    const body = lines(path)[0].slice(18).replace('"version":1', '"version":2');
    writeFileSync(
      path,
      [`{"crc":"${crc32(body).toString(16).padStart(8, '0')}",${body}`, ...lines(path).slice(1), ''].join('\n'),
    );
    await assert.rejects(recover(realDisk, opened.dir), (error: Error) => {
      assert.ok(!(error instanceof DamagedError));
      return /version 2; this program reads version 1/.test(error.message);
    });
    writeFileSync(path, before);
    await opened.crash();
  }));

test('a compaction that fails leaves a chain of logs, which is read, backed up and compacted', async () => {
  let fails = true;
  const compact = (dir: string, generation: number) =>
    fails ? Promise.reject(new Error('killed')) : compactFiles(realDisk, dir, generation);
  await withStore({ compact }, async (opened) => {
    await fill(opened);
    await assert.rejects(opened.store.compact(), /killed/);
    await addPet(opened.store);
    await assert.rejects(opened.store.compact(), /killed/);
    await addPet(opened.store);
    await check(opened);
    await opened.reopen();
    assert.equal(readdirSync(opened.dir).filter((name) => name.startsWith('log-')).length, 3);
    await check(opened);
    fails = false;
    await opened.store.compact();
    assert.equal(readdirSync(opened.dir).filter((name) => name.startsWith('log-')).length, 1);
  });
});

test('a backup of a running store is as of its pin, and restores with counts and digest', () =>
  withStore({}, async (opened) => {
    const { dir: elsewhere, remove } = folder();
    try {
      await fill(opened);
      const { proof } = await verify(opened.dir);
      const pinned = opened.store.pin();
      await addPet(opened.store, 'later');
      await opened.store.compact();
      await addPet(opened.store, 'later still');
      assert.deepEqual((await verify(opened.dir, pinned)).proof, proof);
      const file = join(elsewhere, 'backup.jsonl');
      writeFileSync(`${file}.tmp`, 'of somebody else');
      assert.deepEqual(await backup(opened.dir, file, pinned), proof);
      assert.deepEqual(readdirSync(elsewhere), ['backup.jsonl', 'backup.jsonl.tmp']);
      assert.equal(readFileSync(`${file}.tmp`, 'utf8'), 'of somebody else');
      pinned.release();
      await assert.rejects(backup(opened.dir, file), /exists/);
      const target = join(elsewhere, 'restored');
      assert.deepEqual(await restore(file, target), proof);
      assert.deepEqual((await verify(target)).proof, proof);
      await assert.rejects(restore(file, target), /the store in .* is not empty/);
      writeFileSync(file, readFileSync(file, 'utf8').replace('"a"', '"A"'));
      await assert.rejects(restore(file, join(elsewhere, 'other')), (error: Error) => {
        assert.ok(error instanceof DamagedError);
        return /the backup that is damaged; nothing was restored/.test(error.message) && !/repair/.test(error.message);
      });
    } finally {
      remove();
    }
    await opened.reopen();
    assert.equal(readdirSync(opened.dir).filter((name) => name.startsWith('log-')).length, 1, 'old files went');
  }));

test('of two backups to one name one succeeds, and a file that was made meanwhile stays', () =>
  withStore({}, async (opened) => {
    const { dir: elsewhere, remove } = folder();
    try {
      await fill(opened);
      const file = join(elsewhere, 'backup.jsonl');
      const both = await Promise.allSettled([backup(opened.dir, file), backup(opened.dir, file)]);
      const refused = both.filter((one) => one.status === 'rejected').map(({ reason }) => reason.message);
      assert.deepEqual(refused, [`${file} exists`]);
      await restore(file, join(elsewhere, 'restored'));

      const other = join(elsewhere, 'other');
      const stillHeld = async () => writeFileSync(other, 'of somebody else');
      await assert.rejects(backup(opened.dir, other, undefined, { stillHeld }), { message: `${other} exists` });
      assert.equal(readFileSync(other, 'utf8'), 'of somebody else');
      assert.deepEqual(readdirSync(elsewhere).sort(), ['backup.jsonl', 'other', 'restored']);
    } finally {
      remove();
    }
  }));

test('a backup may be named like a snapshot of any generation, a file of the store only like its own', () =>
  withStore({}, async (opened) => {
    const { dir: elsewhere, remove } = folder();
    try {
      await fill(opened);
      const file = join(elsewhere, 'snapshot-000003.jsonl');
      const proof = await backup(opened.dir, file);
      assert.equal(JSON.parse(lines(file)[0]).generation, 1);
      const target = join(elsewhere, 'restored');
      assert.deepEqual(await restore(file, target), proof);
      for (const kind of ['log', 'snapshot']) {
        const path = (generation: number) => join(target, `${kind}-00000${generation}.jsonl`);
        const bytes = readFileSync(path(1));
        writeFileSync(path(3), bytes);
        await assert.rejects(verify(target), (error) => {
          assert.ok(error instanceof DamagedError);
          return error.file === path(3) && error.what === 'the file says it is generation 1';
        });
      }
    } finally {
      remove();
    }
  }));

test('damage is named with file, offset and record; repair cuts there, keeps the file, and says what is lost', () =>
  withStore({}, async (opened) => {
    await fill(opened);
    await opened.store.close();
    const path = join(opened.dir, 'log-000001.jsonl');
    const whole = readFileSync(path, 'utf8');
    const offset = whole.indexOf(lines(path)[3]); // the third animal
    writeFileSync(path, whole.replace('"name":"c"', '"name":"C"'));
    const damage = (error: unknown) => {
      assert.ok(error instanceof DamagedError);
      assert.deepEqual([error.file, error.offset, error.sequence], [path, offset, 3]);
      return /petstore repair/.test(error.message);
    };
    await assert.rejects(verify(opened.dir), damage);
    await assert.rejects(opened.crash(), damage);
    const { kept, lost, lostBytes } = await repair(opened.dir);
    assert.deepEqual(kept, [`${path}.damaged`]);
    assert.equal(readFileSync(kept[0], 'utf8'), whole.replace('"name":"c"', '"name":"C"'));
    assert.deepEqual(lost, { pets: 0, orders: 1, categories: 1, keys: 1, others: 1 });
    assert.equal(lostBytes, whole.length - offset);
    await opened.crash();
    assert.deepEqual(opened.store.read.counts(), { pets: 2, orders: 0, categories: 0, keys: 1 });
    assert.equal((await repair(opened.dir, { lock: false })).damage, undefined, 'nothing is left to repair');
  }));

test('repair of a snapshot keeps what stands before the damage', () =>
  withStore({}, async (opened) => {
    await fill(opened);
    await opened.store.compact();
    await addPet(opened.store, 'lost with the log');
    await opened.store.close();
    const path = join(opened.dir, 'snapshot-000002.jsonl');
    writeFileSync(path, readFileSync(path, 'utf8').replace('"orders":{"first":1', '"orders":{"first":2'));
    writeFileSync(join(opened.dir, 'log-000002.jsonl.damaged'), 'kept by an earlier repair');
    const { kept, lost } = await repair(opened.dir);
    assert.deepEqual(
      kept.map((name) => name.replace(/.*\//, '')),
      ['snapshot-000002.jsonl.damaged', 'log-000002.jsonl.damaged-2'],
    );
    assert.equal(readFileSync(join(opened.dir, 'log-000002.jsonl.damaged'), 'utf8'), 'kept by an earlier repair');
    assert.deepEqual(lost, { pets: 1, orders: 1, categories: 0, keys: 1, others: 1 });
    await opened.crash();
    assert.deepEqual(opened.store.read.counts(), { pets: 3, orders: 0, categories: 1, keys: 1 });
    assert.equal((await addPet(opened.store)).pet.id, 5, 'the id of the lost animal is not given again');
    assert.equal((await order(opened.store, 1)).order.id, 2, 'nor that of the order');
  }));

test('a key behind the cut stays as a revoked one: neither its id nor its secret is given to another', () =>
  withStore({}, async (opened) => {
    const { store, clock } = opened;
    const old = { digest: 'old' };
    const k1 = { ...key('k1', 0), secrets: [{ digest: 'new' }, old] };
    await store.write(() => ({ op: 'setKey', key: k1 }));
    await store.write(() => ({ op: 'setKey', key: { ...key('k2', 1), name: 'unreadable' } }));
    await store.write(() => ({ op: 'setKey', key: { ...key('k3', 2), name: 'readable' } }));
    await store.write(() => ({ op: 'setKey', key: { ...k1, secrets: [{ digest: 'newer' }, { ...old, endsAt: 1 }] } }));
    await store.write(() => ({ op: 'setKey', key: key('k4', 3) }));
    const once = { caller: 'k4', key: 'a', at: clock.wall() };
    await store.write((ahead) => ({ op: 'addPet', pet: pet(ahead.nextPetId()), once }));
    await store.close();
    const path = join(opened.dir, 'log-000001.jsonl');
    const isOfK4 = (line: string) => line.includes('"id":"k4"');
    const damaged = lines(path).map((line) => (isOfK4(line) ? line.replace('shop', 'shoP') : line));
    writeFileSync(path, `${damaged.join('\n')}\n`.replace('unreadable', 'Unreadable'));
    const { lost } = await repair(opened.dir);
    assert.deepEqual(lost, { pets: 1, orders: 0, categories: 0, keys: 3, others: 1 });
    await opened.crash();
    const keys = [...opened.store.read.keys()];
    assert.deepEqual(
      keys.map(({ id, slot, name, revokedAt, secrets }) => [id, slot, name, revokedAt !== undefined, secrets]),
      [
        ['k1', 0, 'shop', false, [{ digest: 'old', endsAt: 1 }]],
        ['k2', 1, 'lost', true, []],
        ['k3', 2, 'readable', true, []],
        ['k4', 3, 'lost', true, []],
      ],
    );
  }));

test('an import that ends behind the cut is lost whole, also what of it stands before', () =>
  withStore({}, async (opened) => {
    const { store } = opened;
    const part = ['a', 'b', 'c'].map((name) => ({ name, categoryId: 1, status: 'available' as const }));
    await store.write(() => ({ op: 'importPart', import: 'one', pets: part }));
    await addPet(store, 'unreadable');
    await store.write((ahead) => ({ op: 'endImport', import: 'one', first: ahead.nextPetId(), count: 3 }));
    await store.close();
    const path = join(opened.dir, 'log-000001.jsonl');
    writeFileSync(path, readFileSync(path, 'utf8').replace('unreadable', 'Unreadable'));
    assert.equal((await repair(opened.dir)).lost.pets, 3);
    await opened.crash();
    assert.equal((await addPet(opened.store)).pet.id, 5);
  }));

test('from older files that a crash left beside a damaged snapshot all is taken that they hold', () =>
  withStore({}, async (opened) => {
    await fill(opened);
    await opened.reopen();
    const old = ['log-000001.jsonl', 'snapshot-000001.jsonl'].map((name) => join(opened.dir, name));
    const bytes = old.map((path) => readFileSync(path));
    await opened.store.compact();
    await opened.store.close();
    for (const [at, path] of old.entries()) writeFileSync(path, bytes[at]);
    const path = join(opened.dir, 'snapshot-000002.jsonl');
    writeFileSync(path, readFileSync(path, 'utf8').replace('"big"', '"bug"'));
    const { lost } = await repair(opened.dir);
    assert.deepEqual(lost, { pets: 0, orders: 0, categories: 0, keys: 0, others: 0 });
    assert.ok(existsSync(`${path}.damaged`));
    await opened.crash();
  }));

test('a snapshot whose digest is another is damaged, though each line is good', () =>
  withStore({}, async (opened) => {
    await fill(opened);
    await opened.store.compact();
    await opened.store.close();
    const path = join(opened.dir, 'snapshot-000002.jsonl');
    const whole = readFileSync(path, 'utf8');
    const sealed = lines(path).map((line) => {
      const body = line.slice(18).replace('"big"', '"bug"');
      return `{"crc":"${crc32(body).toString(16).padStart(8, '0')}",${body}\n`;
    });
    writeFileSync(path, sealed.join(''));
    await assert.rejects(opened.crash(), /snapshot-000002\.jsonl, offset \d+: the digest is wrong/);
    writeFileSync(path, whole);
    await opened.crash();
  }));

test('a log that has grown is compacted by itself', () =>
  withStore({ minCompactionBytes: 10_000 }, async (opened) => {
    const add = () => addPet(opened.store, 'x'.repeat(1_000));
    await Promise.all(Array.from({ length: 8 }, add));
    assert.ok(!readdirSync(opened.dir).includes('log-000002.jsonl'), 'it is not large yet');
    await Promise.all([add(), add()]);
    for (let waited = 0; waited < 500; waited++) {
      if (readdirSync(opened.dir).join() === 'LOCK,log-000002.jsonl,snapshot-000002.jsonl') break;
      await sleep(10);
    }
    assert.equal(readdirSync(opened.dir).join(), 'LOCK,log-000002.jsonl,snapshot-000002.jsonl');
    await addPet(opened.store);
    assert.deepEqual(opened.notices, []);
  }));

async function withPath(path: string, work: () => Promise<void>): Promise<void> {
  const { PATH } = process.env;
  process.env.PATH = path;
  await work().finally(() => {
    process.env.PATH = PATH;
  });
}

test('without a flock that works whoever answers for the directory is asked, and the operator is told', async () => {
  const { dir: path, remove } = folder();
  writeFileSync(join(path, 'flock'), '#!/bin/sh\nexit 70\n', { mode: 0o700 });
  const { PATH } = process.env;
  let isAlive = false;
  const open = (dir: string) => FileStore.open(dir, { isAlive: async () => isAlive });
  await withPath(path, () =>
    withStore({ isAlive: async () => isAlive }, async (opened) => {
      assert.match(opened.notices[0], /not locked against a .*: flock ended with 70/);
      isAlive = true;
      await assert.rejects(open(opened.dir), InUseError);
      // A flock can be had, and by nobody else: the other is there all the same.
      await withPath(PATH!, () => assert.rejects(open(opened.dir), InUseError));
      isAlive = false;
      await withPath(PATH!, async () => (await open(opened.dir)).close()); // whoever was refused holds nothing
    }),
  ).finally(remove);
});

test('without a flock that works, of two that start at once one is refused', async (t) => {
  if (process.platform !== 'linux') return t.skip('only Linux has names of sockets outside all directories');
  const { dir: path, remove } = folder();
  writeFileSync(join(path, 'flock'), '#!/bin/sh\nexit 70\n', { mode: 0o700 });
  const dir = join(path, 'data');
  await withPath(path, async () => {
    for (let round = 0; round < 3; round++) {
      const both = await Promise.allSettled([FileStore.open(dir), FileStore.open(dir)]);
      const [store] = both.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
      const refused = both.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
      assert.equal(refused.length, 1);
      assert.ok(refused[0] instanceof InUseError);
      await assert.rejects(FileStore.open(dir), InUseError);
      await store.close();
    }
  }).finally(remove);
});

test('flock is found also where PATH does not lead to it', async (t) => {
  if (!existsSync('/usr/bin/flock') && !existsSync('/bin/flock')) return t.skip('flock is not in its usual places');
  await withPath('', () =>
    withStore({}, async (opened) => {
      assert.deepEqual(opened.notices, []);
      await assert.rejects(FileStore.open(opened.dir), InUseError);
    }),
  );
});

test('a missing file is damage; without the head of a snapshot there is nothing that repair could keep', () =>
  withStore({}, async (opened) => {
    await fill(opened);
    await opened.store.close();
    const log = join(opened.dir, 'log-000001.jsonl');
    const bytes = readFileSync(log);
    rmSync(log);
    await assert.rejects(opened.crash(), /log-000001.jsonl.*missing/);
    writeFileSync(log, bytes);
    const snapshot = join(opened.dir, 'snapshot-000001.jsonl');
    const kept = readFileSync(snapshot);
    rmSync(snapshot);
    const names = readdirSync(opened.dir);
    const isMissing = /snapshot-000001.jsonl, offset 0: the file is missing.*repair cannot help.*Restore a backup/;
    for (const first of [1, 3, 4]) {
      // Also where the log goes on from other records than the first, or its header is gone.
      const header = first === 4 ? 'x' : bytes.toString().split('\n')[0];
      writeFileSync(log, [header, ...bytes.toString().split('\n').slice(first)].join('\n'));
      const before = readFileSync(log);
      await assert.rejects(opened.crash(), isMissing);
      await assert.rejects(repair(opened.dir), isMissing);
      assert.deepEqual(readdirSync(opened.dir), names);
      assert.deepEqual(readFileSync(log), before);
    }
    writeFileSync(log, bytes);
    for (const broken of [kept.toString().replace('"batch":0', '"batch":1'), '']) {
      writeFileSync(snapshot, broken);
      const isHeadless = /snapshot-000001.jsonl, offset 0: the .*repair cannot help.*Restore a backup/;
      await assert.rejects(verify(opened.dir), isHeadless);
      await assert.rejects(repair(opened.dir), isHeadless);
    }
    assert.deepEqual(readFileSync(log), bytes);
    writeFileSync(snapshot, kept);
    await opened.crash();
  }));

test('the calls of the real disk end in the system calls they stand for', async () => {
  const { dir, remove } = folder();
  await checkRealDisk(dir).finally(remove);
});
