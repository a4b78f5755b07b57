import { whyNoStrace } from '../../program.ts';
import { bundle, driverSource } from '../bundle.ts';
import { folder } from '../folder.ts';
import type { Row } from '../row.ts';
import { atEveryCall } from '../strace.ts';

export const row: Row = {
  number: 5,
  name: 'EIO at the N-th fdatasync and fsync',
  async run(_scale, report) {
    report.skipped = whyNoStrace();
    if (report.skipped) return;
    const { dir, remove } = folder();
    try {
      const driver = await bundle(driverSource(), dir);
      // The driver says what is acknowledged; after the failure there must be nothing of that, and an end that tells.
      await atEveryCall(report, driver, dir, ['fdatasync', 'fsync'], 'error=EIO', 1, (life) => {
        const after = life.output.split('INJECTED')[1] ?? '';
        if (/^acknowledged/m.test(after)) return 'acknowledged after a failed sync';
        return life.status === 1 ? undefined : `the process ended with ${life.status ?? life.signal}`;
      });
    } finally {
      remove();
    }
  },
};
