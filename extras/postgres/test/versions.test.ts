/** Replicas of two builds beside each other: the newer one has one more column. */
import assert from 'node:assert/strict';
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { it, type TestContext } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { systemClock as clock } from '../../../src/clock.ts';
import { VersionError } from '../../../src/store/engine.ts';
import { temporary } from '../../../test/program.ts';
import { backedUp } from '../../../test/store/contract.ts';
import type { openPostgres } from '../open.ts';
import { onDatabase } from './database.ts';
import { addKey, addPet, petsOf, replica } from './replicas.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const NEWER = /written by a newer version of petstore \(it has pets\.addedLater\)/;

/** The engine of a build whose animals have one more member. */
async function newerBuild(t: TestContext): Promise<typeof openPostgres> {
  const dir = await temporary(t);
  for (const name of ['src', 'extras', 'package.json'])
    cpSync(path.join(ROOT, name), path.join(dir, name), { recursive: true });
  symlinkSync(path.join(ROOT, 'node_modules'), path.join(dir, 'node_modules'));
  const model = path.join(dir, 'src/store/model.ts');
  const text = readFileSync(model, 'utf8');
  const changed = text.replace(/status: \w+\(PET_STATUSES\)/, '$&, addedLater: optional(text(10))');
  assert.notEqual(changed, text);
  writeFileSync(model, changed);
  return (await import(pathToFileURL(path.join(dir, 'extras/postgres/open.ts')).href)).openPostgres;
}

onDatabase('replicas of two builds', (database) => {
  const log = { info: () => {}, warn: () => {}, error: () => {} };
  const born = { name: 'born', categoryId: 1, status: 'available', addedLater: '2026-11-28' } as const;

  it('serve beside each other up to the first row with a new column: then the older one ends, and says why', async (t) => {
    const url = database().url('beside');
    const older = await replica(t, url);
    const key = await addKey(older.store);
    await addPet(older.store, 'of the older');
    const openNewer = await newerBuild(t);
    const newer = await openNewer(url, { clock, log });
    t.after(() => newer.close());
    await addPet(newer.store, 'of the newer');
    for (const { store, limiter } of [older, newer]) {
      await limiter.take(key);
      await addPet(store, 'of both');
    }
    await older.limiter.take(key);
    assert.deepEqual(petsOf(older.store), petsOf(newer.store));
    assert.equal((await newer.limiter.look(key)).minute.remaining, key.perMinute - 3);

    await newer.store.write((tx) => tx.pets.add(born));
    const refused = { message: NEWER, failure: 'closed' };
    await assert.rejects(addPet(older.store, 'never'), refused);
    await assert.rejects(async () => older.limiter.take(key), refused);
    assert.match(older.fatal[0].message, NEWER);
    await newer.limiter.take(key);
    assert.equal(petsOf(newer.store).length, 5);
    assert.deepEqual(newer.store.read.pets.get(5), { id: 5, ...born });
    const again = await openNewer(url, { clock, log });
    assert.deepEqual(petsOf(again.store), petsOf(newer.store));
    assert.equal((await again.verify()).digest, (await newer.verify()).digest);
    await again.close();
  });

  it('an older one starts on no table with a new column, and changes nothing', async (t) => {
    const url = database().url('first');
    const newer = await (await newerBuild(t))(url, { clock, log });
    t.after(() => newer.close());
    await newer.store.write((tx) => tx.pets.add(born));
    const { digest } = await newer.verify();
    for (const own of [{}, { readOnly: true }, { mustExist: true }]) {
      await assert.rejects(
        replica(t, url, own),
        (error: Error) => error instanceof VersionError && NEWER.test(error.message),
      );
    }
    assert.equal((await newer.verify()).digest, digest);
  });

  it('a newer one that only reads adds no column: the older ones still start', async (t) => {
    const url = database().url('reads');
    const older = await replica(t, url);
    await addPet(older.store, 'first');
    const reading = await (await newerBuild(t))(url, { clock, log, readOnly: true });
    const { proof } = await backedUp(reading);
    await reading.close();
    assert.deepEqual(proof, await older.verify());
    assert.deepEqual(petsOf((await replica(t, url)).store), petsOf(older.store));
  });

  it('an older one that was away meanwhile, and reads all rows anew, ends too', async (t) => {
    const url = database().url('away');
    const older = await replica(t, url);
    await addPet(older.store, 'first');
    await older.close();
    const newer = await (await newerBuild(t))(url, { clock, log });
    t.after(() => newer.close());
    await newer.store.write((tx) => tx.pets.add(born));
    await newer.store.write((tx) => tx.pets.add(born));
    await database().query("UPDATE away.changes SET at = now() - interval '2 hours'");
    await newer.compact();
    await assert.rejects(async () => older.limiter.refresh!(), { message: NEWER, failure: 'closed' });
  });
});
