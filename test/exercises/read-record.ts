/**
 * Exercise: read one line of a log (docs/tour.md, "Recovery"). docs/formats.md tells all there is to know; this one
 * believes whatever it reads. Write it without src/store/record.ts, then compare.
 */
import type { Operation } from '../../src/store/model.ts';

export interface LogRecord {
  seq: number;
  batch: number;
  left: number;
  operation: Operation;
}

/** The record of a line (its bytes without the line feed); undefined where they are not as they were written. */
export function readRecord(line: Buffer): LogRecord | undefined {
  try {
    const { crc: _, seq, batch, left, ...operation } = JSON.parse(line.toString());
    return { seq, batch, left, operation };
  } catch {
    return undefined;
  }
}
