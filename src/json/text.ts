/** JSON as text: its bytes, its characters, and the place of a fault in it. */
import { isAscii, isUtf8 } from 'node:buffer';

/** A fault in a JSON text and its place: lines and columns are counted from 1, a column is a Unicode character. */
export class JsonError extends Error {
  /** `before`: all of the text before the fault. */
  constructor(fault: string, before: string) {
    const lines = before.split(/\r\n|\r|\n/);
    const column = countCharacters(lines[lines.length - 1]) + 1;
    super(`${fault}, at byte offset ${Buffer.byteLength(before)} (line ${lines.length}, column ${column})`);
  }
}

/** Bytes as text, when they are UTF-8 without a byte order mark. */
export function decode(bytes: Uint8Array): string {
  const buffer = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (isAscii(buffer)) return buffer.toString('latin1');
  const text = buffer.toString('utf8');
  if (text.startsWith('\ufeff')) throw new JsonError('a byte order mark is not allowed', '');
  if (!isUtf8(buffer)) throw new JsonError('these bytes are not UTF-8', beforeIllFormed(buffer, text));
  return text;
}

/** The text before the first ill-formed byte. Decoded, that is U+FFFD; encoded again, the bytes first differ there. */
function beforeIllFormed(buffer: Buffer, text: string): string {
  const again = Buffer.from(text);
  let at = 0;
  while (again[at] === buffer[at]) at++;
  while ((again[at] & 0xc0) === 0x80) at--; // to the first byte of its character
  return again.toString('utf8', 0, at);
}

/** Unicode characters, in a text without lone surrogates. */
export function countCharacters(text: string): number {
  return text.length - (text.match(/[\udc00-\udfff]/g)?.length ?? 0);
}
