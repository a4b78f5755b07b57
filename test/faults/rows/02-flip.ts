import { readSnapshot } from '../../../src/store/read-snapshot.ts';
import type { Report, Row } from '../row.ts';
import type { SimDisk } from '../sim-disk.ts';
import { DIR } from '../workload.ts';
import { damaged, LOG, outcome, SNAPSHOT, tryCase, type Written, writtenLog } from '../written-log.ts';

/** Damage is refused and placed right. Lines that go missing from the last batch may also be taken for torn. */
async function judge(
  written: Written,
  name: string,
  bytes: Buffer,
  firstBad: number,
  isFlip: boolean,
): Promise<string | undefined> {
  const disk = damaged(written.disk, name, bytes);
  if (name === SNAPSHOT && isFlip && !(await isNoticed(disk))) return 'reading the snapshot back did not notice';
  const found = await outcome(disk, written.digests);
  if ('refused' in found) {
    const { file, offset } = found.refused;
    const isRight = file.endsWith(name) && offset <= firstBad;
    return isRight ? undefined : `refused at ${file}, offset ${offset}`;
  }
  const before = written.batches[written.batches.length - 2];
  if (isFlip || name === SNAPSHOT || firstBad < before.end) return `taken, with ${found.count} operations`;
  if (found.count < before.count) return `${found.count} operations are left of ${before.count} acknowledged before`;
  return found.count < written.digests.length - 1 ? undefined : 'the damage was not noticed';
}

async function isNoticed(disk: SimDisk): Promise<boolean> {
  try {
    await readSnapshot(disk, `${DIR}/${SNAPSHOT}`);
    return false;
  } catch {
    return true;
  }
}

async function flipEveryBit(report: Report, written: Written, name: string): Promise<void> {
  const bytes = written.disk.bytes(name);
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const at = bit >> 3;
    const flipped = Buffer.from(bytes);
    flipped[at] ^= 1 << (bit & 7);
    await tryCase(report, `${name}, bit ${bit & 7} of byte ${at}`, () => judge(written, name, flipped, at, true));
    if (report.isOver()) return;
  }
}

/** Lines dropped, doubled and swapped. */
async function reorder(report: Report, written: Written, name: string): Promise<void> {
  const lines = written.disk
    .bytes(name)
    .toString('utf8')
    .split(/(?<=\n)/);
  const offsets = [...lines, ''].map((_, i) => Buffer.byteLength(lines.slice(0, i).join('')));
  const attempt = (what: string, changed: string[], first: number) =>
    tryCase(report, `${name}, ${what}`, () =>
      judge(written, name, Buffer.from(changed.join('')), offsets[first], false),
    );
  for (let i = 0; i < lines.length; i++) {
    const isLastOfAll = i === lines.length - 1 && name === LOG;
    // A log without its last line is a log that was not written on or not closed: there is nothing to notice.
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
      const written = await writtenLog(isClosed);
      for (const name of [LOG, SNAPSHOT]) {
        if (!isClosed || name === LOG) await flipEveryBit(report, written, name);
        await reorder(report, written, name);
      }
    }
  },
};
