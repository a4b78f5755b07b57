/** The process that compacts, as the program starts it. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { closeSync, existsSync, openSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import os from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { compactElsewhere } from '../../src/operator/compacting.ts';
import { realDisk } from '../../src/store/file/disk.ts';
import { compactFile } from '../../src/store/file/rewrite.ts';
import { temporary } from '../program.ts';
import { addPet, filesIn, type OpenOptions, withStore } from './opened.ts';

const DESCRIPTORS = '200';
const WAIT_MAX_MS = 240_000;
const EXTENT = { file: 1, length: 1 };

async function until(what: string, holds: () => boolean): Promise<void> {
  for (const began = Date.now(); !holds(); await sleep(10)) assert.ok(Date.now() - began < WAIT_MAX_MS, what);
}

/** Stands for the program, until the test ends. Gives a folder. */
async function instead(t: TestContext, code: string): Promise<string> {
  const dir = await temporary(t);
  const [, program] = process.argv;
  t.after(() => void (process.argv[1] = program));
  process.argv[1] = join(dir, 'instead.mjs');
  writeFileSync(process.argv[1], code);
  return dir;
}

/** Of each thread of a process; nothing where the kernel does not tell. */
function prioritiesOf(pid: number): number[] {
  const tasks = `/proc/${pid}/task`;
  if (!existsSync(tasks)) return [];
  return readdirSync(tasks).map((task) => {
    const behindTheName = readFileSync(join(tasks, task, 'stat'), 'utf8').split(') ')[1];
    return Number(behindTheName.split(' ')[16]);
  });
}

/** All but `free` of the descriptors that can be had. */
function takeAll(free: number): number[] {
  const taken: number[] = [];
  try {
    for (;;) taken.push(openSync('/dev/null', 'r'));
  } catch (error) {
    assert.equal((error as NodeJS.ErrnoException).code, 'EMFILE');
  }
  for (const fd of taken.splice(0, free)) closeSync(fd);
  return taken;
}

const limitTo = (descriptors: string) =>
  spawnSync('prlimit', ['--pid', String(process.pid), `--nofile=${descriptors}:`]).error?.message;

test('a compaction for which no descriptor is left is refused, with nothing lost, and comes about later', async (t) => {
  const before = spawnSync('prlimit', ['--pid', String(process.pid), '--nofile', '-no', 'SOFT'], { encoding: 'utf8' });
  const noLimit = limitTo(DESCRIPTORS);
  if (noLimit) return t.skip(noLimit);
  t.after(() => limitTo(before.stdout.trim()));
  let isChild = true;
  const compact: OpenOptions['compact'] = (dir, extent, signal) =>
    isChild ? compactElsewhere(dir, extent, signal) : compactFile(realDisk, dir, extent);
  const onFatal = assert.fail;
  await withStore({ compact, onFatal }, async ({ store, journal, dir }) => {
    /** Whether it could be done with so few. */
    const compactsWith = async (free: number) => {
      const taken = takeAll(free);
      const done = await journal.compact().then(() => '', String);
      for (const fd of taken) closeSync(fd);
      await addPet(store);
      assert.match(done, /^$|EMFILE/);
      return done === '';
    };
    await addPet(store);
    assert.equal(await compactsWith(0), false, 'no child can be started');
    isChild = false;
    let free = 0;
    while (!(await compactsWith(free))) free++;
    // A new file and its directory take two; but the loader of this source, in its own thread, may just have let one go.
    assert.ok(free >= 1, 'none is needed');
    assert.deepEqual(filesIn(dir), ['store-000002.jsonl']);
  });
});

test('where priorities may not be set, it compacts all the same', async (t) => {
  await instead(t, '');
  const refused = t.mock.method(os, 'setPriority', () => {
    throw Object.assign(new Error('EACCES: permission denied'), { code: 'EACCES' });
  });
  syncBuiltinESMExports();
  await compactElsewhere('data', EXTENT, new AbortController().signal);
  assert.equal(refused.mock.callCount(), 1);
  refused.mock.restore();
  syncBuiltinESMExports();
});

test('it has the lowest priority, and the signal ends it, whatever it is at', async (t) => {
  const dir = await instead(
    t,
    `import { writeFileSync } from 'node:fs';
     process.on('SIGTERM', () => {});
     writeFileSync(new URL('pid', import.meta.url), String(process.pid));
     setTimeout(() => {}, ${WAIT_MAX_MS});`,
  );
  const closing = new AbortController();
  const pid = () => Number(existsSync(join(dir, 'pid')) && readFileSync(join(dir, 'pid'), 'utf8'));
  // As on a busy machine: the child has started threads already when it gets its priority.
  const { setPriority } = os;
  t.mock.method(os, 'setPriority', (...words: Parameters<typeof setPriority>) => {
    while (pid() === 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
    setPriority(...words);
  });
  syncBuiltinESMExports();
  const given = assert.rejects(compactElsewhere('data', EXTENT, closing.signal), { name: 'AbortError' });
  await until('it has begun', () => pid() > 0);
  const priorities = prioritiesOf(pid());
  assert.ok(
    priorities.every((one) => one === 19),
    `no thread of it takes time that we need: ${priorities}`,
  );
  closing.abort();
  await given;
  await until('it has ended', () => !existsSync(`/proc/${pid()}`));
  t.mock.restoreAll();
  syncBuiltinESMExports();
});
