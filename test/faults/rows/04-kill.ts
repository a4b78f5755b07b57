import { whyNoStrace } from '../../program.ts';
import { bundle, driverSource } from '../bundle.ts';
import { folder } from '../folder.ts';
import type { Row } from '../row.ts';
import { atEveryCall } from '../strace.ts';

const CALLS = ['openat', 'pwrite64', 'fdatasync', 'fsync', 'rename', 'unlink', 'ftruncate'];
/** In the ordinary run every third call of each kind; in the long run every one. */
const ORDINARY_STEP = 3;

export const row: Row = {
  number: 4,
  name: 'SIGKILL at the N-th file call',
  async run(scale, report) {
    report.skipped = whyNoStrace();
    if (report.skipped) return;
    const { dir, remove } = folder();
    try {
      const driver = await bundle(driverSource(), dir);
      const step = scale > 1 ? 1 : ORDINARY_STEP;
      const check = () => undefined;
      await atEveryCall(report, driver, dir, CALLS, 'signal=SIGKILL', step, check);
    } finally {
      remove();
    }
  },
};
