import type { Disk } from './disk.ts';
import { isSealed, MAX_RECORD_BYTES } from './record.ts';

const READ_BYTES = 1024 * 1024;
const LINE_FEED = 10;

/** How far a long piece of work has come. */
export type Progress = (bytesDone: number, bytesTotal: number) => void;

export interface Line {
  /** Without the line feed; they are others when the next line is given. */
  bytes: Buffer;
  /** Where the line begins in the file. */
  offset: number;
  /** It ends with a line feed. */
  isWhole: boolean;
  /** Its beginning was given before: it is the rest of a line that comes in pieces. */
  isRest: boolean;
  /** It is all of a line, and its checksum right. */
  isGood: boolean;
}

export interface Reach {
  /** How much of the file counts, where that is less than all of it. */
  length?: number;
  progress?: Progress;
}

/**
 * Reads a file once, front to back, and gives its lines to `take`. A line longer than any record comes in pieces.
 * Others have their turn after every MiB: a server that recovers says so to whoever asks. The size is returned.
 */
export async function readLines(
  disk: Disk,
  path: string,
  take: (line: Line) => void,
  { length, progress }: Reach = {},
): Promise<number> {
  let isRest = false;
  const give = (bytes: Buffer, offset: number, isWhole: boolean) => {
    take({ bytes, offset, isWhole, isRest, isGood: isWhole && !isRest && isSealed(bytes) });
    isRest = !isWhole;
  };
  const fd = disk.openToRead(path);
  try {
    let size = length ?? disk.size(path);
    const buffer = Buffer.allocUnsafe(Math.min(size, MAX_RECORD_BYTES + READ_BYTES));
    let position = 0; // in the file, of buffer[0], where a line begins
    let filled = 0;
    while (position + filled < size) {
      const wanted = Math.min(READ_BYTES, size - position - filled);
      const count = disk.read(fd, buffer.subarray(filled, filled + wanted), position + filled);
      filled += count;
      if (count < wanted) size = position + filled;
      const start = takeLines(buffer.subarray(0, filled), position, size, give);
      buffer.copyWithin(0, start, filled);
      position += start;
      filled -= start;
      progress?.(position, size);
      if (position + filled < size) await new Promise((resolve) => setImmediate(resolve));
    }
    return size;
  } finally {
    disk.close(fd);
  }
}

/** Gives where the rest begins, which is the first part of a line. */
function takeLines(
  bytes: Buffer,
  position: number,
  size: number,
  give: (bytes: Buffer, offset: number, isWhole: boolean) => void,
): number {
  let start = 0;
  for (let feed = bytes.indexOf(LINE_FEED); feed !== -1; feed = bytes.indexOf(LINE_FEED, start)) {
    give(bytes.subarray(start, feed), position + start, true);
    start = feed + 1;
  }
  const rest = bytes.length - start;
  if (rest === 0 || (rest < MAX_RECORD_BYTES && position + bytes.length < size)) return start;
  give(bytes.subarray(start), position + start, false);
  return bytes.length;
}
