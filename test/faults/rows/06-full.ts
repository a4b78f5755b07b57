import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { whyNoStrace } from '../../program.ts';
import { bundle, driverSource } from '../bundle.ts';
import { folder } from '../folder.ts';
import type { Report, Row } from '../row.ts';
import { atEveryCall, judge, readLife } from '../strace.ts';

/** Too small for a life of the driver. */
const TMPFS_BYTES = 16 * 1024;
const ULIMIT_KIB = 5;

/** No room for the whole of the life: what was acknowledged is there, the rest was refused and nothing is torn. */
async function tryShort(report: Report, what: string, dir: string, command: string, args: string[]): Promise<void> {
  report.cases++;
  const ran = spawnSync(command, args, { encoding: 'utf8' });
  const life = readLife(ran.stdout);
  const isTold = life.full.length > 0 || /failed|full/.test(ran.stdout);
  const wrong = isTold ? await judgeWithin(dir, life) : `nobody was told that there is no room: ${ran.stderr}`;
  if (wrong !== undefined) report.fail(`${what}: ${wrong}`);
}

/** There may still be no room for a new file: then reading must be enough. */
async function judgeWithin(dir: string, life: ReturnType<typeof readLife>): Promise<string | undefined> {
  return judge(dir, life).catch((error) =>
    error.code === 'ENOSPC' || error.failure === 'full' ? undefined : error.message,
  );
}

async function onTmpfs(report: Report, driver: string, root: string): Promise<string | undefined> {
  const mount = join(root, 'tmpfs');
  mkdirSync(mount);
  const made = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${TMPFS_BYTES}`, 'tmpfs', mount], { encoding: 'utf8' });
  if (made.status !== 0) return `no tmpfs can be mounted: ${made.error?.message ?? made.stderr.trim()}`;
  try {
    await tryShort(report, 'tmpfs', join(mount, 'data'), process.execPath, [driver, join(mount, 'data'), 'work']);
  } finally {
    spawnSync('umount', [mount]);
  }
  return undefined;
}

export const row: Row = {
  number: 6,
  name: 'no room: ENOSPC at the N-th write, a tmpfs, ulimit',
  async run(_scale, report) {
    const { dir, remove } = folder();
    try {
      const driver = await bundle(driverSource(), dir);
      const data = join(dir, 'data');
      const limited = `ulimit -f ${ULIMIT_KIB}; exec "$0" "$@"`;
      await tryShort(report, 'ulimit', data, 'bash', ['-c', limited, process.execPath, driver, data, 'work']);
      rmSync(data, { recursive: true, force: true });
      const noTmpfs = await onTmpfs(report, driver, dir);
      const noStrace = whyNoStrace();
      report.skipped = [noTmpfs, noStrace].filter((why) => why !== undefined).join('; ') || undefined;
      if (noStrace) return;
      await atEveryCall(report, driver, dir, ['pwrite64'], 'error=ENOSPC', 1, (life) => {
        const isTold =
          life.full.length > 0 ||
          /failed|compaction: full|notice (there (is|was) no room|older files stay behind)/.test(life.output);
        return isTold ? undefined : `nobody was told, the process ended with ${life.status}`;
      });
    } finally {
      remove();
    }
  },
};
