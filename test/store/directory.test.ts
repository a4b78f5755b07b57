/** What may stand in a data directory: the store, and nothing that could be taken for it. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { systemClock } from '../../src/clock.ts';
import { DamagedError } from '../../src/store/engine.ts';
import { realDisk } from '../../src/store/file/disk.ts';
import { openFileStore, restoreInto } from '../../src/store/file/store.ts';
import { encodeLine } from '../../src/store/log-format.ts';
import { VersionError } from '../../src/store/schema.ts';
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
  return join(dir, 'store.jsonl');
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

test('a next file that a crash has left is removed; whatever else lies there stays', async (t) => {
  const dir = temporary(t);
  const file = await newStore(dir);
  const others = ['store-000007.jsonl', 'store.jsonl.bak', 'store.jsonl.tmp'];
  for (const name of others) fs.copyFileSync(file, join(dir, name));
  await (await openFileStore(dir, options)).close();
  assert.deepEqual(fs.readdirSync(dir).sort(), ['LOCK', 'store-000007.jsonl', 'store.jsonl', 'store.jsonl.bak']);
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

test('LOCK that was lost or destroyed keeps nobody from the store, and is written anew', async (t) => {
  const dir = temporary(t);
  const file = await newStore(dir);
  const lock = join(dir, 'LOCK');
  const bytes = fs.readFileSync(lock);
  for (const ruin of [
    () => fs.rmSync(lock),
    () => fs.truncateSync(lock),
    () => fs.writeFileSync(lock, Buffer.alloc(bytes.length)),
    () => fs.writeFileSync(lock, 'x'.repeat(bytes.length)),
  ]) {
    ruin();
    const engine = await openFileStore(dir, options);
    assert.equal(engine.store.read.pets.size, 1);
    await engine.close();
    assert.deepEqual(fs.readFileSync(lock), bytes);
  }
  fs.renameSync(file, `${file}.old`);
  await refused(dir, /store.jsonl: the file is missing/, DamagedError);
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
  await refused(dir, /holds no store, but "photo.jpg"|there is no store/);
  assert.equal(fs.statSync(dir).mode & 0o777, 0o755);
  fs.rmSync(join(dir, 'photo.jpg'));
  await (await openFileStore(dir, options)).close();
});

test('a file of another store is refused, and neither removed nor replaced', async (t) => {
  const [dir, otherDir] = [temporary(t), temporary(t)];
  const own = await newStore(dir);
  const strange = fs.readFileSync(await newStore(otherDir));
  fs.writeFileSync(own, strange);
  await refused(dir, /store.jsonl: it is of another store/, DamagedError);
  await assert.rejects(restoreInto(dir, fs.createReadStream(own)), /it is of another store/);
  assert.deepEqual(fs.readFileSync(own), strange);
});

test('what another version wrote is no damage, and stays', async (t) => {
  const header = (format: number) => encodeLine(JSON.stringify({ petstore: 'store', format }));
  const cases: [name: string, format: number, what: RegExp][] = [
    ['store.jsonl', 6, /store.jsonl: written by a newer version of petstore, in format 6/],
    ['store.jsonl', 4, /store.jsonl: written by an older version of petstore, in format 4/],
    ['store-000007.jsonl', 4, /store-000007.jsonl: written by an older version of petstore/],
  ];
  for (const [name, format, what] of cases) {
    const dir = temporary(t);
    const bytes = Buffer.concat([header(format), encodeLine('{"horses":[]}')]);
    fs.writeFileSync(join(dir, name), bytes, { mode: 0o600 });
    for (const readOnly of [false, true]) {
      const opened = openFileStore(dir, { ...options, readOnly });
      await assert.rejects(opened, (error) => error instanceof VersionError && what.test(error.message));
    }
    assert.deepEqual(fs.readFileSync(join(dir, name)), bytes);
    await assert.rejects(restoreInto(temporary(t), fs.createReadStream(join(dir, name))), VersionError);
  }
});

test('where there is no flock, that is told', async (t) => {
  const disk = { ...realDisk, lock: (path: string) => ({ ...realDisk.lock(path), state: 'none' as const }) };
  const said: string[] = [];
  const log = { ...quiet, warn: (message: string) => void said.push(message) };
  await (await openFileStore(temporary(t), { ...options, log }, { disk })).close();
  assert.match(said.join(), /flock does not work here/);
});
