/** Rows 4 to 6: system calls that are killed, or fail, in a process of its own. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { whyNoStrace } from '../../program.ts';
import { withDriver } from '../bundle.ts';
import type { Report, Row } from '../row.ts';
import { atEveryCall, judge, readLife } from '../strace.ts';

const CALLS = ['openat', 'pwrite64', 'fdatasync', 'fsync', 'rename', 'unlink', 'ftruncate'];
/** In the ordinary run every third call of each kind; in the long run every one. */
const ORDINARY_STEP = 3;
/** Too small for a life of the driver. */
const TMPFS_BYTES = 16 * 1024;
const ULIMIT_KIB = 5;

export const kill: Row = {
  number: 4,
  name: 'SIGKILL at the N-th file call',
  async run(scale, report) {
    report.skipped = whyNoStrace();
    if (report.skipped) return;
    const step = scale > 1 ? 1 : ORDINARY_STEP;
    await withDriver((driver, dir) => atEveryCall(report, driver, dir, CALLS, 'signal=SIGKILL', step, () => undefined));
  },
};

export const sync: Row = {
  number: 5,
  name: 'EIO at the N-th fdatasync and fsync',
  async run(_scale, report) {
    report.skipped = whyNoStrace();
    if (report.skipped) return;
    // The driver says what is acknowledged; after the failure there must be nothing of that, and an end that tells.
    await withDriver((driver, dir) =>
      atEveryCall(report, driver, dir, ['fdatasync', 'fsync'], 'error=EIO', 1, (life) => {
        const after = life.output.split('INJECTED')[1] ?? '';
        if (/^acknowledged/m.test(after)) return 'acknowledged after a failed sync';
        return life.status === 1 ? undefined : `the process ended with ${life.status ?? life.signal}`;
      }),
    );
  },
};

export const full: Row = {
  number: 6,
  name: 'no room: ENOSPC at the N-th write, a tmpfs, ulimit',
  run: (_scale, report) =>
    withDriver(async (driver, dir) => {
      const data = join(dir, 'data');
      const limited = `ulimit -f ${ULIMIT_KIB}; exec "$0" "$@"`;
      await tryShort(report, 'ulimit', data, ['bash', '-c', limited, process.execPath, driver, data, 'work']);
      rmSync(data, { recursive: true, force: true });
      const noTmpfs = await onTmpfs(report, driver, dir);
      const noStrace = whyNoStrace();
      report.skipped = [noTmpfs, noStrace].filter((why) => why !== undefined).join('; ') || undefined;
      if (noStrace) return;
      await atEveryCall(report, driver, dir, ['pwrite64'], 'error=ENOSPC', 1, (life) => {
        // What says that older files do not count can wait, where there is no room for it.
        const isNothing = life.status === 0 && life.acknowledged.length === life.sent.length;
        const isTold =
          isNothing || life.full.length > 0 || /failed|full|notice there (is|was) no room/.test(life.output);
        return isTold ? undefined : `nobody was told, the process ended with ${life.status}`;
      });
    }),
};

/** No room for the whole of the life: what was acknowledged is there, the rest was refused and nothing is torn. */
function tryShort(report: Report, what: string, dir: string, [command, ...args]: string[]): Promise<void> {
  return report.attempt(what, async () => {
    const { stdout, stderr } = spawnSync(command, args, { encoding: 'utf8' });
    if (!/failed|full/.test(stdout)) return `nobody was told that there is no room: ${stderr}`;
    return judge(dir, readLife(stdout)).catch((error) => {
      // There may still be no room for a new file: then reading must be enough.
      return error.code === 'ENOSPC' || error.failure === 'full' ? undefined : error.message;
    });
  });
}

async function onTmpfs(report: Report, driver: string, root: string): Promise<string | undefined> {
  const mount = join(root, 'tmpfs');
  const data = join(mount, 'data');
  mkdirSync(mount);
  const made = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${TMPFS_BYTES}`, 'tmpfs', mount], { encoding: 'utf8' });
  if (made.status !== 0) return `no tmpfs can be mounted: ${made.error?.message ?? made.stderr.trim()}`;
  await tryShort(report, 'tmpfs', data, [process.execPath, driver, data, 'work']);
  spawnSync('umount', [mount]);
  return undefined;
}
