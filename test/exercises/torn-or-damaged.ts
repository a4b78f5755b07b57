/**
 * Exercise: tell a log that a crash cut off from one that is damaged (docs/tour.md, "Recovery"). This one drops
 * whatever comes after the last good line, as many logs do: with it go writes that were acknowledged.
 */
import { decodeEntry, isSealed } from '../../src/store/record.ts';

export type Verdict = 'whole' | 'torn' | 'damaged';

const LINE_FEED = 10;

/** The first line, the header, is always good here, and the log was not closed. */
export function judge(log: Buffer): Verdict {
  let seq = 0;
  for (let start = log.indexOf(LINE_FEED) + 1; start < log.length; ) {
    const end = log.indexOf(LINE_FEED, start);
    const line = log.subarray(start, end);
    if (end === -1 || !isSealed(line) || decodeEntry(line).seq !== seq + 1) return 'torn';
    seq++;
    start = end + 1;
  }
  return 'whole';
}
