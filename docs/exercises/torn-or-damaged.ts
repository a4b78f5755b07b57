/**
 * Exercise: tell a file that a crash cut off from one that is damaged (docs/tour.md, "Recovery"). This one drops
 * whatever comes after the last good line, as many stores do: with it go writes that were acknowledged.
 */
import { isSealed } from '../../src/store/file/format.ts';

export type Verdict = 'whole' | 'torn' | 'damaged';

const LINE_FEED = 10;

/** The first line, the header, is always good here, and the store was not closed. */
export function judge(file: Buffer): Verdict {
  for (let start = file.indexOf(LINE_FEED) + 1; start < file.length; ) {
    const end = file.indexOf(LINE_FEED, start);
    if (end === -1 || !isSealed(file.subarray(start, end))) return 'torn';
    start = end + 1;
  }
  return 'whole';
}
