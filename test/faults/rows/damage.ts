/** Rows 1 to 3: a file of a few batches, cut, flipped, reordered and zeroed at every place. */
import { readFile } from '../../../src/store/file/read.ts';
import type { Report, Row } from '../row.ts';
import { DIR, type SimDisk } from '../sim-disk.ts';
import { damaged, FILE, outcome, type Written, writtenFile } from '../written-file.ts';

const SECTOR_BYTES = 512;
/** Against a mutant every fifth bit is flipped: one of each byte at least. */
const QUICK_STEP = 5;

export const cut: Row = {
  number: 1,
  name: 'the file cut at every byte',
  async run(_scale, report) {
    const { disk, batches, digests, bytes } = await writtenFile(false);
    for (let length = 0; length <= bytes.length; length++) {
      await report.attempt(`cut at ${length}`, async () => {
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

export const flip: Row = {
  number: 2,
  name: 'every bit flipped; lines dropped, doubled, swapped',
  async run(scale, report) {
    for (const isClosed of [false, true]) {
      const written = await writtenFile(isClosed);
      // A closed file differs in its end alone.
      await flipBits(report, written, isClosed ? written.batches.at(-2)!.end : 0, scale < 1 ? QUICK_STEP : 1);
      await reorder(report, written, isClosed);
    }
  },
};

async function flipBits(report: Report, written: Written, from: number, step: number): Promise<void> {
  const { bytes } = written;
  for (let bit = 8 * from; bit < bytes.length * 8 && !report.isOver(); bit += step) {
    const at = bit >> 3;
    const flipped = Buffer.from(bytes);
    flipped[at] ^= 1 << (bit & 7);
    await report.attempt(`bit ${bit & 7} of byte ${at}`, () => judge(written, flipped, at, true));
  }
}

async function reorder(report: Report, written: Written, isClosed: boolean): Promise<void> {
  const lines = written.bytes.toString('utf8').split(/(?<=\n)/);
  const offsets = [...lines, ''].map((_, i) => Buffer.byteLength(lines.slice(0, i).join('')));
  const attempt = (what: string, changed: string[], first: number) =>
    report.attempt(what, () => judge(written, Buffer.from(changed.join('')), offsets[first], false));
  for (let i = 0; i < lines.length; i++) {
    const isLastOfAll = i === lines.length - 1 && isClosed;
    // A file without its last line was not closed: there is nothing to notice.
    if (!isLastOfAll) await attempt(`line ${i} dropped`, lines.toSpliced(i, 1), i);
    await attempt(`line ${i} doubled`, lines.toSpliced(i, 0, lines[i]), i + 1);
    for (let j = i + 1; j < lines.length; j++) {
      await attempt(`lines ${i} and ${j} swapped`, lines.with(i, lines[j]).with(j, lines[i]), i);
    }
  }
}

/** Damage is refused and placed right. Lines that go missing from the last batch may also be taken for torn. */
async function judge(written: Written, bytes: Buffer, firstBad: number, isFlip: boolean): Promise<string | undefined> {
  const disk = damaged(written.disk, FILE, bytes);
  if (isFlip && !(await isNoticed(disk))) return 'reading it without a state did not notice';
  const found = await outcome(disk, written.digests);
  if ('refused' in found) {
    const { file, offset } = found.refused;
    return file.endsWith(FILE) && offset <= firstBad ? undefined : `refused at ${file}, offset ${offset}`;
  }
  const before = written.batches[written.batches.length - 2];
  if (isFlip || firstBad < before.end) return `taken, with ${found.count} batches`;
  if (found.count < before.count) return `${found.count} batches are left of ${before.count} acknowledged before`;
  return found.count < written.digests.length - 1 ? undefined : 'the damage was not noticed';
}

/** As a new file is read back. */
const isNoticed = (disk: SimDisk) =>
  readFile(disk, `${DIR}/${FILE}`).then(
    () => false,
    () => true,
  );

export const sectors: Row = {
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
        await report.attempt(`batch ${batch}, sectors ${subset.toString(2)}`, async () => {
          const found = await outcome(damaged(disk, FILE, zeroed), digests);
          if ('refused' in found) return isLast ? `refused: ${found.refused.message}` : undefined;
          if (!isLast) return `zeros before a later batch were taken, with ${found.count} batches`;
          return found.count >= before.count ? undefined : `${found.count} batches, ${before.count} acknowledged`;
        });
      }
    }
  },
};

/** Where the sectors of `start` … `end - 1` begin and end; the first and the last may be parts of one. */
function sectorsOf(start: number, end: number): [number, number][] {
  if (start >= end) return [];
  const next = Math.min(end, (Math.floor(start / SECTOR_BYTES) + 1) * SECTOR_BYTES);
  return [[start, next], ...sectorsOf(next, end)];
}
