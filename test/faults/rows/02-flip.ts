import { readFile } from '../../../src/store/file/read.ts';
import type { Report, Row } from '../row.ts';
import { DIR, type SimDisk } from '../sim-disk.ts';
import { damaged, FILE, outcome, tryCase, type Written, writtenFile } from '../written-file.ts';

/** Damage is refused and placed right. Lines that go missing from the last batch may also be taken for torn. */
async function judge(written: Written, bytes: Buffer, firstBad: number, isFlip: boolean): Promise<string | undefined> {
  const disk = damaged(written.disk, FILE, bytes);
  if (isFlip && !(await isNoticed(disk))) return 'reading it without a state did not notice';
  const found = await outcome(disk, written.digests);
  if ('refused' in found) {
    const { file, offset } = found.refused;
    const isRight = file.endsWith(FILE) && offset <= firstBad;
    return isRight ? undefined : `refused at ${file}, offset ${offset}`;
  }
  const before = written.batches[written.batches.length - 2];
  if (isFlip || firstBad < before.end) return `taken, with ${found.count} batches`;
  if (found.count < before.count) return `${found.count} batches are left of ${before.count} acknowledged before`;
  return found.count < written.digests.length - 1 ? undefined : 'the damage was not noticed';
}

async function isNoticed(disk: SimDisk): Promise<boolean> {
  try {
    await readFile(disk, `${DIR}/${FILE}`);
    return false;
  } catch {
    return true;
  }
}

async function flipEveryBit(report: Report, written: Written): Promise<void> {
  const { bytes } = written;
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const at = bit >> 3;
    const flipped = Buffer.from(bytes);
    flipped[at] ^= 1 << (bit & 7);
    await tryCase(report, `bit ${bit & 7} of byte ${at}`, () => judge(written, flipped, at, true));
    if (report.isOver()) return;
  }
}

/** Lines dropped, doubled and swapped. */
async function reorder(report: Report, written: Written, isClosed: boolean): Promise<void> {
  const lines = written.bytes.toString('utf8').split(/(?<=\n)/);
  const offsets = [...lines, ''].map((_, i) => Buffer.byteLength(lines.slice(0, i).join('')));
  const attempt = (what: string, changed: string[], first: number) =>
    tryCase(report, what, () => judge(written, Buffer.from(changed.join('')), offsets[first], false));
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

export const row: Row = {
  number: 2,
  name: 'every bit flipped; lines dropped, doubled, swapped',
  async run(_scale, report) {
    for (const isClosed of [false, true]) {
      const written = await writtenFile(isClosed);
      await flipEveryBit(report, written);
      await reorder(report, written, isClosed);
    }
  },
};
