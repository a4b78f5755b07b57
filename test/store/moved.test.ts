/** The directory of an open store is moved away, replaced or removed, in whole or in part. */
import assert from 'node:assert/strict';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { realDisk } from '../../src/store/file/disk.ts';
import { openStore } from '../../src/store/file/open.ts';
import { compactFile } from '../../src/store/file/rewrite.ts';
import { readStore, restore } from '../../src/store/file/tools.ts';
import { temporary } from '../program.ts';
import { addPet, checked, filesIn, is, type OpenOptions } from './opened.ts';

const FIRST = 'store-000001.jsonl';
const SECOND = 'store-000002.jsonl';
const ELSEWHERE = /data is not the directory that was opened/;

/** A store in `data`, with one animal, and all that it tells. */
async function opened(t: TestContext, options: OpenOptions = {}) {
  const parent = await temporary(t);
  const at = (name: string) => join(parent, name);
  const told: string[] = [];
  const onNotice = (text: string) => void told.push(text);
  const onFatal = () => void told.push('fatal');
  const { store, journal } = await openStore(at('data'), { onNotice, onFatal, ...options });
  await addPet(store, 'a');
  return { at, store, journal, told };
}

const namesIn = async (dir: string) => (await readStore(dir)).state.pets.page(0, 9).items.map(({ name }) => name);

test('a compaction touches no other store that has taken the place of its own', async (t) => {
  const { at, store, journal, told } = await opened(t);
  renameSync(at('data'), at('moved'));
  await assert.rejects(journal.compact(), ELSEWHERE);
  const other = await openStore(at('data'));
  await addPet(other.store, 'b');
  await assert.rejects(journal.compact(), ELSEWHERE);
  await addPet(other.store, 'c');
  await addPet(store, 'd'); // it is kept in the directory that was moved
  await store.close();
  await other.store.close();
  assert.deepEqual([filesIn(at('data')), filesIn(at('moved'))], [[FIRST], [FIRST]]);
  assert.deepEqual(
    [await namesIn(at('data')), await namesIn(at('moved'))],
    [
      ['b', 'c'],
      ['a', 'd'],
    ],
  );
  assert.deepEqual(told, []);
});

test('nor does one whose directory is replaced while it works, be it by a link', async (t) => {
  let replace = () => {};
  const { at, store, journal, told } = await opened(t, {
    async compact(dir, extent) {
      const name = await compactFile(realDisk, dir, extent);
      replace();
      return name;
    },
  });
  replace = () => {
    renameSync(at('data'), at('moved'));
    mkdirSync(at('other'), { mode: 0o700 });
    symlinkSync('other', at('data'));
    // What a compaction of the other store would have left, or what somebody has copied.
    renameSync(join(at('moved'), `${SECOND}.tmp`), join(at('other'), `${SECOND}.tmp`));
  };
  await assert.rejects(journal.compact(), ELSEWHERE);
  replace = () => {};
  unlinkSync(at('data'));
  renameSync(at('moved'), at('data'));
  await addPet(store, 'b');
  await journal.compact();
  await store.close();
  assert.deepEqual([filesIn(at('data')), told], [[SECOND], []]);
  assert.deepEqual(await namesIn(at('data')), ['a', 'b']);
});

test('a start that had no room begins its file in no other directory', async (t) => {
  const parent = await temporary(t);
  const dir = join(parent, 'data');
  const before = await openStore(dir);
  await addPet(before.store, 'a');
  let isFull = true;
  const full = () => Promise.reject(Object.assign(new Error('ENOSPC'), { code: 'ENOSPC' }));
  const disk = { ...realDisk, create: (path: string) => (isFull ? full() : realDisk.create(path)) };
  before.journal.giveUp();
  const lock = (path: string) => ({ ...realDisk.lock(path), isHeld: false });
  const { store } = await openStore(dir, { disk: { ...disk, lock } });
  isFull = false;
  renameSync(dir, join(parent, 'moved'));
  mkdirSync(dir, { mode: 0o700 });
  await assert.rejects(addPet(store, 'b'), ELSEWHERE);
  assert.deepEqual(readdirSync(dir), []);
});

test('a write into a file that was removed is refused, reads go on, and the content can be saved', async (t) => {
  const { at, store, journal, told } = await opened(t);
  rmSync(at('data'), { recursive: true });
  await assert.rejects(addPet(store, 'b'), is('closed'));
  await assert.rejects(addPet(store, 'b'), is('closed'));
  await assert.rejects(journal.compact());
  assert.equal(checked(store).pets, 1);
  assert.equal(told.length, 1);
  const [, file] = /petstore restore (\/proc\/\d+\/fd\/\d+) --data/.exec(told[0])!;
  assert.equal((await restore(file, at('saved'))).proof.pets, 1);
  await assert.rejects(store.close(), is('closed'));
  assert.deepEqual(await namesIn(at('saved')), ['a']);
});

test('a store whose file is gone, or was cut, when it is closed says so, and gets no closing record', async (t) => {
  for (const work of [rmSync, truncateSync] as ((file: string) => void)[]) {
    const { at, store, told } = await opened(t);
    const file = join(at('data'), FIRST);
    work(file);
    await assert.rejects(store.close(), is('closed'));
    assert.equal(told.length, 1);
    assert.ok(!existsSync(file) || statSync(file).size === 0);
  }
});

test('a write behind what another program has done to the file is refused, and a compaction does not end it', async (t) => {
  const whole = (file: string) => readFileSync(file);
  const done: [how: string, work: (file: string) => void][] = [
    ['emptied', (file) => truncateSync(file)],
    ['a backup copied over it', (file) => writeFileSync(file, whole(file).subarray(0, 300))],
    ['more at its end', (file) => appendFileSync(file, 'x')],
  ];
  for (const [how, work] of done) {
    const { at, store, journal, told } = await opened(t);
    await addPet(store, 'b');
    const file = join(at('data'), FIRST);
    work(file);
    await assert.rejects(journal.compact(), is('closed'), how);
    await assert.rejects(addPet(store, 'c'), is('closed'), how);
    assert.equal(checked(store).pets, 2);
    assert.match(told.join(), /^[^,]*store-000001.jsonl was changed by another program: it has \d+ bytes, not \d+/);
    const left = whole(file);
    await assert.rejects(store.close(), is('closed'));
    assert.deepEqual([filesIn(at('data')), whole(file)], [[FIRST], left]);
  }
});

test('without LOCK no write is taken, for another server could open the store', async (t) => {
  const { at, store, told } = await opened(t);
  unlinkSync(join(at('data'), 'LOCK'));
  await assert.rejects(addPet(store, 'b'), is('closed'));
  await assert.rejects(addPet(store, 'b'), is('closed'));
  assert.deepEqual(told.length, 1);
  assert.match(told[0], /data\/LOCK was removed\. Start again/);
  const other = await openStore(at('data'));
  await addPet(other.store, 'c');
  await assert.rejects(store.close(), is('closed'));
  await other.store.close();
  assert.deepEqual(await namesIn(at('data')), ['a', 'c']);
});
