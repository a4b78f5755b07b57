/** What may stand in a data directory: the store, and nothing that could be taken for it. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { systemClock } from '../../src/clock.ts';
import { DamagedError, VersionError } from '../../src/store/engine.ts';
import { realDisk } from '../../src/store/file/disk.ts';
import { openFileStore, restoreInto } from '../../src/store/file/store.ts';
import { encodeLine } from '../../src/store/log-format.ts';
import { quiet } from '../faults/life.ts';

const options = { clock: systemClock, log: quiet };
const rex = { name: 'Rex', categoryId: 1, status: 'available' as const };

/** A directory that goes with the test. */
function temporary(t: TestContext): string {
  const dir = fs.mkdtempSync(join(tmpdir(), 'petstore-directory-'));
  t.after(() => fs.rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** A closed store that was compacted once. */
async function newStore(dir: string): Promise<string> {
  const engine = await openFileStore(dir, options);
  await engine.store.write((tx) => tx.pets.add(rex));
  await engine.compact();
  await engine.close();
  return join(dir, 'store-000002.jsonl');
}

/** Refused by who writes and by who reads, with these words, and nothing has changed. */
async function refused(dir: string, what: RegExp, kind: new (...words: never[]) => Error = Error): Promise<void> {
  const before = fs.readdirSync(dir).sort();
  for (const readOnly of [false, true]) {
    await assert.rejects(openFileStore(dir, { ...options, readOnly }), (error: Error) => {
      assert.ok(error instanceof kind, error.stack);
      assert.match(error.message, what);
      return true;
    });
  }
  assert.deepEqual(fs.readdirSync(dir).sort(), before);
}

test('a new store is for its owner alone, also several levels deep; a reader makes none', async (t) => {
  const dir = join(temporary(t), 'a', 'b');
  await assert.rejects(openFileStore(dir, { ...options, readOnly: true }), /there is no store/);
  await assert.rejects(openFileStore(dir, { ...options, mustExist: true }), /there is no store/);
  assert.ok(!fs.existsSync(dir));
  const file = await newStore(dir);
  const mode = (path: string) => fs.statSync(path).mode & 0o777;
  assert.deepEqual(
    [mode(join(dir, '..')), mode(dir), mode(file), mode(join(dir, 'LOCK'))],
    [0o700, 0o700, 0o600, 0o600],
  );
});

test('a missing, an empty, a cut or a foreign file is refused by name, and so is what is no file', async (t) => {
  const [dir, other] = [temporary(t), temporary(t)];
  const file = await newStore(dir);
  const bytes = fs.readFileSync(file);
  const foreign = fs.readFileSync(await newStore(other));
  const cases: [what: RegExp, make: () => void][] = [
    [/the file is missing/, () => {}],
    [/does not begin with the header/, () => fs.writeFileSync(file, '')],
    [/does not begin with the header/, () => fs.writeFileSync(file, bytes.subarray(0, 40))],
    [/first lines are not complete/, () => fs.writeFileSync(file, bytes.subarray(0, bytes.indexOf('\n') + 9))],
    [/does not begin with the header/, () => fs.writeFileSync(file, bytes.subarray(bytes.indexOf('\n') + 1))],
    [/of another store/, () => fs.writeFileSync(file, foreign)],
    [/is not a file/, () => execFileSync('mkfifo', [file])],
    [/is not a file/, () => fs.mkdirSync(file)],
  ];
  for (const [what, make] of cases) {
    fs.rmSync(file, { recursive: true });
    make();
    await refused(dir, what);
    await refused(dir, new RegExp(file));
    fs.rmSync(file, { recursive: true, force: true });
    fs.writeFileSync(file, bytes, { mode: 0o600 });
  }
  const engine = await openFileStore(dir, options);
  assert.equal(engine.store.read.pets.size, 1);
  await engine.close();
});

test('a file that the program has not named is refused; one that a crash has left is removed', async (t) => {
  const dir = temporary(t);
  const file = await newStore(dir);
  for (const name of ['store-000003.jsonl', 'store-000009.jsonl', 'store-7.jsonl', 'store-000002.jsonl.bak']) {
    const strange = join(dir, name);
    fs.copyFileSync(file, strange);
    await refused(dir, new RegExp(name), DamagedError);
    fs.rmSync(strange);
  }
  for (const name of ['store-000001.jsonl', 'store-000003.jsonl.tmp']) fs.copyFileSync(file, join(dir, name));
  await (await openFileStore(dir, options)).close();
  assert.deepEqual(fs.readdirSync(dir).sort(), ['LOCK', 'store-000002.jsonl']);
});

test('where an old LOCK and its file were put back, nothing is lost; a next file of another store is refused', async (t) => {
  const dir = temporary(t);
  const old = await newStore(dir);
  const lock = join(dir, 'LOCK');
  const [oldBytes, oldLock] = [fs.readFileSync(old), fs.readFileSync(lock)];
  const engine = await openFileStore(dir, options);
  await engine.compact();
  await engine.store.write((tx) => tx.pets.add(rex));
  await engine.close();
  const newer = join(dir, 'store-000003.jsonl');
  fs.writeFileSync(old, oldBytes, { mode: 0o600 });
  fs.writeFileSync(lock, oldLock);
  const otherDir = temporary(t);
  const other = await openFileStore(otherDir, options);
  await other.compact();
  await other.compact();
  await other.close();
  const newest = fs.readFileSync(newer);
  fs.copyFileSync(join(otherDir, 'store-000003.jsonl'), newer);
  await refused(dir, /store-000003.jsonl: it is of another store/);
  fs.truncateSync(newer, 99);
  await refused(dir, /store-000003.jsonl, offset 0: it does not begin/);
  fs.writeFileSync(newer, newest);
  const again = await openFileStore(dir, options);
  assert.equal(again.store.read.pets.size, 2);
  await again.close();
  assert.deepEqual(fs.readdirSync(dir).sort(), ['LOCK', 'store-000003.jsonl']);
});

test('a restore into an empty store is whole if a crash comes before its LOCK', async (t) => {
  const [dir, full] = [temporary(t), temporary(t)];
  await (await openFileStore(dir, options)).close();
  const oldLock = fs.readFileSync(join(dir, 'LOCK'));
  await restoreInto(dir, fs.createReadStream(await newStore(full)));
  fs.writeFileSync(join(dir, 'LOCK'), oldLock);
  const engine = await openFileStore(dir, options);
  assert.equal(engine.store.read.pets.size, 1);
  await engine.close();
});

test('a renamed file is told as such, and LOCK that was lost or destroyed keeps nobody from the store', async (t) => {
  const dir = temporary(t);
  const file = await newStore(dir);
  const lock = join(dir, 'LOCK');
  for (const ruin of [
    () => fs.rmSync(lock),
    () => fs.truncateSync(lock),
    () => fs.writeFileSync(lock, 'x'.repeat(512)),
  ]) {
    ruin();
    const engine = await openFileStore(dir, options);
    assert.equal(engine.store.read.pets.size, 1);
    await engine.close();
  }
  fs.truncateSync(lock);
  fs.renameSync(file, join(dir, 'store-000005.jsonl'));
  await refused(dir, /says that it is store-000002/, DamagedError);
});

test('a LOCK that names no store is no store, and is left as it is', async (t) => {
  const dir = temporary(t);
  const file = await newStore(dir);
  const lock = join(dir, 'LOCK');
  fs.rmSync(file);
  fs.chmodSync(dir, 0o755);
  for (const foreign of [fs.readFileSync(lock, 'latin1').replace('store', 'stone'), '1\n'.repeat(300)]) {
    fs.writeFileSync(lock, foreign);
    await refused(dir, /LOCK: it names no store/, DamagedError);
    assert.equal(fs.readFileSync(lock, 'latin1'), foreign);
  }
  // As databases leave it beside their own files.
  fs.truncateSync(lock);
  fs.writeFileSync(join(dir, 'photo.jpg'), 'x');
  await refused(dir, /holds no store, but "photo.jpg"/);
  assert.equal(fs.statSync(dir).mode & 0o777, 0o755);
  fs.rmSync(join(dir, 'photo.jpg'));
  await (await openFileStore(dir, options)).close();
});

test('no file of another store is removed, also where LOCK is missing or destroyed', async (t) => {
  const [dir, otherDir] = [temporary(t), temporary(t)];
  const own = await newStore(dir);
  const lock = join(dir, 'LOCK');
  const strange = fs.readFileSync(await newStore(otherDir));
  const [lockBytes, ownBytes] = [fs.readFileSync(lock), fs.readFileSync(own)];
  const flipped = Buffer.from(lockBytes);
  flipped[30] ^= 1;
  for (const ruin of [() => fs.truncateSync(lock), () => fs.writeFileSync(lock, flipped)]) {
    for (const name of ['store-000001.jsonl', 'store-000003.jsonl', 'store-000009.jsonl']) {
      ruin();
      fs.writeFileSync(join(dir, name), strange, { mode: 0o600 });
      await refused(dir, new RegExp(`${dir}: .*unknown which is the store: .*${name}`), DamagedError);
      assert.deepEqual([fs.readFileSync(own), fs.readFileSync(join(dir, name))], [ownBytes, strange]);
      fs.rmSync(join(dir, name));
    }
  }
  // A crash before LOCK was first written may leave two files of one store.
  const engine = await openFileStore(dir, options);
  await engine.compact();
  await engine.close();
  fs.writeFileSync(own, ownBytes, { mode: 0o600 });
  fs.rmSync(lock);
  await (await openFileStore(dir, options)).close();
  assert.deepEqual(fs.readdirSync(dir).sort(), ['LOCK', 'store-000003.jsonl']);
  // Where LOCK names the store's file, an older one of another store is left alone.
  fs.writeFileSync(join(dir, 'store-000001.jsonl'), strange, { mode: 0o600 });
  await (await openFileStore(dir, options)).close();
  assert.deepEqual(fs.readFileSync(join(dir, 'store-000001.jsonl')), strange);
});

test('what another version wrote is no damage, and stays', async (t) => {
  for (const [members, what] of [
    [{ format: 5 }, /a newer version of petstore, in format 5/],
    [{ format: 3 }, /an older version of petstore, in format 3/],
  ] as const) {
    const dir = temporary(t);
    const file = join(dir, 'store-000001.jsonl');
    fs.writeFileSync(file, encodeLine(JSON.stringify({ petstore: 'store', ...members })), { mode: 0o600 });
    fs.appendFileSync(file, encodeLine('{"horses":[]}'));
    await assert.rejects(openFileStore(dir, options), (error: Error) => {
      assert.ok(error instanceof VersionError);
      assert.match(error.message, what);
      return error.message.includes(file);
    });
  }
});

test('where there is no flock, that is told', async (t) => {
  const disk = { ...realDisk, lock: (path: string) => ({ ...realDisk.lock(path), state: 'none' as const }) };
  const said: string[] = [];
  const log = { ...quiet, warn: (message: string) => void said.push(message) };
  await (await openFileStore(temporary(t), { ...options, log }, { disk })).close();
  assert.match(said.join(), /flock does not work here/);
});
