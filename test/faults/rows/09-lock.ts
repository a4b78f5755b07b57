import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { InUseError, openStore } from '../../../src/store/file/open.ts';
import { withDriver } from '../bundle.ts';
import type { Row } from '../row.ts';

async function isRefused(dir: string): Promise<boolean> {
  try {
    await (await openStore(dir)).store.close();
    return false;
  } catch (error) {
    if (error instanceof InUseError) return true;
    throw error;
  }
}

export const row: Row = {
  number: 9,
  name: 'a second process, also while the first is stopped',
  async run(scale, report) {
    if (spawnSync('flock', ['--version']).error) report.skipped = 'flock is not installed';
    if (report.skipped) return;
    await withDriver(async (driver, dir) => {
      const data = `${dir}/data`;
      for (let i = 0; i < 3 * scale; i++) {
        const child = spawn(process.execPath, [driver, data, 'hold'], { stdio: ['ignore', 'pipe', 'inherit'] });
        const ended = once(child, 'exit');
        await Promise.race([once(child.stdout, 'data'), ended]); // it says that it is open
        report.check('not refused while another has it', await isRefused(data));
        child.kill('SIGSTOP');
        report.check('not refused while the holder is stopped', await isRefused(data));
        child.kill('SIGKILL');
        await ended;
        report.check('refused after the holder was killed', !(await isRefused(data)));
      }
    });
  },
};
