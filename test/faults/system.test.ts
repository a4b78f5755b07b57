/** The store as a process with its system calls killed, and on small disks. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { whyNoStrace } from '../program.ts';
import { live, mustHold, root } from './processes.ts';

const SCALE = Number(process.env.FAULTS_SCALE ?? 1);
/** In the ordinary run every seventh call is killed, from another one on each time; in the long run every one. */
const STEP = SCALE > 1 ? 1 : 7;
const FIRST = 1 + (Date.now() % STEP);
const CALLS = ['openat', 'pwrite64', 'fdatasync', 'fsync', 'rename', 'unlink'];
const TMPFS_BYTES = 16 * 1024;
const ULIMIT_KIB = 9;

let places = 0;
const newPlace = (): string => join(root, `data-${++places}`);

/** The words that start a process which is killed at its `n`-th call on a file of the store. */
function killedAt(call: string, n: number, dir: string): string[] {
  const files = Array.from({ length: 5 }, (_, at) => `store-${String(at + 1).padStart(6, '0')}.jsonl`);
  const paths = [dir, ...['LOCK', ...files, ...files.map((name) => `${name}.tmp`)].map((name) => join(dir, name))];
  const inject = ['-e', `trace=${call}`, '-e', `inject=${call}:signal=SIGKILL:when=${n}`];
  return ['strace', '-f', '-qq', ...inject, ...paths.flatMap((path) => ['-P', path])];
}

test('fault matrix 4: SIGKILL at the N-th file call', { skip: whyNoStrace() ?? false }, async (t) => {
  let kills = 0;
  for (const call of CALLS) {
    for (let n = FIRST; ; n += STEP) {
      const dir = newPlace();
      const life = await live(dir, killedAt(call, n, dir));
      if (!life.output.includes('killed by SIGKILL')) {
        assert.match(life.output, /^done$/m, `${call} without a fault`);
        break;
      }
      await mustHold(dir, life.ids('acknowledged'), life.ids('sent')).catch((error) => {
        throw new Error(`${call} ${n}: ${error.message}\n${life.output}`, { cause: error });
      });
      kills++;
    }
  }
  t.diagnostic(`${kills} kills`);
});

test('fault matrix 6: a file that may not grow, and a small disk', async (t) => {
  const mount = join(root, 'tmpfs');
  mkdirSync(mount);
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${TMPFS_BYTES}`, 'tmpfs', mount], {
    encoding: 'utf8',
  });
  const cases = [{ dir: newPlace(), before: ['bash', '-c', `ulimit -f ${ULIMIT_KIB}; exec "$0" "$@"`] }];
  if (mounted.status === 0) cases.push({ dir: join(mount, 'data'), before: [] });
  else t.diagnostic(`left out: no tmpfs can be mounted: ${mounted.error?.message ?? mounted.stderr.trim()}`);
  try {
    for (const { dir, before } of cases) {
      const life = await live(dir, before);
      assert.match(life.output, /^full$/m);
      await mustHold(dir, life.ids('acknowledged'), life.ids('sent')).catch((error) => {
        // There may still be no room to write: then that is told.
        if (error.failure !== 'full' && error.code !== 'ENOSPC') throw error;
      });
    }
  } finally {
    if (mounted.status === 0) spawnSync('umount', [mount]);
  }
});
