/** What repair saves where more than the last record is gone. */
import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { DamagedError } from '../../src/store/damage.ts';
import { realDisk } from '../../src/store/disk.ts';
import { compactFiles } from '../../src/store/generation.ts';
import { recover } from '../../src/store/recovery.ts';
import { repair } from '../../src/store/repair.ts';
import { addPet, type Opened, order, withStore } from './opened.ts';

const inStore = ({ dir }: Opened, name: string) => join(dir, name);

function change(path: string, from: string, to: string): void {
  const text = readFileSync(path, 'utf8');
  assert.ok(text.includes(from));
  writeFileSync(path, text.replace(from, to));
}

function copyData(from: string, to: string): void {
  mkdirSync(to, { recursive: true });
  for (const name of readdirSync(from)) if (name.endsWith('.jsonl')) copyFileSync(join(from, name), join(to, name));
}

/** A store of four logs in a chain, with an animal in each. */
async function aChain({ store }: Opened): Promise<void> {
  for (const name of ['one', 'two', 'three']) {
    await addPet(store, name);
    await assert.rejects(store.compact(), /killed/);
  }
  await addPet(store, 'four');
}

const NOTHING = { pets: 0, orders: 0, categories: 0, keys: 0, others: 0 };
const killed = () => Promise.reject(new Error('killed'));

test('what cannot be read may have given ids: none of them is given again', () =>
  withStore({}, async (opened) => {
    for (const name of ['one', 'two', 'lost']) await addPet(opened.store, name);
    await opened.store.close();
    change(inStore(opened, 'log-000001.jsonl'), '"lost"', '"Lost"');
    await repair(opened.dir);
    await opened.crash();
    assert.equal(opened.store.read.counts().pets, 2);
    assert.ok((await addPet(opened.store)).pet.id > 3);
  }));

test('nor are those of an import whose end cannot be read', () =>
  withStore({}, async (opened) => {
    const { store } = opened;
    const pets = Array.from({ length: 900 }, () => ({ name: 'Rex', categoryId: 1, status: 'sold' as const }));
    await store.write(() => ({ op: 'importPart', import: 'one', pets }));
    await store.write((ahead) => ({ op: 'endImport', import: 'one', first: ahead.nextPetId(), count: 900 }));
    await store.close();
    change(inStore(opened, 'log-000001.jsonl'), '"count":900', '"count":901');
    await repair(opened.dir);
    await opened.crash();
    assert.ok((await addPet(opened.store)).pet.id > 900);
  }));

test('nor are those of a log that is gone', () =>
  withStore({}, async (opened) => {
    for (let i = 0; i < 20; i++) await addPet(opened.store);
    await order(opened.store, 1);
    await opened.store.close();
    rmSync(inStore(opened, 'log-000001.jsonl'));
    await repair(opened.dir);
    await opened.crash();
    assert.ok((await addPet(opened.store)).pet.id > 20);
  }));

test('a log that ends too early, where another goes on, is the one that is damaged', () =>
  withStore({ compact: killed }, async (opened) => {
    await aChain(opened);
    await opened.store.close();
    const copy = join(opened.dir, 'copy');
    copyData(opened.dir, copy);
    const path = inStore(opened, 'log-000001.jsonl');
    const { length } = readFileSync(path);
    for (const left of [length - 1, length - 30, length - 200]) {
      truncateSync(path, left);
      await assert.rejects(recover(realDisk, opened.dir), (error) => {
        assert.ok(error instanceof DamagedError, String(error));
        assert.match(error.message, /log-000001\.jsonl, offset \d+, record \d+: the log ends here, but log-000002/);
        assert.match(error.message, new RegExp(`petstore repair --data ${opened.dir}\``));
        return true;
      });
      copyFileSync(join(copy, 'log-000001.jsonl'), path);
    }
    truncateSync(path, length - 200);
    const { damage, kept } = await repair(opened.dir);
    assert.equal(damage?.file, path);
    assert.deepEqual(
      kept.map((name) => name.slice(opened.dir.length + 1)),
      ['log-000001', 'log-000002', 'log-000003', 'log-000004'].map((name) => `${name}.jsonl.damaged`),
    );
    await opened.crash();
    assert.ok((await addPet(opened.store)).pet.id > 4);
  }));

test('beside a damaged snapshot an older one is taken, if its logs lead as far', async () => {
  let compact: (dir: string, generation: number) => Promise<void> = killed;
  await withStore({ compact: (dir, generation) => compact(dir, generation) }, async (opened) => {
    await aChain(opened);
    const copy = join(opened.dir, 'copy');
    compact = async (dir, generation) => {
      copyData(dir, copy);
      await compactFiles(realDisk, dir, generation);
    };
    await opened.store.compact();
    await addPet(opened.store, 'five');
    const proof = opened.store.check();
    await opened.store.close();
    rmSync(join(copy, 'log-000005.jsonl'));
    copyData(copy, opened.dir); // as after a crash before the older files were removed
    change(inStore(opened, 'snapshot-000005.jsonl'), '"one"', '"One"');
    const repaired = await repair(opened.dir);
    assert.match(repaired.damage!.file, /snapshot-000005/);
    assert.deepEqual([repaired.proof, repaired.lost], [proof, NOTHING]);
    await opened.crash();
  });
});

test('nor is a key as the damaged snapshot knew it', async () => {
  let copy = '';
  const compact = async (dir: string, generation: number) => {
    copyData(dir, copy);
    await compactFiles(realDisk, dir, generation);
  };
  await withStore({ compact }, async (opened) => {
    copy = join(opened.dir, 'copy');
    const about = {
      name: 'a',
      plan: 'free',
      environment: 'staging',
      createdAt: 1,
      perMinute: 60,
      perDay: 1_000,
    } as const;
    const setKey = (slot: number, digest: string, revokedAt?: number) => {
      const key = { id: `k${slot + 1}`, slot, ...about, secrets: [{ digest }], revokedAt };
      return opened.store.write(() => ({ op: 'setKey', key }));
    };
    await addPet(opened.store);
    await setKey(0, 'one');
    await setKey(1, 'two');
    await opened.store.compact();
    await setKey(0, 'one', 7);
    await setKey(1, 'new');
    const proof = opened.store.check();
    await opened.store.close();
    rmSync(join(copy, 'log-000002.jsonl'));
    copyData(copy, opened.dir);
    change(inStore(opened, 'snapshot-000002.jsonl'), '"nextPetId"', '"nextPetID"');
    const repaired = await repair(opened.dir);
    assert.deepEqual([repaired.proof, repaired.lost], [proof, NOTHING]);
    await opened.crash();
  });
});

test('a snapshot that is damaged at its beginning does not win against an older one with damage behind it', () =>
  withStore({}, async (opened) => {
    const { store, dir } = opened;
    for (const name of ['one', 'two', 'three']) await addPet(store, name);
    await store.close();
    const copy = join(dir, 'copy');
    copyData(dir, copy);
    await opened.crash();
    await opened.store.compact();
    await opened.store.close();
    copyData(copy, dir);
    change(inStore(opened, 'log-000001.jsonl'), '"three"', '"Three"');
    change(inStore(opened, 'snapshot-000002.jsonl'), '"nextPetId"', '"nextPetID"');
    const { proof, kept } = await repair(dir);
    assert.equal(proof.pets, 2);
    assert.equal(kept.length, 3);
    await opened.crash();
    assert.ok((await addPet(opened.store)).pet.id > 3);
  }));

test('a file that only looks like a newer snapshot costs nothing', () =>
  withStore({}, async (opened) => {
    await addPet(opened.store);
    const proof = opened.store.check();
    await opened.store.close();
    const own = readFileSync(inStore(opened, 'snapshot-000001.jsonl'));
    for (const [stray, name] of [
      ['', 'snapshot-000009.jsonl'],
      [own, 'snapshot-000099.jsonl'],
    ] as const) {
      const path = inStore(opened, name);
      writeFileSync(path, stray);
      await assert.rejects(recover(realDisk, opened.dir), new RegExp(`${name}.*type .petstore repair`));
      const repaired = await repair(opened.dir);
      assert.deepEqual([repaired.proof, repaired.lost], [proof, NOTHING]);
      assert.ok(repaired.kept.includes(`${path}.damaged`));
      await opened.crash();
      await opened.store.close();
    }
  }));
