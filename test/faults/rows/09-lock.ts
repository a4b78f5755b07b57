import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { InUseError } from '../../../src/store/file/lock.ts';
import { openStore } from '../../../src/store/file/open.ts';
import { bundle, driverSource } from '../bundle.ts';
import { folder } from '../folder.ts';
import type { Row } from '../row.ts';

async function opened(child: ChildProcess): Promise<void> {
  for await (const text of child.stdout!.setEncoding('utf8')) if (text.includes('open')) return;
  throw new Error('the holder ended');
}

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
    if (spawnSync('flock', ['--version']).error) {
      report.skipped = 'flock is not installed';
      return;
    }
    const { dir, remove } = folder();
    const driver = await bundle(driverSource(), dir);
    const data = `${dir}/data`;
    try {
      for (let i = 0; i < 3 * scale; i++) {
        const child = spawn(process.execPath, [driver, data, 'hold'], { stdio: ['ignore', 'pipe', 'inherit'] });
        const ended = new Promise((resolve) => child.on('exit', resolve));
        await opened(child);
        report.cases += 3;
        if (!(await isRefused(data))) report.fail('not refused while another has it');
        child.kill('SIGSTOP');
        if (!(await isRefused(data))) report.fail('not refused while the holder is stopped');
        child.kill('SIGKILL');
        await ended;
        if (await isRefused(data)) report.fail('refused after the holder was killed');
      }
    } finally {
      remove();
    }
  },
};
