import type { Disk } from './disk.ts';
import { MAX_RECORD_BYTES } from './record.ts';

const READ_BYTES = 1024 * 1024;
const LINE_FEED = 10;

const TURN_BYTES = 1024 * 1024;

/** Lets others have their turn after every MiB that is read: a server that recovers says so to whoever asks. */
export class Turns {
  #next = TURN_BYTES;

  isDue(offset: number): boolean {
    return offset >= this.#next;
  }

  async pass(offset: number): Promise<void> {
    this.#next = offset + TURN_BYTES;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** How far a long piece of work has come. */
export type Progress = (bytesDone: number, bytesTotal: number) => void;

/** A line `bytes[start … end - 1]`; `end` is its line feed, or the end of the file where `isWhole` is false. */
export interface Line {
  bytes: Buffer;
  start: number;
  end: number;
  /** Where the line begins in the file. */
  offset: number;
  isWhole: boolean;
}

/**
 * Reads a file once, front to back, and gives its lines. A line longer than any record comes in pieces (not whole).
 * The line given is the same object each time.
 */
export function* readLines(disk: Disk, fd: number, length: number, progress?: Progress): Generator<Line> {
  let bytes: Buffer = Buffer.allocUnsafe(Math.min(READ_BYTES, length));
  const line: Line = { bytes, start: 0, end: 0, offset: 0, isWhole: true };
  let filled = 0; // bytes that are filled, of which a line may begin at 0
  let position = 0; // in the file, of bytes[0]
  while (position + filled < length) {
    const wanted = Math.min(bytes.length - filled, length - position - filled);
    const count = disk.read(fd, bytes.subarray(filled, filled + wanted), position + filled);
    filled += count;
    if (count < wanted) length = position + filled;
    let start = 0;
    for (let feed = bytes.indexOf(LINE_FEED); feed !== -1 && feed < filled; feed = bytes.indexOf(LINE_FEED, start)) {
      yield give(line, bytes, start, feed, position + start, true);
      start = feed + 1;
    }
    if (start === 0 && filled >= MAX_RECORD_BYTES) {
      yield give(line, bytes, 0, filled, position, false);
      start = filled;
    }
    bytes = carry(bytes, start, filled);
    position += start;
    filled -= start;
    progress?.(position, length);
  }
  if (filled > 0) yield give(line, bytes, 0, filled, position, false);
}

function give(line: Line, bytes: Buffer, start: number, end: number, offset: number, isWhole: boolean): Line {
  line.bytes = bytes;
  line.start = start;
  line.end = end;
  line.offset = offset;
  line.isWhole = isWhole;
  return line;
}

/** Moves what begins a line to the front; where that fills the buffer, to a larger one. */
function carry(bytes: Buffer, start: number, filled: number): Buffer {
  const target = start === 0 && filled === bytes.length ? Buffer.allocUnsafe(bytes.length * 2) : bytes;
  bytes.copy(target, 0, start, filled);
  return target;
}
