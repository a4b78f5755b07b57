/** Rows 4 to 6, 8 and 9: the driver with its system calls killed and failed, on small disks, killed at random, twice. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { whyNoStrace } from '../program.ts';
import { below, seeded } from '../random.ts';
import { Life, mustHold, root } from './processes.ts';

const SCALE = Number(process.env.FAULTS_SCALE ?? 1);
const SEED = Number(process.env.FAULTS_SEED ?? 1);
const KILLS = 200 * SCALE;
const KILLS_PER_STORE = 25;
const LONGEST_MOMENT_MS = 40;
/** In the ordinary run every seventh call is killed or failed, from another one on each time; in the long run every one. */
const STEP = SCALE > 1 ? 1 : 7;
const FIRST = 1 + (Date.now() % STEP);
const TMPFS_BYTES = 16 * 1024;
const ULIMIT_KIB = 9;

let places = 0;
const newPlace = (): string => join(root, `data-${++places}`);

/** Injects the fault at the 1st, 2nd, 3rd … call on files of the store, until it is no longer reached. */
async function atEveryCall(
  t: TestContext,
  calls: string[],
  fault: string,
  check: (life: Life, status: number | null) => void,
) {
  const why = whyNoStrace();
  if (why !== undefined) return t.skip(why);
  let tried = 0;
  for (const call of calls) {
    for (let n = FIRST; ; n += STEP) {
      const dir = newPlace();
      const files = Array.from({ length: 5 }, (_, at) => `store-${String(at + 1).padStart(6, '0')}.jsonl`);
      const paths = [dir, ...['LOCK', ...files, ...files.map((name) => `${name}.tmp`)].map((name) => join(dir, name))];
      // The filter spares all other calls a stop; but with it strace 6.1 loses signals that come at the first call.
      const filter = fault.startsWith('error=') ? ['--seccomp-bpf'] : [];
      const inject = ['-e', `trace=${call}`, '-e', `inject=${call}:${fault}:when=${n}`];
      const life = await Life.start('life', dir, [
        'strace',
        '-f',
        ...filter,
        '-qq',
        ...inject,
        ...paths.flatMap((path) => ['-P', path]),
      ]);
      const status = await life.ended;
      if (!/\(INJECTED\)|killed by SIGKILL/.test(life.output)) {
        assert.match(life.output, /^done$/m, `${call} without a fault`);
        break;
      }
      try {
        check(life, status);
        await mustHold(dir, life.ids('acknowledged'), life.ids('sent'));
      } catch (error) {
        throw new Error(`${call} ${n}, ${fault}: ${(error as Error).message}\n${life.output}`, { cause: error });
      }
      tried++;
    }
  }
  t.diagnostic(`${tried} lives`);
}

describe('fault matrix', () => {
  test('4: SIGKILL at the N-th file call', (t) =>
    atEveryCall(t, ['openat', 'pwrite64', 'fdatasync', 'fsync', 'rename', 'unlink'], 'signal=SIGKILL', () => {}));

  test('5: EIO at the N-th fdatasync and fsync', (t) =>
    atEveryCall(t, ['fdatasync', 'fsync'], 'error=EIO', ({ output }, status) => {
      const after = output.slice(output.indexOf('(INJECTED)'));
      assert.doesNotMatch(after, /^acknowledged/m, 'acknowledged after a sync that failed');
      assert.equal(status, 1);
    }));

  test('6: ENOSPC at the N-th write', (t) =>
    atEveryCall(t, ['pwrite64'], 'error=ENOSPC', ({ output }, status) => {
      assert.match(output, /^(full|failed|notice)/m, 'nobody was told');
      if (status === 0) assert.match(output, /^done$/m);
    }));

  test('6: a file that may not grow, and a small disk', async (t) => {
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
        const life = await Life.start('life', dir, before);
        await life.ended;
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

  test(`8: ${KILLS} times SIGKILL while it writes`, async (t) => {
    const random = seeded(SEED);
    let [animals, kills] = [0, 0];
    const store = async () => {
      const dir = newPlace();
      const [sent, acknowledged]: number[][] = [[], []];
      for (let n = 0; n < KILLS_PER_STORE; n++, kills++) {
        const life = await Life.start('load', dir);
        await life.until('open');
        await sleep(below(random, LONGEST_MOMENT_MS));
        life.process.kill('SIGKILL');
        await life.ended;
        sent.push(...life.ids('sent'));
        acknowledged.push(...life.ids('acknowledged'));
      }
      assert.equal(new Set(acknowledged).size, acknowledged.length, 'an id was given twice');
      animals += await mustHold(dir, acknowledged, sent);
    };
    const stores = Array.from({ length: KILLS / KILLS_PER_STORE }).keys();
    const worker = async () => {
      for (const _ of stores) await store();
    };
    await Promise.all([worker(), worker()]);
    assert.ok(animals > KILLS, `only ${animals} animals were acknowledged`);
    t.diagnostic(`seed ${SEED}: ${kills} kills, ${animals} animals`);
  });

  test('9: a second process is refused, also while the first is stopped; one that was killed holds up nobody', async () => {
    const dir = newPlace();
    const first = await Life.start('hold', dir);
    await first.until('open');
    for (const signal of ['SIGCONT', 'SIGSTOP'] as const) {
      first.process.kill(signal);
      const second = await Life.start('hold', dir);
      assert.equal(await second.ended, 4);
      assert.match(second.output, /in use by another process/);
    }
    first.process.kill('SIGKILL');
    await first.ended;
    const third = await Life.start('hold', dir);
    await third.until('open');
    third.process.kill('SIGKILL');
    await third.ended;
  });
});
