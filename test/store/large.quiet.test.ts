/** A million animals: the time until they can be read, and the memory that they take. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { systemClock } from '../../src/clock.ts';
import { openFileStore } from '../../src/store/file/store.ts';
import { quiet } from '../faults/life.ts';
import { temporary } from '../program.ts';

const ANIMALS = 1_000_000;
const AT_ONCE = 1_000;
const MAX_START_MS = 2_500;
const MAX_MEMORY_MB = 250;

/** Opens the store in a process of its own: its time, and its memory. */
const OPEN = `
import { systemClock } from ${JSON.stringify(join(import.meta.dirname, '../../src/clock.ts'))};
import { openFileStore } from ${JSON.stringify(join(import.meta.dirname, '../../src/store/file/store.ts'))};
const log = { info() {}, warn() {}, error() {} };
const before = process.memoryUsage().rss;
const began = performance.now();
const { store } = await openFileStore(process.argv[1], { clock: systemClock, log, readOnly: true });
const ms = performance.now() - began;
globalThis.gc();
console.log(JSON.stringify({ ms, mb: (process.memoryUsage().rss - before) / 2 ** 20, size: store.read.pets.size }));
process.exit();`;

test('a million animals: a start takes 2.5 s more than reading the file, and 250 MB', async (t) => {
  const dir = join(await temporary(t), 'data');
  const engine = await openFileStore(dir, { clock: systemClock, log: quiet });
  for (let from = 1; from <= ANIMALS; from += AT_ONCE) {
    await engine.store.write((tx) => {
      for (let n = from; n < from + AT_ONCE; n++) {
        tx.pets.add({ name: `animal number ${n}`, categoryId: n % 50, status: n % 1_000 === 0 ? 'sold' : 'available' });
      }
    });
  }
  await engine.compact();
  await engine.close();
  const began = performance.now();
  for (const name of readdirSync(dir)) readFileSync(join(dir, name));
  const readMs = performance.now() - began;
  const words = ['--expose-gc', '--import', 'tsx', '--input-type=module', '-e', OPEN, dir];
  const opened = JSON.parse(execFileSync(process.execPath, words, { encoding: 'utf8' }));
  t.diagnostic(JSON.stringify({ ...opened, readMs }));
  assert.equal(opened.size, ANIMALS);
  assert.ok(opened.ms < readMs + MAX_START_MS, `${opened.ms} ms`);
  assert.ok(opened.mb < MAX_MEMORY_MB, `${opened.mb} MB`);
});
