/** The failure policy of the log, failure by failure: what ends the store, what is refused, what is tried again. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Disk, realDisk } from '../../src/store/file/disk.ts';
import { DamagedError, encodeBatch } from '../../src/store/file/format.ts';
import { InUseError, openStore } from '../../src/store/file/open.ts';
import { compactFile } from '../../src/store/file/rewrite.ts';
import { readStore } from '../../src/store/file/tools.ts';
import { unlocked } from '../faults/sim-disk.ts';
import { addPet, filesIn, is, type OpenOptions, pet, withStore } from './opened.ts';

/** So long a compaction takes to end when it is given up: a store that did not wait for it would be closed sooner. */
const ENDING_MS = 300;

const failed = (code: string, syscall: string) => Object.assign(new Error(code), { code, syscall });

/** A disk of which one call fails while `failure` is set. */
function failing(name: 'write' | 'sync' | 'rename' | 'create') {
  const broken = { failure: undefined as Error | undefined };
  const call = realDisk[name] as (...args: unknown[]) => Promise<unknown>;
  const disk: Disk = {
    ...realDisk,
    [name]: (...args: unknown[]) => (broken.failure ? Promise.reject(broken.failure) : call(...args)),
  };
  return { broken, disk };
}

/** The options of a store that tells what has ended it. */
function telling(disk: Disk): { fatal: string[]; options: OpenOptions } {
  const fatal: string[] = [];
  return { fatal, options: { disk, onFatal: ({ failure }) => fatal.push(failure) } };
}

test('a write that fails, and not for want of room, ends it: what is on the disk is unknown', async () => {
  const { broken, disk } = failing('write');
  const { fatal, options } = telling(disk);
  await withStore(options, async (opened) => {
    await addPet(opened.store);
    broken.failure = failed('EIO', 'write');
    await assert.rejects(addPet(opened.store), is('unknown'));
    broken.failure = undefined;
    await assert.rejects(addPet(opened.store), is('closed'));
    assert.deepEqual(fatal, ['unknown']);
    await opened.store.close();
    await opened.crash();
    assert.equal(opened.store.read.counts().pets, 1);
  });
});

test('a compacted file whose name may not be durable ends it; without a descriptor for that nothing was done', async () => {
  const { broken, disk } = failing('rename');
  const { fatal, options } = telling(disk);
  await withStore(options, async (opened) => {
    await addPet(opened.store);
    broken.failure = failed('EMFILE', 'open');
    await assert.rejects(opened.journal.compact(), /EMFILE/);
    await addPet(opened.store);
    assert.deepEqual(fatal, []);
    broken.failure = failed('EIO', 'fsync');
    await assert.rejects(opened.journal.compact(), is('unknown'));
    await assert.rejects(addPet(opened.store), is('closed'));
    assert.deepEqual(fatal, ['unknown']);
    broken.failure = undefined;
    await opened.store.close();
    await opened.crash();
    assert.equal(opened.store.read.counts().pets, 2);
  });
});

test('a start without room serves; another failure at the file that it then begins ends it', async () => {
  const { broken, disk } = failing('create');
  const { fatal, options } = telling(disk);
  await withStore(options, async (opened) => {
    await addPet(opened.store);
    broken.failure = failed('ENOSPC', 'open');
    await opened.crash();
    assert.equal(opened.store.read.counts().pets, 1);
    broken.failure = failed('EIO', 'write');
    await assert.rejects(addPet(opened.store), is('unknown'));
    assert.deepEqual(fatal, ['unknown']);
    broken.failure = undefined;
    await opened.crash();
  });
});

test('batches that are given to the log at once are written one behind the other', () =>
  withStore({}, async (opened) => {
    const { journal } = opened;
    await Promise.all([1, 2, 3].map((id) => journal.append([{ op: 'addPet', pet: pet(id) }])));
    await opened.crash();
    assert.equal(opened.store.read.counts().pets, 3);
  }));

test('a start that has no room for LOCK leaves no file open but those of the store', async () => {
  const open = new Set<number>();
  let isFull = false;
  const kept = (fd: number) => {
    open.add(fd);
    return fd;
  };
  const disk: Disk = {
    ...realDisk,
    openToRead: (path) => kept(realDisk.openToRead(path)),
    openToWrite: async (path) => kept(await realDisk.openToWrite(path)),
    create: async (path) => kept(await realDisk.create(path)),
    write: (...args) => (isFull ? Promise.reject(failed('ENOSPC', 'write')) : realDisk.write(...args)),
    close(fd) {
      open.delete(fd);
      realDisk.close(fd);
    },
  };
  await withStore({ disk }, async (opened) => {
    await addPet(opened.store);
    assert.equal(open.size, 1);
    await opened.store.close();
    assert.equal(open.size, 0);
    isFull = true;
    await opened.crash();
    assert.equal(open.size, 0, 'it is read, and there is no file to write on');
    isFull = false;
    await addPet(opened.store);
    assert.equal(open.size, 1);
  });
});

test('a compaction goes no further once the log has failed', async () => {
  const { broken, disk } = failing('sync');
  const { fatal, options } = telling(disk);
  let during = async () => {};
  const compact: OpenOptions['compact'] = async (dir, extent) => {
    const unnamed = await compactFile(realDisk, dir, extent);
    await during();
    return unnamed;
  };
  await withStore({ ...options, compact }, async (opened) => {
    await addPet(opened.store);
    during = async () => {
      broken.failure = failed('EIO', 'fdatasync');
      await assert.rejects(addPet(opened.store), is('unknown'));
      broken.failure = undefined;
    };
    await assert.rejects(opened.journal.compact(), is('closed'));
    assert.deepEqual([filesIn(opened.dir), fatal], [['store-000001.jsonl'], ['unknown']]);
    await opened.store.close();
    await opened.crash();
  });
});

test('closing waits for the end of the compaction that it gives up, and only then lets others in', async () => {
  const order: string[] = [];
  let release = () => {};
  const released = new Promise<void>((resolve) => (release = resolve));
  const lock = (path: string) => {
    const taken = realDisk.lock(path);
    return {
      ...taken,
      release() {
        order.push('released');
        taken.release();
        release();
      },
    };
  };
  let begin = () => {};
  const begun = new Promise<void>((resolve) => (begin = resolve));
  const compact: OpenOptions['compact'] = async (dir, extent, signal) => {
    const unnamed = await compactFile(realDisk, dir, extent);
    begin();
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    await Promise.race([released, sleep(ENDING_MS)]);
    order.push('given up');
    throw new Error(unnamed);
  };
  await withStore({ compact, disk: { ...realDisk, lock } }, async (opened) => {
    await addPet(opened.store);
    const compacted = assert.rejects(opened.journal.compact(), is('closed'));
    await begun;
    await opened.store.close();
    await compacted;
    assert.deepEqual([order, filesIn(opened.dir)], [['given up', 'released'], ['store-000001.jsonl']]);
    await opened.crash();
  });
});

test('a compacted file that LOCK may not name durably ends it as well', async () => {
  const { broken, disk } = failing('sync');
  let failure: Error | undefined;
  const { fatal, options } = telling({
    ...disk,
    async rename(from, to) {
      await realDisk.rename(from, to);
      broken.failure = failure;
    },
  });
  await withStore(options, async (opened) => {
    await addPet(opened.store);
    failure = failed('EIO', 'fdatasync');
    await assert.rejects(opened.journal.compact(), is('unknown'));
    assert.deepEqual(fatal, ['unknown']);
    broken.failure = failure = undefined;
    await opened.store.close();
    await opened.crash();
    assert.equal(opened.store.read.counts().pets, 1);
  });
});

test('who reads a closed store while a server opens it sees no damage', async () => {
  await withStore({}, async (opened) => {
    const { dir } = opened;
    const names = ['store-000001.jsonl', 'LOCK'];
    await addPet(opened.store);
    await opened.reopen(); // `LOCK` says that it is open, and the closing record is gone
    const open = names.map((name) => readFileSync(`${dir}/${name}`));
    await opened.store.close();
    const disk: Disk = {
      ...realDisk,
      openToRead(path) {
        if (path.endsWith('.jsonl')) for (const [i, name] of names.entries()) writeFileSync(`${dir}/${name}`, open[i]);
        return realDisk.openToRead(path);
      },
    };
    assert.equal((await readStore(dir, { disk })).proof.pets, 1);
    await opened.crash();
  });
});

test('nor does a reader beside whom others open it, write and close it again; damage that stays is told all the same', async () => {
  await withStore({}, async (opened) => {
    const { dir } = opened;
    await addPet(opened.store);
    await opened.store.close();
    const path = `${dir}/store-000001.jsonl`;
    const whole = readFileSync(path);
    let times = 0;
    /** So often the file is read with its last bytes gone, `LOCK` says before and after that it is closed. */
    const cutTimes = (most: number): Disk => {
      times = 0;
      return {
        ...realDisk,
        openToRead(name) {
          if (name === path)
            writeFileSync(path, whole.subarray(0, times++ < most ? whole.length - 10 * times : undefined));
          return realDisk.openToRead(name);
        },
      };
    };
    assert.equal((await readStore(dir, { disk: cutTimes(1) })).proof.pets, 1);
    await assert.rejects(readStore(dir, { disk: cutTimes(Number.POSITIVE_INFINITY) }), DamagedError);
    assert.ok(times < 10, `${times} times read`);
    writeFileSync(path, whole);
    await opened.crash();
  });
});

test('a new file is read back before it has its name: a disk that keeps other bytes than it was given changes nothing', async () => {
  let isLying = false;
  const disk: Disk = {
    ...realDisk,
    write(fd, bytes, position) {
      const kept = Buffer.from(bytes);
      if (isLying) kept[bytes.length >> 1] ^= 1;
      return realDisk.write(fd, kept, position);
    },
  };
  await withStore({ disk }, async (opened) => {
    await addPet(opened.store);
    isLying = true;
    await assert.rejects(opened.journal.compact(), DamagedError);
    isLying = false;
    assert.deepEqual(filesIn(opened.dir), ['store-000001.jsonl']);
    await addPet(opened.store);
  });
});

test('a LOCK for which there was no room describes the file before: the next one is read all the same', async () => {
  let [fdOfLock, isFull] = [-1, false];
  const disk: Disk = {
    ...realDisk,
    write: (fd, bytes, position) =>
      isFull && fd === fdOfLock ? Promise.reject(failed('ENOSPC', 'write')) : realDisk.write(fd, bytes, position),
    lock(path) {
      const taken = realDisk.lock(path);
      fdOfLock = taken.fd;
      return taken;
    },
  };
  await withStore({ disk }, async (opened) => {
    await addPet(opened.store);
    await opened.store.close();
    isFull = true;
    Object.assign(opened, await openStore(opened.dir, { disk }));
    await addPet(opened.store);
    assert.deepEqual(filesIn(opened.dir), ['store-000001.jsonl', 'store-000002.jsonl'], 'the first is not dropped');
    await opened.crash();
    assert.equal(opened.store.read.counts().pets, 2);
  });
});

test('nothing may follow on the closing record, however well it is sealed', async () => {
  await withStore({}, async (opened) => {
    const { dir } = opened;
    await addPet(opened.store);
    await opened.store.close();
    const path = `${dir}/store-000001.jsonl`;
    const whole = readFileSync(path);
    const last = Number(/"batch":(\d+)(?!.*"batch")/s.exec(whole.toString())![1]);
    for (const batch of [last, last + 1]) {
      writeFileSync(path, Buffer.concat([whole, encodeBatch(batch, [{ op: 'addPet', pet: pet(2) }])]));
      await assert.rejects(readStore(dir), { what: 'more follows after the store was closed' });
    }
    writeFileSync(path, whole);
    await opened.crash();
  });
});

test('who gets the lock asks all the same whether a process answers for the store: that one may have found no flock', () =>
  withStore({}, async (opened) => {
    await opened.store.close();
    await assert.rejects(openStore(opened.dir, { isAlive: async () => true }), InUseError);
    Object.assign(opened, await openStore(opened.dir, { isAlive: async () => false }));
  }));

test('a line out of its place is refused, and the message says which line belongs there', () =>
  withStore({}, async ({ store, dir }) => {
    await addPet(store);
    const path = `${dir}/store-000001.jsonl`;
    const whole = readFileSync(path);
    const { batch } = await readStore(dir).then(({ found }) => found);
    writeFileSync(path, Buffer.concat([whole, encodeBatch(batch + 2, [{ op: 'addPet', pet: pet(2) }])]));
    const what = `line 0 of batch ${batch + 2} stands here, where line 0 of batch ${batch + 1} belongs`;
    await assert.rejects(readStore(dir), { what });
    writeFileSync(path, whole);
  }));

test('a store that could not be locked is opened, with a notice of what is left to notice another petstore', () => {
  const failed = 'spawnSync flock ENOENT';
  const disk: Disk = { ...realDisk, lock: (path) => ({ ...unlocked().lock(path), failed }) };
  return withStore({ disk }, async ({ notices }) => {
    const rest = 'another petstore is noticed only if it answers on the admin socket';
    assert.deepEqual(notices, [`the store is not locked (${failed}): ${rest}`]);
  });
});
