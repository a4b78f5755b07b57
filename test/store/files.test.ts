/** What stands in a data directory, what is refused there, and what becomes of it. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { crc32 } from 'node:zlib';
import { VersionError } from '../../src/store/change-json.ts';
import { columnsOf } from '../../src/store/changes.ts';
import { type Disk, realDisk } from '../../src/store/file/disk.ts';
import { encodeBatch, isSealed, seal } from '../../src/store/file/format.ts';
import { InUseError, openStore } from '../../src/store/file/open.ts';
import { readFile } from '../../src/store/file/read.ts';
import { compactFile } from '../../src/store/file/rewrite.ts';
import { backup, readStore, restore } from '../../src/store/file/tools.ts';
import { temporary } from '../program.ts';
import { addKey, addPet, check, filesIn, is, type Opened, type OpenOptions, order, pet, withStore } from './opened.ts';

const lines = (path: string) => readFileSync(path, 'utf8').trimEnd().split('\n');
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

function replaceText(file: string, text: string | RegExp, instead: string): void {
  writeFileSync(file, readFileSync(file, 'utf8').replace(text, instead));
}

/** By all that reads a store, and it stays as it is. */
async function refused({ dir }: Opened, matches: (error: Error) => boolean): Promise<void> {
  const before = readdirSync(dir);
  for (const attempt of [readStore, openStore]) await assert.rejects(attempt(dir), matches);
  assert.deepEqual(readdirSync(dir), before);
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

test('the same content has the same proof, whatever file it comes from; a backup that is damaged is told as that', (t) =>
  withStore({}, async (opened) => {
    await fill(opened);
    const { proof } = await readStore(opened.dir);
    assert.deepEqual({ ...proof, digest: '' }, { pets: 3, orders: 1, categories: 1, keys: 1, digest: '' });
    for (const step of [() => opened.journal.compact(), opened.crash, opened.reopen]) {
      await step();
      assert.deepEqual((await readStore(opened.dir)).proof, proof);
    }
    const elsewhere = await temporary(t);
    const [file, target, other] = ['backup', 'restored', 'other'].map((name) => join(elsewhere, name));
    writeFileSync(`${file}.tmp`, 'of somebody else');
    assert.deepEqual(await backup(opened.dir, file), proof);
    assert.deepEqual((await restore(file, target)).proof, proof);
    assert.deepEqual((await readStore(target)).proof, proof);
    await (await openStore(other)).store.close();
    const noRoom = () => Promise.reject(Object.assign(new Error('no room for LOCK'), { code: 'ENOSPC' }));
    await restore(file, other, { disk: { ...realDisk, openToWrite: noRoom } });
    assert.deepEqual((await readStore(other)).proof, proof, 'in an empty store, whose id LOCK tells');
    rmSync(other, { recursive: true });
    replaceText(file, '"a"', '"A"');
    await assert.rejects(restore(file, other), /It is the backup that is damaged; nothing was restored\.$/);
    assert.deepEqual(readdirSync(elsewhere), ['backup', 'backup.tmp', 'restored']);
    await addPet(opened.store);
    assert.notEqual((await readStore(opened.dir)).proof.digest, proof.digest);
  }));

test('the lines that docs/formats.md shows are sealed as those of a store are', () => {
  const shown = readFileSync(join(import.meta.dirname, '../../docs/formats.md'), 'utf8').match(
    /(?<=^ {4})\{"crc":"\w.*/gm,
  );
  assert.deepEqual(
    shown?.map((line) => isSealed(Buffer.from(line))),
    [true, true],
  );
});

test('a directory that cannot be read is none that is empty', () => {
  assert.deepEqual(realDisk.list('/nowhere/at-all'), []);
  assert.throws(() => realDisk.list(`${import.meta.dirname}/opened.ts/below`), { code: 'ENOTDIR' });
});

test('once a compacted file has its name, no failure takes that back', () => {
  let [isListed, written, unclosed] = [true, -1, -1];
  const failed = (code: string, syscall: string) => Object.assign(new Error(code), { code, syscall });
  const disk: Disk = {
    ...realDisk,
    list(dir) {
      if (!isListed) throw failed('EMFILE', 'scandir');
      return realDisk.list(dir);
    },
    openToWrite: async (path) => (written = await realDisk.openToWrite(path)),
    close(fd) {
      realDisk.close(fd);
      if (fd === unclosed) throw failed('EIO', 'close');
    },
  };
  return withStore({ disk }, async ({ store, journal, dir }) => {
    await addPet(store);
    isListed = false;
    await journal.compact();
    isListed = true;
    assert.deepEqual(filesIn(dir), ['store-000001.jsonl', 'store-000002.jsonl'], 'the other goes another time');
    unclosed = written;
    await assert.rejects(journal.compact(), /EIO/);
    unclosed = -1;
    assert.equal((await addPet(store)).pet.id, 2);
  });
});

test('a store is opened to be written on once, and again when it was closed', () =>
  withStore({}, async (opened) => {
    await assert.rejects(openStore(opened.dir), InUseError);
    await opened.store.close();
    Object.assign(opened, await openStore(opened.dir));
  }));

test('what another version wrote is refused as that, also behind damage, and stays', () =>
  withStore({}, async (opened) => {
    await fill(opened);
    await opened.store.close();
    const file = path(opened);
    const whole = readFileSync(file);
    const newerLine = () => replaceLine(file, 4, (body) => body.replace('"op":"addPet"', '"op":"addHorse"'));
    for (const change of [
      () => replaceLine(file, 0, (body) => body.replace('"version":3', '"version":4')),
      () => replaceLine(file, 0, (body) => body.replace('"version":3', '"version":2')),
      newerLine,
      () => {
        newerLine();
        replaceText(file, '"name":"a"', '"name":"A"');
      },
    ]) {
      change();
      const changed = readFileSync(file);
      await refused(opened, (error) => error instanceof VersionError && error.message.includes(file));
      assert.deepEqual(readFileSync(file), changed);
      writeFileSync(file, whole);
    }
    await opened.crash();
  }));

test('what is not the store, or no file at all, is refused by name and at once', (t) =>
  withStore({}, async (opened) => {
    await fill(opened);
    const first = readFileSync(path(opened));
    await opened.reopen();
    await opened.journal.compact();
    await opened.store.close();
    const file = path(opened);
    const whole = readFileSync(file);
    const another = join(await temporary(t), 'another');
    await (await openStore(another)).store.close();
    const copy = () => writeFileSync(file, readFileSync(join(another, 'store-000001.jsonl')));
    const cases: [what: RegExp, make: () => void][] = [
      [/the file is missing.*to begin anew or restore a backup here, type `rm .*LOCK`/, () => {}],
      [/store-000001\.jsonl is older/, () => writeFileSync(join(opened.dir, 'store-000001.jsonl'), first)],
      [/ends within its first batch/, () => writeFileSync(file, '')],
      [
        /first line is no header.*Restore a backup into an empty directory\.$/,
        () => writeFileSync(file, whole.subarray(whole.indexOf('\n') + 1)),
      ],
      [/cut off/, () => writeFileSync(file, whole.subarray(0, 40))],
      [/says that it is store-000001/, copy],
      [
        /belongs to another store/,
        () => {
          copy();
          replaceLine(file, 0, (body) => body.replace('"file":1', '"file":2'));
        },
      ],
      [/is not a file/, () => execFileSync('mkfifo', [file])],
      [/is not a file/, () => mkdirSync(file)],
      [/is a link: the files of a store/, () => symlinkSync(join(opened.dir, 'nowhere'), file)],
    ];
    for (const [what, make] of cases) {
      for (const name of filesIn(opened.dir)) rmSync(join(opened.dir, name), { recursive: true });
      make();
      await refused(opened, ({ message }) => what.test(message) && message.includes(file));
    }
    rmSync(file);
    writeFileSync(file, whole);
    for (const name of ['store-000003.jsonl', 'store-7.jsonl', 'store-000002.jsonl.bak', 'snapshot-000001.jsonl']) {
      const strange = join(opened.dir, name);
      writeFileSync(strange, whole);
      const what = /says that it is|no file of this format has such a name/;
      await refused(opened, ({ message }) => what.test(message) && message.includes(strange));
      rmSync(strange);
    }
    await assert.rejects(openStore('/proc/petstore'), /ENOENT|EACCES/);
    await opened.crash();
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
      openToRead(file) {
        const isStore = file.endsWith('.jsonl');
        if (isStore) isStale = false;
        return realDisk.openToRead(isStale && !isStore ? before : file);
      },
    };
    assert.equal((await readStore(opened.dir, { disk })).proof.pets, 1);
    rmSync(before);
  }));

test('what a refusal tells to type works as it stands, whatever the name of the directory', async (t) => {
  const parent = await temporary(t);
  const dir = join(parent, "it's my data");
  const open = () => openStore(dir).then(({ store }) => store);
  await (await open()).close();
  const file = join(dir, 'store-000001.jsonl');
  const toType = (error: Error) => /`(.+?)`/.exec(error.message)![1];
  rmSync(file);
  execFileSync('sh', ['-c', await open().then(String, toType)], { cwd: parent });
  await (await open()).close();
});

test('no room: the batch and what rests on it are refused as full, and a write two seconds later tries again', async (t) => {
  let isFull = false;
  const disk: Disk = {
    ...realDisk,
    async write(fd, bytes, position) {
      if (!isFull) return realDisk.write(fd, bytes, position);
      await realDisk.write(fd, bytes.subarray(0, bytes.length / 2), position);
      throw Object.assign(new Error('no space'), { code: 'ENOSPC' });
    },
  };
  let now = 0;
  t.mock.method(performance, 'now', () => now);
  await withStore({ disk }, async (opened) => {
    await addPet(opened.store, 'kept');
    isFull = true;
    for (const write of [addPet(opened.store), order(opened.store, 1)]) await assert.rejects(write, is('full'));
    assert.equal(opened.store.read.pets.get(1)?.status, 'available');
    await check(opened);
    await opened.crash(); // on a full disk: reads are served, and writes once there is room
    assert.equal(opened.store.read.pets.get(1)?.name, 'kept');
    assert.match(opened.notices.at(-1)!, /no room to write; reads are served/);
    await assert.rejects(addPet(opened.store), is('full'));
    isFull = false;
    now += 1_999;
    await assert.rejects(addPet(opened.store), is('full'), 'not with every write');
    now += 1;
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
  });
});

type Compact = NonNullable<OpenOptions['compact']>;

test('a compaction copies what is written meanwhile; one that fails changes nothing, and closing gives it up', async () => {
  let during = async (_signal: AbortSignal) => {};
  const compact: Compact = async (dir, extent, signal) => {
    const unnamed = await compactFile(realDisk, dir, extent);
    await during(signal);
    return unnamed;
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
    const begun = new Promise<void>((resolve) => {
      during = (signal) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason));
          resolve();
        });
    });
    const given = assert.rejects(opened.journal.compact(), /is being stopped, and the compaction was not done/);
    await begun;
    await opened.reopen();
    await given;
    assert.deepEqual(opened.notices, []);
  });
});

test('who asks for a compaction while one is under way waits for that one', async () => {
  let asked = 0;
  const compact: Compact = (dir, extent) => {
    asked++;
    return compactFile(realDisk, dir, extent);
  };
  await withStore({ compact }, async (opened) => {
    await fill(opened);
    const { journal, dir } = opened;
    await Promise.all([journal.compact(), journal.compact(), journal.compact()]);
    assert.deepEqual([asked, journal.compactions.counts.done, filesIn(dir)], [1, 1, ['store-000002.jsonl']]);
    await journal.compact();
    assert.deepEqual([asked, filesIn(dir)], [2, ['store-000003.jsonl']]);
  });
});

const MAX_LINE_BYTES = 4 * 1024 * 1024;
const MAX_BATCH_BYTES = 32 * 1024 * 1024;

test('a line has 4 MiB at most and a batch 32, each character counted as three bytes: what is more is refused whole', () => {
  const named = (length: number) => ({ op: 'setCategory' as const, category: { id: 1, name: 'x'.repeat(length) } });
  assert.ok(encodeBatch(1, [named(MAX_LINE_BYTES - 200)]).length <= MAX_LINE_BYTES);
  assert.throws(() => encodeBatch(1, [named(MAX_LINE_BYTES)]), { failure: 'rejected' });
  const [half, most] = [3_700_000, Math.floor(MAX_BATCH_BYTES / 3)];
  assert.ok(encodeBatch(1, [named(half), named(half), named(most - 2 * half - 500)]).length < most);
  assert.throws(() => encodeBatch(1, [named(half), named(half), named(most - 2 * half)]), { failure: 'busy' });
});

test('a longer line is told as that by who reads it, also where it has no end', () =>
  withStore({}, async (opened) => {
    const file = path(opened);
    const whole = readFileSync(file);
    const header = whole.subarray(0, whole.indexOf('\n') + 1);
    const long = seal(`"op":"${'x'.repeat(MAX_LINE_BYTES)}"}`);
    for (const text of [long, long.trimEnd()]) {
      writeFileSync(file, header + text);
      await assert.rejects(readStore(opened.dir), /offset \d+: a line has more than 4 MB\. Nothing was changed/);
    }
    writeFileSync(file, whole);
  }));

test('a file is compacted by itself when it has grown beyond 64 MiB, restarts or not; a failure is told, once and not with every batch', async () => {
  const notices: string[] = [];
  const onNotice = (text: string) => void notices.push(text);
  const compact: Compact = async (_, { length }) => {
    throw new Error(`${length} bytes`);
  };
  await withStore({ compact, onNotice }, async (opened) => {
    const categories = Array.from({ length: 7_700 }, (_, id) => ({ id, name: 'x'.repeat(510) }));
    const fillAgain = ({ store } = opened) =>
      store.write(() => ({ op: 'fill', at: store.unix(), categories, pets: columnsOf([]) }));
    const isTold = async (count: number) => {
      for (const write of [() => {}, () => addPet(opened.store)]) {
        await write();
        await opened.journal.compactions.underWay?.catch(() => {});
        await new Promise(setImmediate);
        assert.equal(notices.length, count);
      }
      assert.match(notices.at(-1)!, /^compaction failed, and will be tried again: [67]\d{7} bytes$/);
    };
    for (let i = 0; i < 17; i++) {
      if (i === 8 || i === 16) await opened.reopen();
      await fillAgain();
    }
    await isTold(1);
    await opened.reopen();
    await fillAgain();
    await isTold(2);
  });
});

test('growth is measured from the first batch of the file, by each reader of it', () =>
  withStore({}, async (opened) => {
    const begun = async () => (await readFile(realDisk, path(opened))).baseLength;
    await fill(opened);
    await opened.journal.compact();
    const { size } = statSync(path(opened));
    assert.equal(await begun(), size);
    await addPet(opened.store);
    await opened.reopen();
    await addPet(opened.store);
    assert.equal(await begun(), size);
    await opened.crash();
    assert.equal(await begun(), statSync(path(opened)).size, 'after a crash the file is a new one');
  }));
