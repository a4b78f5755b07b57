/** Two questions at the first bad place: does a later batch follow, and does it look as a crash leaves it? */
import { isSealed } from '../../../src/store/file/format.ts';
import type { Verdict } from '../torn-or-damaged.ts';

const LINE_FEED = 10;
const SECTOR_BYTES = 512;

export function judge(file: Buffer): Verdict {
  const [header, ...lines] = linesOf(file);
  const { first } = JSON.parse(header.toString());
  let [batch, n] = [first, 0];
  let start = header.length + 1;
  while (lines.length > 0 && isAt(lines[0], batch, n)) {
    const line = lines.shift()!;
    [batch, n] = JSON.parse(line.toString()).last ? [batch + 1, 0] : [batch, n + 1];
    start += line.length + 1;
  }
  if (start === file.length && n === 0) return 'whole';
  const rest = file.subarray(start);
  // The state that a file begins with was durable before the file had its name.
  if (batch === first || followsLater(rest, batch)) return 'damaged';
  return rest.at(-1) !== LINE_FEED || hasZeroSector(rest, start) ? 'torn' : 'damaged';
}

/** Without their line feeds; the last may have none. */
function linesOf(bytes: Buffer): Buffer[] {
  const lines: Buffer[] = [];
  for (let start = 0; start < bytes.length; start += lines.at(-1)!.length + 1) {
    const feed = bytes.indexOf(LINE_FEED, start);
    lines.push(bytes.subarray(start, feed === -1 ? bytes.length : feed));
  }
  return lines;
}

function isAt(line: Buffer, batch: number, n: number): boolean {
  if (!isSealed(line)) return false;
  const record = JSON.parse(line.toString());
  return record.batch === batch && record.n === n;
}

/** A good record of another batch than the one that was being written; or one whose line feed alone is wrong. */
function followsLater(rest: Buffer, batch: number): boolean {
  if (rest.at(-1) !== LINE_FEED && isSealed(linesOf(rest).at(-1)?.subarray(0, -1) ?? rest)) return true;
  const records = linesOf(rest).map((line) => line.subarray(line.lastIndexOf(0) + 1)); // zeros may stand before it
  return records.some((record) => isSealed(record) && JSON.parse(record.toString()).batch !== batch);
}

function hasZeroSector(rest: Buffer, start: number): boolean {
  for (let from = 0; from < rest.length; ) {
    const to = Math.min(rest.length, from + SECTOR_BYTES - ((start + from) % SECTOR_BYTES));
    if (rest.subarray(from, to).every((byte) => byte === 0)) return true;
    from = to;
  }
  return false;
}
