import type { Row } from '../row.ts';
import { damaged, FILE, outcome, tryCase, writtenFile } from '../written-file.ts';

export const row: Row = {
  number: 1,
  name: 'the file cut at every byte',
  async run(_scale, report) {
    const { disk, batches, digests, bytes } = await writtenFile(false);
    for (let length = 0; length <= bytes.length; length++) {
      await tryCase(report, `cut at ${length}`, async () => {
        const found = await outcome(damaged(disk, FILE, bytes.subarray(0, length)), digests);
        const isStateCut = length < batches[0].end;
        // The first batch was durable before the file had its name: no crash takes any of it away.
        if ('refused' in found) return isStateCut ? undefined : `refused: ${found.refused.message}`;
        if (isStateCut) return 'a file without its whole first batch was taken';
        const whole = batches.findLast((batch) => batch.end <= length)!;
        return found.count === whole.count ? undefined : `${found.count} batches of ${whole.count}`;
      });
    }
  },
};
