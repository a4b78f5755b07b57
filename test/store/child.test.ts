/** The process that compacts, as the program starts it. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import os from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { compactElsewhere } from '../../src/operator/compacting.ts';
import { openStore } from '../../src/store/file/open.ts';
import { folder } from '../faults/folder.ts';
import { addPet } from './opened.ts';

const DESCRIPTORS = 200;
const WAIT_MAX_MS = 240_000;
const CLOSE_MAX_MS = 60_000;

async function until(what: string, holds: () => boolean): Promise<void> {
  for (const began = Date.now(); !holds(); await sleep(10)) assert.ok(Date.now() - began < WAIT_MAX_MS, what);
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

test('a compaction for which no descriptor is left is refused, and comes about later', async () => {
  const { dir, remove } = folder();
  const program = join(import.meta.dirname, 'few-descriptors.ts');
  const limited = `ulimit -n ${DESCRIPTORS}; exec "$0" "$@"`;
  const args = ['-c', limited, process.execPath, '--import', 'tsx', program, join(dir, 'data')];
  try {
    const { stdout } = await promisify(execFile)('bash', args, { timeout: WAIT_MAX_MS });
    assert.equal(stdout, 'done\n');
    const names = readdirSync(join(dir, 'data')).filter((name) => name.endsWith('.jsonl'));
    assert.equal(names.length, 1, names.join());
  } finally {
    remove();
  }
});

/** Of each thread of a process; nothing where the kernel does not tell. */
function prioritiesOf(pid: string): number[] {
  const tasks = `/proc/${pid}/task`;
  if (!existsSync(tasks)) return [];
  return readdirSync(tasks).map((task) => {
    const behindTheName = readFileSync(join(tasks, task, 'stat'), 'utf8').split(') ')[1];
    return Number(behindTheName.split(' ')[16]);
  });
}

test('where priorities may not be set, it compacts all the same', async (t) => {
  const { dir, remove } = folder();
  const [, program] = process.argv;
  process.argv[1] = join(import.meta.dirname, '../../src/main.ts');
  const refused = t.mock.method(os, 'setPriority', () => {
    throw Object.assign(new Error('EACCES: permission denied'), { code: 'EACCES' });
  });
  syncBuiltinESMExports();
  try {
    const { store, journal } = await openStore(join(dir, 'data'), { compact: compactElsewhere });
    await addPet(store);
    await journal.compact();
    await store.close();
    assert.equal(refused.mock.callCount(), 1);
    assert.ok(existsSync(join(dir, 'data', 'store-000002.jsonl')));
  } finally {
    refused.mock.restore();
    syncBuiltinESMExports();
    process.argv[1] = program;
    remove();
  }
});

test('the process that compacts has the lowest priority, and closing the store ends it, however long it would take', async () => {
  const { dir, remove } = folder();
  const [, program] = process.argv;
  const pidFile = join(dir, 'pid');
  process.argv[1] = join(dir, 'slow.mjs');
  writeFileSync(
    process.argv[1],
    `import { writeFileSync } from 'node:fs';
     process.on('SIGTERM', () => {});
     writeFileSync(${JSON.stringify(pidFile)}, String(process.pid));
     setTimeout(() => {}, ${WAIT_MAX_MS});`,
  );
  try {
    const { store, journal } = await openStore(join(dir, 'data'), { compact: compactElsewhere });
    await addPet(store);
    const given = assert.rejects(journal.compact(), { name: 'AbortError' });
    await until('it has begun', () => existsSync(pidFile) && readFileSync(pidFile, 'utf8') !== '');
    const priorities = prioritiesOf(readFileSync(pidFile, 'utf8'));
    assert.ok(
      priorities.every((one) => one === 19),
      `no thread of it takes time that we need: ${priorities}`,
    );
    const began = Date.now();
    await store.close();
    assert.ok(Date.now() - began < CLOSE_MAX_MS);
    await given;
    await until('it has ended', () => !isRunning(Number(readFileSync(pidFile, 'utf8'))));
  } finally {
    process.argv[1] = program;
    remove();
  }
});
