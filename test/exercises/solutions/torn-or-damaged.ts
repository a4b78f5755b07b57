/** Two questions at the first bad place: does a later batch follow, and does it look as a crash leaves it? */
import { decodeEntry, isSealed } from '../../../src/store/record.ts';

export type Verdict = 'whole' | 'torn' | 'damaged';
type Entry = ReturnType<typeof decodeEntry>;

const LINE_FEED = 10;
const SECTOR_BYTES = 512;

/** `end`: of its line feed; of the file, where there is none. */
interface Line {
  start: number;
  end: number;
  entry: Entry | undefined;
}

export function judge(log: Buffer): Verdict {
  const [, ...lines] = linesOf(log);
  let last = { seq: 0, batch: 0, left: 0 };
  while (lines.length > 0 && follows(last, lines[0].entry)) last = lines.shift()!.entry!;
  if (lines.length === 0) return 'whole';
  const [bad, ...others] = lines;
  const tornBatch = last.left > 0 ? last.batch : last.batch + 1;
  const isTorn =
    looksTorn(log, bad, bad.start) &&
    others.every(({ entry, ...line }) => (entry ? entry.batch === tornBatch : looksTorn(log, line, bad.start)));
  return isTorn ? 'torn' : 'damaged';
}

function linesOf(log: Buffer): Line[] {
  const lines: Line[] = [];
  for (let start = 0; start < log.length; start = lines.at(-1)!.end + 1) {
    const feed = log.indexOf(LINE_FEED, start);
    const end = feed === -1 ? log.length : feed;
    const bytes = log.subarray(start, end);
    lines.push({ start, end, entry: feed !== -1 && isSealed(bytes) ? decodeEntry(bytes) : undefined });
  }
  return lines;
}

function follows(last: { seq: number; batch: number; left: number }, entry: Entry | undefined): boolean {
  if (entry?.seq !== last.seq + 1) return false;
  const sameBatch = entry.batch === last.batch && entry.left === last.left - 1;
  return last.left > 0 ? sameBatch : entry.batch === last.batch + 1;
}

/** A crash leaves a file that ends without a line feed, or NULs where whole sectors were never written. */
function looksTorn(log: Buffer, { start, end }: { start: number; end: number }, from: number): boolean {
  const runs = [...log.toString('latin1', start, end).matchAll(/\0+/g)];
  if (runs.length === 0) return end === log.length && !isSealed(log.subarray(start, end - 1));
  return runs.every((run) => {
    const first = start + run.index;
    const next = first + run[0].length;
    const startsWhole = first === from || first % SECTOR_BYTES === 0;
    return startsWhole && (next === log.length || next % SECTOR_BYTES === 0);
  });
}
