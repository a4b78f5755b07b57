/**
 * Reads JSON (RFC 8259), and refuses texts that two readers could understand in two ways: duplicate names, lone
 * surrogates, a byte order mark. Integers of 64 bits are exact. With the maxima below, no text can exhaust the stack
 * or take long.
 */
import { isUtf8 } from 'node:buffer';
import { excerpt } from '../text.ts';
import { type Int64, int64Of } from './int64.ts';

/** The deepest nesting of arrays and objects. */
export const MAX_DEPTH = 64;
/** The most values in a text: the outermost one, every item and every member. */
export const MAX_VALUES = 10_000;

/** A JSON number that is no int64, kept as it was written, so that no rounding can make an integer of it. */
export class Decimal {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** A number is always a safe integer, a bigint an int64 beyond those; any other number is a Decimal. */
export type JsonValue = null | boolean | string | Int64 | Decimal | JsonValue[] | Map<string, JsonValue>;

export function readJson(bytes: Uint8Array): JsonValue {
  return new Reader(decode(bytes)).read();
}

/** A number has groups: its sign, its whole part, its fraction, its exponent. */
const WORD_OR_NUMBER = /true|false|null|(-?)(0|[1-9]\d*)(?:\.(\d+))?(?:[eE]([+-]?\d+))?/y;

/** The parts of a string; an escaped surrogate only as one of a pair. */
const PARTS = [
  /[^"\\\0-\x1f]+/,
  /\\["\\/bfnrt]/,
  /\\u(?![dD][89a-fA-F])[\da-fA-F]{4}/,
  /\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}/,
];
const INSIDE = new RegExp(`(?:${PARTS.map(({ source }) => source).join('|')})*`, 'y');

class Reader {
  readonly #text: string;
  #index = 0;
  #values = 0;

  constructor(text: string) {
    this.#text = text;
  }

  read(): JsonValue {
    const value = this.#value(0);
    if (this.#peek() !== '') throw this.#expected('the end of the text');
    return value;
  }

  #value(depth: number): JsonValue {
    const next = this.#peek();
    if (++this.#values > MAX_VALUES) throw this.#error(`there are more than ${MAX_VALUES} values`);
    if (next === '"') return this.#string();
    if (next === '{' || next === '[') {
      if (depth === MAX_DEPTH) throw this.#error(`arrays and objects are more than ${MAX_DEPTH} deep`);
      this.#index++;
      return next === '{' ? this.#object(depth + 1) : this.#array(depth + 1);
    }
    return this.#wordOrNumber();
  }

  #array(depth: number): JsonValue[] {
    const items: JsonValue[] = [];
    if (this.#skip(']')) return items;
    do items.push(this.#value(depth));
    while (this.#skip(','));
    if (!this.#skip(']')) throw this.#expected('"," or "]"');
    return items;
  }

  #object(depth: number): Map<string, JsonValue> {
    const members = new Map<string, JsonValue>();
    if (this.#skip('}')) return members;
    do {
      if (this.#peek() !== '"') throw this.#expected('a member name in double quotes');
      const start = this.#index;
      const name = this.#string();
      if (members.has(name)) throw this.#error(`the member name ${excerpt(name)} is there twice`, start);
      if (!this.#skip(':')) throw this.#expected('":"');
      members.set(name, this.#value(depth));
    } while (this.#skip(','));
    if (!this.#skip('}')) throw this.#expected('"," or "}"');
    return members;
  }

  #string(): string {
    const start = this.#index;
    INSIDE.lastIndex = start + 1;
    INSIDE.test(this.#text);
    const end = INSIDE.lastIndex;
    if (this.#text[end] !== '"') throw this.#wrongInString(end);
    this.#index = end + 1;
    return JSON.parse(this.#text.slice(start, end + 1)); // a mere slice would keep the whole body in memory
  }

  #wrongInString(index: number): JsonError {
    const rest = this.#text.slice(index, index + 6);
    let fault = 'half of a surrogate pair stands alone';
    if (rest === '') fault = 'a string is not closed';
    else if (rest[0] !== '\\') fault = `${excerpt(rest[0])} in a string must be written as an escape`;
    else if (!/^\\u[\da-fA-F]{4}$/.test(rest)) {
      fault = 'a backslash must be followed by one of " \\ / b f n r t, or by u and four hexadecimal digits';
    }
    return this.#error(fault, index);
  }

  #wordOrNumber(): JsonValue {
    WORD_OR_NUMBER.lastIndex = this.#index;
    const [text, sign, whole, fraction = '', exponent = '0'] = WORD_OR_NUMBER.exec(this.#text) ?? [];
    if (text === undefined) throw this.#expected('a value');
    this.#index += text.length;
    if (whole === undefined) return JSON.parse(text);
    // `Number` rounds only exponents beyond 2^53, and no text has enough digits to make an int64 with one of those.
    return int64Of(sign, whole + fraction, Number(exponent) - fraction.length) ?? new Decimal(text);
  }

  /** True if `sign` comes next, which is then skipped. */
  #skip(sign: string): boolean {
    if (this.#peek() !== sign) return false;
    this.#index++;
    return true;
  }

  /** Skips white space; returns the character after it, or '' at the end. */
  #peek(): string {
    let next = this.#text.charAt(this.#index);
    while (next === ' ' || next === '\n' || next === '\r' || next === '\t') next = this.#text.charAt(++this.#index);
    return next;
  }

  #expected(what: string, index = this.#index): JsonError {
    const point = this.#text.codePointAt(index);
    const found = point === undefined ? 'the end' : excerpt(String.fromCodePoint(point));
    return this.#error(`expected ${what}, not ${found}`, index);
  }

  #error(fault: string, index = this.#index): JsonError {
    return new JsonError(fault, this.#text.slice(0, index));
  }
}

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
function decode(bytes: Uint8Array): string {
  const buffer = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const text = buffer.toString('utf8');
  if (text.startsWith('\ufeff')) throw new JsonError('a byte order mark is not allowed', '');
  if (!isUtf8(buffer)) throw new JsonError('these bytes are not UTF-8', beforeIllFormed(buffer, text));
  return text;
}

/**
 * The text before the first ill-formed byte. In `text`, U+FFFD stands in its place: so the byte is where `text`,
 * encoded again, first differs from `buffer`.
 */
function beforeIllFormed(buffer: Buffer, text: string): string {
  const again = Buffer.from(text);
  let index = 0;
  while (again[index] === buffer[index]) index++;
  while ((again[index] & 0xc0) === 0x80) index--; // to the first byte of its character
  return again.toString('utf8', 0, index);
}

/** Unicode characters, in a text without lone surrogates. */
export function countCharacters(text: string): number {
  return text.length - (text.match(/[\udc00-\udfff]/g)?.length ?? 0);
}
