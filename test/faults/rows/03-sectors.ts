import type { Row } from '../row.ts';
import { damaged, FILE, outcome, tryCase, writtenFile } from '../written-file.ts';

const SECTOR_BYTES = 512;

/** Where the sectors of `start` … `end - 1` begin and end; the first and the last may be parts of one. */
function sectorsOf(start: number, end: number): [number, number][] {
  const sectors: [number, number][] = [];
  for (let at = start; at < end; ) {
    const next = Math.min(end, (Math.floor(at / SECTOR_BYTES) + 1) * SECTOR_BYTES);
    sectors.push([at, next]);
    at = next;
  }
  return sectors;
}

export const row: Row = {
  number: 3,
  name: 'every subset of the sectors of a batch zeroed',
  async run(_scale, report) {
    const { disk, batches, digests, bytes } = await writtenFile(false);
    for (let batch = 1; batch < batches.length; batch++) {
      const isLast = batch === batches.length - 1;
      const before = batches[batch - 1];
      const sectors = sectorsOf(before.end, batches[batch].end);
      for (let subset = 1; subset < 2 ** sectors.length; subset++) {
        const zeroed = Buffer.from(bytes);
        for (let i = 0; i < sectors.length; i++) if (subset & (1 << i)) zeroed.fill(0, ...sectors[i]);
        await tryCase(report, `batch ${batch}, sectors ${subset.toString(2)}`, async () => {
          const found = await outcome(damaged(disk, FILE, zeroed), digests);
          if ('refused' in found) return isLast ? `refused: ${found.refused.message}` : undefined;
          if (!isLast) return `zeros before a later batch were taken, with ${found.count} batches`;
          return found.count >= before.count ? undefined : `${found.count} batches, ${before.count} acknowledged`;
        });
      }
    }
  },
};
