/** How far the store was durable, as `LOCK` tells it: a file that ends before is never taken for whole, or for torn. */
import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Disk, realDisk } from '../../src/store/file/disk.ts';
import { DamagedError, seal } from '../../src/store/file/format.ts';
import { Marks } from '../../src/store/file/lock.ts';
import { openStore } from '../../src/store/file/open.ts';
import { readStore } from '../../src/store/file/tools.ts';
import { workplace } from '../operator/workplace.ts';
import { temporary } from '../program.ts';
import { addKey, addPet, aKey, rested, withStore } from './opened.ts';

const FILE = 'store-000001.jsonl';
const LAG_MAX_MS = 1_000;

const markIn = (dir: string) => JSON.parse(readFileSync(join(dir, 'LOCK'), 'utf8'));
const lengthOf = (dir: string) => statSync(join(dir, FILE)).size;

/** Each byte from there on becomes what `byte` makes of it. */
function overwrite(path: string, from: number, byte: (before: number) => number): void {
  const bytes = readFileSync(path);
  writeFileSync(
    path,
    Buffer.concat([bytes.subarray(0, from), Buffer.from(bytes.subarray(from).map((one) => byte(one)))]),
  );
}

test('a closed store whose end reads as zeros or noise, or is cut off, is damaged: no revoked key comes back', async (t) => {
  const { at, done, run } = await workplace(t);
  await done('keys create --plan free');
  const before = lengthOf(at('data'));
  await done('keys revoke k1');
  const whole = readFileSync(at(`data/${FILE}`));
  const closing = whole.lastIndexOf('{"crc"');
  for (const from of [before, closing, whole.length - 1]) {
    for (const [what, change] of [
      ['zeros', () => overwrite(at(`data/${FILE}`), from, () => 0)],
      // No byte stays as it was: of one alone, noise of any kind would leave the file whole once in 256 times.
      ['noise', () => overwrite(at(`data/${FILE}`), from, (before) => before ^ (1 + Math.floor(255 * Math.random())))],
      ['cut', () => truncateSync(at(`data/${FILE}`), from)],
      ['zeros behind', () => writeFileSync(at(`data/${FILE}`), Buffer.concat([whole, Buffer.alloc(700)]))],
    ] as const) {
      writeFileSync(at(`data/${FILE}`), whole);
      change();
      for (const line of ['serve --port 0', 'verify', 'keys list', 'keys create --plan free']) {
        const { exit, stderr } = await run(line);
        assert.equal(exit, 3, `${what} from ${from}, ${line}: ${stderr}`);
        assert.match(stderr, /store-000001\.jsonl, offset \d+: .*Restore a backup/);
        assert.doesNotMatch(stderr, /the store was closed.*the store was closed/, 'a fault is told once');
      }
    }
  }
});

test('while a store serves LOCK lags behind by a second at most, and is written no more often, without a sync', async () => {
  let [marks, newest] = [0, 0];
  const synced: number[] = [];
  let lock = -1;
  const disk: Disk = {
    ...realDisk,
    lock: (path) => {
      const held = realDisk.lock(path);
      lock = held.fd;
      return held;
    },
    write: (fd, bytes, position) => {
      if (fd === lock) {
        marks++;
        newest = JSON.parse(bytes.toString()).batch;
      }
      return realDisk.write(fd, bytes, position);
    },
    sync: (fd) => {
      synced.push(fd);
      return realDisk.sync(fd);
    },
  };
  await withStore({ disk }, async (opened) => {
    const { store, dir } = opened;
    assert.deepEqual([markIn(dir).batch, markIn(dir).closed], [1, false]);
    const [marksBefore, syncsBefore] = [marks, synced.length];
    const began = performance.now();
    for (let i = 0; i < 50; i++) await addPet(store);
    await sleep(LAG_MAX_MS + 200); // of two timers of one process the shorter ends first, however busy the machine is
    assert.equal(newest, 51, 'the write of it has begun');
    await rested(dir);
    assert.deepEqual([markIn(dir).batch, markIn(dir).length], [51, lengthOf(dir)]);
    const seconds = (performance.now() - began) / 1_000;
    assert.ok(marks - marksBefore <= 2 + seconds, `${marks - marksBefore} marks in ${seconds} s`);
    assert.ok(!synced.slice(syncsBefore).includes(lock), 'not synced');
    await store.close();
    assert.deepEqual([markIn(dir).batch, markIn(dir).closed], [51, true]);
    assert.equal(synced.at(-1), lock, 'a clean close is durable');
    Object.assign(opened, await openStore(dir));
  });
});

test('a copy of which the file is older than LOCK is refused, in words that help, and never served short', async (t) => {
  const { at, run, done, serve, headers } = await workplace(t);
  const server = await serve();
  const init = { method: 'POST', headers: await headers(), body: '{"name":"Rex","categoryId":1}' };
  const create = async () => assert.equal((await fetch(`${server.url}/pets`, init)).status, 201);
  await create();
  mkdirSync(at('copy'), { mode: 0o700 });
  copyFileSync(at(`data/${FILE}`), at(`copy/${FILE}`)); // as `cp -r` may: first the file, LOCK a while later
  await create();
  await rested(at('data'));
  copyFileSync(at('data/LOCK'), at('copy/LOCK'));
  for (const line of ['serve --port 0', 'verify', 'keys list', 'compact']) {
    const { exit, stderr } = await run(`${line} --data copy`);
    assert.equal(exit, 3, stderr);
    assert.match(stderr, /this is a copy that was made while a server ran \(`\S+ \S+ backup` makes a whole one\)/);
  }
  await done('compact');
  copyFileSync(at('data/LOCK'), at('copy/LOCK'));
  const { exit, stderr } = await run('verify --data copy');
  assert.equal(exit, 3);
  assert.match(
    stderr,
    /store-000001\.jsonl is older.*A copy that was made while a server ran may lack it: `\S+ \S+ backup`/,
  );
});

test('what was durable and is gone after a crash is damage too', () =>
  withStore({}, async (opened) => {
    const { store, dir } = opened;
    await addKey(store);
    const length = lengthOf(dir);
    await store.write(() => ({ op: 'setKey', key: aKey(0, { revokedAt: 5 }) }));
    await addPet(store);
    await rested(dir);
    const whole = readFileSync(join(dir, FILE));
    truncateSync(join(dir, FILE), length);
    await assert.rejects(opened.crash(), DamagedError);
    await assert.rejects(readStore(dir), /batch 4 was durable, and batch 2 is the last one here/);
    await store.close().catch(() => {});
    writeFileSync(join(dir, FILE), whole);
    await opened.crash();
    assert.equal(opened.store.read.counts().pets, 1);
  }));

test('a LOCK that cannot be read leaves no file open', () =>
  withStore({}, async ({ dir }) => {
    const open = new Set<number>();
    const disk: Disk = {
      ...realDisk,
      openToRead(path) {
        const fd = realDisk.openToRead(path);
        open.add(fd);
        return fd;
      },
      read() {
        throw Object.assign(new Error('EIO: i/o error, read'), { code: 'EIO', syscall: 'read' });
      },
      close(fd) {
        open.delete(fd);
        realDisk.close(fd);
      },
    };
    await assert.rejects(readStore(dir, { disk }), /EIO/);
    assert.equal(open.size, 0);
  }));

test('a LOCK of an earlier version, which told less, is read; one that is sealed and nonsense is refused by name', async (t) => {
  const dir = join(await temporary(t), 'data');
  await (await openStore(dir)).store.close();
  const { store, lowest } = markIn(dir);
  const write = (members: string) => writeFileSync(join(dir, 'LOCK'), `${seal(members).trimEnd().padEnd(511)}\n`);
  write(`"store":"${store}","lowest":${lowest}}`);
  await (await openStore(dir)).store.close();
  for (const members of [
    'null',
    '}',
    '"store":5,"lowest":1}',
    `"store":"${store}","lowest":"1"}`,
    `"store":"${store}","lowest":1,"batch":-1}`,
    `"store":"${store}","lowest":1,"batch":1.5}`,
    `"store":"${store}","lowest":1,"length":null}`,
    `"store":"${store}","lowest":1,"closed":1}`,
    `"store":"\\",\\"x","lowest":1}`,
  ]) {
    write(members);
    for (const work of [openStore, readStore]) {
      await assert.rejects(
        work(dir),
        (error) => error instanceof DamagedError && /LOCK, offset 0: /.test(error.message),
      );
    }
  }
});

test('a timer that is overdue when LOCK is written does not write it once more behind the closing record', async () => {
  const everyMs = 10;
  let written = 0;
  const marks = new Marks(async () => void written++, everyMs);
  marks.due();
  marks.due(); // waits for its time
  const until = performance.now() + 2 * everyMs;
  while (performance.now() < until) {} // the process is busy, so the timer cannot fire
  marks.due();
  marks.stop();
  await sleep(2 * everyMs);
  assert.equal(written, 2);
});
