/** Rows 4 to 6: the life of the driver, with a system call of it killed or failed, and what must hold afterwards. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, openSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { prove } from '../../../src/store/change-json.ts';
import { realDisk } from '../../../src/store/file/disk.ts';
import { openStore } from '../../../src/store/file/open.ts';
import { whyNoStrace } from '../../program.ts';
import { addPet } from '../../store/opened.ts';
import { bundle } from '../bundle.ts';
import type { Report, Row } from '../row.ts';
import { unlocked } from '../sim-disk.ts';
import { recovered } from '../workload.ts';

const LIFE_MAX_MS = 120_000;
/** More files than a life makes. */
const FILES = 8;
const CALLS = ['openat', 'pwrite64', 'fdatasync', 'fsync', 'rename', 'unlink', 'ftruncate'];
/** In the ordinary run every third call of each kind is killed; in the long run every one. */
const ORDINARY_STEP = 3;
/** Too small for a life. */
const TMPFS_BYTES = 16 * 1024;
const ULIMIT_KIB = 5;

interface Life {
  status: number | null;
  sent: number[];
  acknowledged: number[];
  full: number[];
  /** All that was said, by strace too, in its order. */
  output: string;
}

function live(root: string, words: string[]): Life {
  const file = join(root, 'output');
  rmSync(file, { force: true });
  const out = openSync(file, 'a');
  // One thread does all file work, so that strace's `when=N` counts all of it.
  const env = { ...process.env, UV_THREADPOOL_SIZE: '1' };
  const { status } = spawnSync(words[0], words.slice(1), { stdio: ['ignore', out, out], timeout: LIFE_MAX_MS, env });
  const output = readFileSync(file, 'utf8');
  const ids = (word: string) => [...output.matchAll(new RegExp(`^${word} (\\d+)$`, 'gm'))].map(([, id]) => Number(id));
  return { status, output, sent: ids('sent'), acknowledged: ids('acknowledged'), full: ids('full') };
}

/**
 * acknowledged ⊆ recovered ⊆ sent, each with its idempotency record; recovering twice changes nothing; and the store
 * takes writes again.
 */
async function judge(data: string, life: Life): Promise<string | undefined> {
  const state = await recovered(realDisk, data);
  const { digest } = prove(state);
  const ids = state.pets.page(0, 1_000).items.map(({ id }) => id);
  const lost = life.acknowledged.filter((id) => !ids.includes(id));
  if (lost.length > 0) return `acknowledged and lost: ${lost}`;
  const invented = ids.filter((id) => !life.sent.includes(id));
  if (invented.length > 0) return `never sent: ${invented}`;
  const bare = ids.filter((id) => state.idempotency.get(`addPet\nk1\nonce-${id}`)?.id !== id);
  if (bare.length > 0) return `without idempotency record: ${bare}`;
  for (const isLast of [false, true]) {
    const { store } = await openStore(data, { disk: unlocked() });
    if (prove(await recovered(realDisk, data)).digest !== digest) return 'recovering again changed something';
    await (isLast ? addPet(store) : Promise.resolve()).finally(() => store.close());
  }
  return undefined;
}

interface Fault {
  calls: string[];
  /** As strace takes it. */
  fault: string;
  step?: number;
  check?(life: Life): string | undefined;
}

/** Made once for a row. */
function driverIn(root: string): string | Promise<string> {
  const made = join(root, 'driver.mjs');
  return existsSync(made) ? made : bundle(join(import.meta.dirname, '../driver.ts'), made);
}

function skip(report: Report, why: string): void {
  report.skipped = report.skipped ? `${report.skipped}; ${why}` : why;
}

/** Injects the fault at the 1st, 2nd, 3rd … call, until it is no longer reached. */
async function atEveryCall(report: Report, root: string, { calls, fault, step = 1, check }: Fault): Promise<void> {
  const noStrace = whyNoStrace();
  if (noStrace) return skip(report, noStrace);
  const driver = await driverIn(root);
  const data = join(root, 'data');
  const files = Array.from({ length: FILES }, (_, i) => `store-${String(i + 1).padStart(6, '0')}.jsonl`);
  // Calls on these paths only are counted and failed: not those of the runtime as it starts.
  const paths = [data, ...['LOCK', ...files, ...files.map((name) => `${name}.tmp`)].map((name) => join(data, name))];
  const filter = fault.startsWith('error=') ? ['--seccomp-bpf'] : []; // as in test/program.ts
  for (const call of calls) {
    for (let n = 1, isHit = true; isHit && !report.isOver(); n += step) {
      rmSync(data, { recursive: true, force: true });
      const trace = ['-f', ...filter, '-qq', '-e', `trace=${call}`, '-e', `inject=${call}:${fault}:when=${n}`];
      const only = paths.flatMap((path) => ['-P', path]);
      const life = live(root, ['strace', ...trace, ...only, process.execPath, driver, data]);
      isHit = /\(INJECTED\)|killed by SIGKILL/.test(life.output) || life.status === 137;
      if (!isHit && life.status !== 0) report.fail(`${call} without a fault: ${life.output}`);
      if (!isHit) break;
      await report.attempt(`${call} ${n}, ${fault}`, async () => check?.(life) ?? judge(data, life));
    }
  }
}

export const kill: Row = {
  number: 4,
  name: 'SIGKILL at the N-th file call',
  run: (scale, report, dir) =>
    atEveryCall(report, dir, { calls: CALLS, fault: 'signal=SIGKILL', step: scale > 1 ? 1 : ORDINARY_STEP }),
};

export const sync: Row = {
  number: 5,
  name: 'EIO at the N-th fdatasync and fsync',
  run: (_scale, report, dir) =>
    atEveryCall(report, dir, {
      calls: ['fdatasync', 'fsync'],
      fault: 'error=EIO',
      check: ({ output, status }) => {
        const after = output.slice(output.indexOf('(INJECTED)'));
        if (/^acknowledged/m.test(after)) return `acknowledged after a failed sync: ${after}`;
        return status === 1 ? undefined : `the process ended with ${status}`;
      },
    }),
};

/** No room for the whole of a life: what was acknowledged is there, the rest was refused and nothing is torn. */
async function tryShort(report: Report, root: string, data: string, wrapper: string[]): Promise<void> {
  const driver = await driverIn(root);
  await report.attempt(`no room in ${data}`, async () => {
    const life = live(root, [...wrapper, process.execPath, driver, data]);
    if (!/failed|full/.test(life.output)) return `nobody was told that there is no room: ${life.output}`;
    return judge(data, life).catch((error) => {
      // There may still be no room for a new file: then reading must be enough.
      return error.code === 'ENOSPC' || error.failure === 'full' ? undefined : error.message;
    });
  });
}

async function onTmpfs(report: Report, root: string): Promise<void> {
  const mount = join(root, 'tmpfs');
  mkdirSync(mount);
  const made = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${TMPFS_BYTES}`, 'tmpfs', mount], { encoding: 'utf8' });
  if (made.status !== 0) skip(report, `no tmpfs can be mounted: ${made.error?.message ?? made.stderr.trim()}`);
  else await tryShort(report, root, join(mount, 'data'), []).finally(() => spawnSync('umount', [mount]));
}

export const full: Row = {
  number: 6,
  name: 'no room: ENOSPC at the N-th write, a tmpfs, ulimit',
  async run(_scale, report, dir) {
    await tryShort(report, dir, join(dir, 'small'), ['bash', '-c', `ulimit -f ${ULIMIT_KIB}; exec "$0" "$@"`]);
    await onTmpfs(report, dir);
    await atEveryCall(report, dir, {
      calls: ['pwrite64'],
      fault: 'error=ENOSPC',
      check: ({ status, sent, acknowledged, full, output }) => {
        // What says that older files do not count can wait, where there is no room for it.
        const isNothing = status === 0 && acknowledged.length === sent.length;
        const isTold = full.length > 0 || /failed|full|notice there (is|was) no room/.test(output);
        return isNothing || isTold ? undefined : `nobody was told, the process ended with ${status}`;
      },
    });
  },
};
