/**
 * Exercise: read one line of a data file (docs/tour.md, "Recovery"). docs/formats.md tells all there is to know; this one
 * believes whatever it reads. Write it without src/store/file/format.ts and src/store/record.ts, then compare.
 */
import type { Operation } from '../../src/store/model.ts';

export interface FileRecord {
  batch: number;
  n: number;
  last: boolean;
  operation: Operation;
}

/** The record of a line (its bytes without the line feed); undefined where they are not as they were written. */
export function readRecord(line: Buffer): FileRecord | undefined {
  try {
    const { crc: _, batch, n, last = false, ...operation } = JSON.parse(line.toString());
    return { batch, n, last, operation };
  } catch {
    return undefined;
  }
}
