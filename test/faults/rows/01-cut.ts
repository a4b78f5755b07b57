import type { Row } from '../row.ts';
import { damaged, LOG, outcome, tryCase, writtenLog } from '../written-log.ts';

export const row: Row = {
  number: 1,
  name: 'the log cut at every byte',
  async run(_scale, report) {
    const { disk, batches, digests, bytes } = await writtenLog(false);
    for (let length = 0; length <= bytes.length; length++) {
      await tryCase(report, `cut at ${length}`, async () => {
        const found = await outcome(damaged(disk, LOG, bytes.subarray(0, length)), digests);
        const isHeaderCut = length < batches[0].end;
        // The header was durable before the snapshot had its name: no crash takes it away.
        if ('refused' in found) return isHeaderCut ? undefined : `refused: ${found.refused.message}`;
        if (isHeaderCut) return 'a log without a header was taken';
        const durable = batches.findLast((batch) => batch.end <= length)!;
        const lines = bytes.subarray(0, length).toString('latin1').split('\n').length - 2;
        if (found.count < durable.count) return `${found.count} of ${durable.count} acknowledged operations are left`;
        return found.count === lines ? undefined : `${found.count} operations, in ${lines} whole lines`;
      });
    }
  },
};
