import { isAscii, isUtf8 } from 'node:buffer';

/** What is wrong with a JSON text, and where. */
export class JsonError extends Error {
  /** Bytes before the fault. */
  readonly offset: number;
  /** Both counted from 1; a column is a Unicode character. */
  readonly line: number;
  readonly column: number;

  /** `before`: all of the text that stands before the fault. */
  constructor(fault: string, before: string) {
    const offset = Buffer.byteLength(before);
    const lines = before.split(/\r\n|\r|\n/);
    const column = countCharacters(lines[lines.length - 1]) + 1;
    super(`${fault}, at byte offset ${offset} (line ${lines.length}, column ${column})`);
    this.offset = offset;
    this.line = lines.length;
    this.column = column;
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

/** Decoding puts U+FFFD for what is ill-formed; the first one that was not sent as such marks the place. */
function beforeIllFormed(buffer: Buffer, text: string): string {
  let offset = 0;
  let from = 0;
  for (let at = text.indexOf('\ufffd'); at >= 0; at = text.indexOf('\ufffd', from)) {
    offset += Buffer.byteLength(text.slice(from, at));
    if (buffer.toString('latin1', offset, offset + 3) !== '\xef\xbf\xbd') return text.slice(0, at);
    offset += 3;
    from = at + 1;
  }
  return text;
}

/** Unicode characters, in a text without lone surrogates. */
export function countCharacters(text: string): number {
  let count = text.length;
  for (let at = 0; at < text.length; at++) {
    if ((text.charCodeAt(at) & 0xfc00) === 0xdc00) count--;
  }
  return count;
}

const MAX_EXCERPT_CHARACTERS = 40;

/** The beginning of what somebody sent, quoted, and with nothing in it that does not show. */
export function excerpt(text: string): string {
  const characters = Array.from(text.slice(0, 2 * MAX_EXCERPT_CHARACTERS + 2));
  const shown = characters.slice(0, MAX_EXCERPT_CHARACTERS).join('');
  const visible = shown.replace(/["\\\p{C}\p{Zl}\p{Zp}]/gu, (one) =>
    one === '"' || one === '\\' ? `\\${one}` : `\\u{${one.codePointAt(0)!.toString(16)}}`,
  );
  return `"${visible}"${characters.length > MAX_EXCERPT_CHARACTERS ? '…' : ''}`;
}
