/** Rows 1 to 3: a file of a few batches, cut, flipped, reordered and zeroed at every place. */
import { DamagedError } from '../../../src/store/file/format.ts';
import { readFile } from '../../../src/store/file/read.ts';
import type { Report, Row } from '../row.ts';
import { DIR, SECTOR_BYTES, type SimDisk } from '../sim-disk.ts';
import { recovered } from '../workload.ts';
import { BATCHES, damaged, FILE, outcome, type Written, writtenFile } from '../written-file.ts';

/** Against a mutant every fifth bit is flipped: one of each byte at least. */
const QUICK_STEP = 5;

export const cut: Row = {
  number: 1,
  name: 'the file cut at every byte',
  async run(_scale, report) {
    for (let known = 0; known <= BATCHES; known++) {
      const { disk, batches, digests, bytes } = await writtenFile(false, known);
      for (let length = 0; length <= bytes.length; length++) {
        await report.attempt(`cut at ${length}, LOCK knows ${known}`, async () => {
          const found = await outcome(damaged(disk, FILE, bytes.subarray(0, length)), digests);
          const whole = batches.findLastIndex(({ end }) => end <= length);
          // The first batch was durable before the file had its name: no crash takes any of it away.
          const isRight = whole < known ? found instanceof DamagedError : found === whole;
          return isRight ? undefined : `${found}, of ${whole} whole batches`;
        });
      }
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

/** As a start reads a file, and as a new one is read back. */
const READERS: ((disk: SimDisk) => Promise<unknown>)[] = [recovered, (disk) => readFile(disk, `${DIR}/${FILE}`)];
const refusalOf = (reading: Promise<unknown>): Promise<Error | undefined> =>
  reading.then(
    () => undefined,
    (error) => error,
  );

async function flipBits(report: Report, { disk, bytes }: Written, from: number, step: number): Promise<void> {
  for (let bit = 8 * from; bit < bytes.length * 8 && !report.isOver(); bit += step) {
    const at = bit >> 3;
    const flipped = Buffer.from(bytes);
    flipped[at] ^= 1 << (bit & 7);
    await report.attempt(`bit ${bit & 7} of byte ${at}`, async () => {
      for (const read of (bit & 7) === (at & 7) ? READERS : [recovered]) {
        const refusal = await refusalOf(read(damaged(disk, FILE, flipped)));
        const wrong = refusal ? misplaced(refusal, at) : 'not noticed';
        if (wrong) return wrong;
      }
      return undefined;
    });
  }
}

async function reorder(report: Report, { disk, bytes, batches, digests }: Written, isClosed: boolean): Promise<void> {
  const lines = bytes.toString('utf8').split(/(?<=\n)/);
  const before = batches.length - 2;
  const attempt = (what: string, changed: string[], first: number) =>
    report.attempt(what, async () => {
      const offset = Buffer.byteLength(lines.slice(0, first).join(''));
      const found = await outcome(damaged(disk, FILE, Buffer.from(changed.join(''))), digests);
      if (found instanceof DamagedError) return misplaced(found, offset);
      // Lines that go missing from the last batch may also be taken for torn, where nobody knows that it was durable.
      const isRight = !isClosed && offset >= batches[before].end && found === before;
      return isRight ? undefined : `taken, with ${found} batches`;
    });
  for (let i = 0; i < lines.length; i++) {
    await attempt(`line ${i} dropped`, lines.toSpliced(i, 1), i);
    await attempt(`line ${i} doubled`, lines.toSpliced(i, 0, lines[i]), i + 1);
    for (let j = i + 1; j < lines.length; j++) {
      await attempt(`lines ${i} and ${j} swapped`, lines.with(i, lines[j]).with(j, lines[i]), i);
    }
  }
}

/** Damage is refused, and placed right. */
function misplaced(error: Error, firstBad: number): string | undefined {
  if (!(error instanceof DamagedError)) return error.message;
  const { file, offset } = error;
  return file.endsWith(FILE) && offset <= firstBad ? undefined : `refused at ${file}, offset ${offset}`;
}

export const sectors: Row = {
  number: 3,
  name: 'every subset of the sectors of a batch zeroed',
  async run(_scale, report) {
    for (const known of [0, BATCHES - 1, BATCHES]) {
      const written = await writtenFile(false, known);
      for (let batch = 1; batch <= BATCHES; batch++) await zeroSectors(report, written, batch, known);
    }
  },
};

async function zeroSectors(report: Report, written: Written, batch: number, known: number): Promise<void> {
  const { disk, batches, digests, bytes } = written;
  const sectors = sectorsOf(batches[batch - 1].end, batches[batch].end);
  for (let subset = 1; subset < 2 ** sectors.length; subset++) {
    const zeroed = Buffer.from(bytes);
    for (let i = 0; i < sectors.length; i++) if (subset & (1 << i)) zeroed.fill(0, ...sectors[i]);
    await report.attempt(`batch ${batch}, sectors ${subset.toString(2)}, LOCK knows ${known}`, async () => {
      const found = await outcome(damaged(disk, FILE, zeroed), digests);
      // Zeros before a later batch, or in what was durable, no crash has left.
      const isRight = batch === BATCHES && known < BATCHES ? Number(found) >= batch - 1 : found instanceof DamagedError;
      return isRight ? undefined : `${found}`;
    });
  }
}

/** Where the sectors of `start` … `end - 1` begin and end; the first and the last may be parts of one. */
function sectorsOf(start: number, end: number): [number, number][] {
  if (start >= end) return [];
  const next = Math.min(end, (Math.floor(start / SECTOR_BYTES) + 1) * SECTOR_BYTES);
  return [[start, next], ...sectorsOf(next, end)];
}
