/** Bytes, cut into lines. */
const LINE_FEED = 10;
/** The longest line of an import. */
export const MAX_INPUT_LINE_BYTES = 65_536;

/** Each line without its line feed; the last need not have one. A line that is too long is undefined, not buffered. */
export async function* linesOf(
  chunks: AsyncIterable<Buffer>,
  maxBytes = Number.POSITIVE_INFINITY,
): AsyncGenerator<Buffer | undefined> {
  let parts: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of chunks) {
    for (let start = 0; start < chunk.length; ) {
      const found = chunk.indexOf(LINE_FEED, start);
      const end = found === -1 ? chunk.length : found;
      const wasTooLong = bytes > maxBytes;
      bytes += end - start;
      if (bytes <= maxBytes) parts.push(chunk.subarray(start, end));
      else if (!wasTooLong) yield undefined; // at once: its end may never come
      start = end + 1;
      if (found === -1) break;
      if (bytes <= maxBytes) yield Buffer.concat(parts);
      parts = [];
      bytes = 0;
    }
  }
  if (bytes > 0 && bytes <= maxBytes) yield Buffer.concat(parts);
}
