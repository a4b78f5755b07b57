/**
 * Reads JSON as RFC 8259 has it, and refuses what two readers could understand in two ways: duplicate names,
 * lone surrogates, a byte order mark. Integers of 64 bits are exact. There is no recursion, so what is sent
 * can exhaust neither the stack nor, with the two maxima below, the time.
 */
import type { Int64 } from '../store/model.ts';
import * as ascii from './characters.ts';
import { Decimal, numberOf } from './number.ts';
import { decode, excerpt, JsonError } from './text.ts';

export { Decimal, JsonError };

/** Arrays and objects within each other. */
export const MAX_DEPTH = 64;
/** Everything that is a value: the text itself, every item, every member. */
export const MAX_VALUES = 10_000;

/** A number is always a safe integer, a bigint an int64 beyond those; any other number is a Decimal. */
export type JsonValue = null | boolean | string | Int64 | Decimal | JsonValue[] | Map<string, JsonValue>;

export function readJson(bytes: Uint8Array): JsonValue {
  return new Reader(decode(bytes)).read();
}

/** An array or object whose end has not been read. */
interface Open {
  readonly value: JsonValue[] | Map<string, JsonValue>;
  readonly outer: Open | undefined;
  /** The member whose value is due. */
  name: string;
}

/** Set in a lower-case ASCII letter, clear in its capital. */
const CASE_BIT = 0x20;

const ESCAPES = new Map(
  Object.entries({ '"': '"', '\\': '\\', '/': '/', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }),
);

const ESCAPES_IN_WORDS = 'one of \\" \\\\ \\/ \\b \\f \\n \\r \\t \\u after a backslash';

/** So many digits are an exact number whatever they are. */
const MAX_SAFE_DIGITS = 15;

/** A slice keeps the text it is cut from alive: beyond this length a short name would hold a whole body in memory. */
const MAX_SHARED_LENGTH = 512;

class Reader {
  readonly #text: string;
  readonly #end: number;
  #at = 0;
  #values = 0;
  #depth = 0;
  #open: Open | undefined;

  constructor(text: string) {
    this.#text = text;
    this.#end = text.length;
  }

  read(): JsonValue {
    for (;;) {
      let value = this.#begin();
      while (value !== undefined) {
        if (this.#open === undefined) {
          if (this.#peek() === -1) return value;
          throw this.#expected('the end of the text');
        }
        value = this.#put(this.#open, value);
      }
    }
  }

  /** Reads the value that is due; undefined when it is an array or object that has only begun. */
  #begin(): JsonValue | undefined {
    const code = this.#peek();
    if (++this.#values > MAX_VALUES) throw this.#error(`there are more than ${MAX_VALUES} values`);
    if (code === ascii.QUOTE) return this.#string();
    if (code === ascii.MINUS || ascii.isDigit(code)) return this.#number();
    if (code === ascii.OPEN_OBJECT) return this.#enter(new Map(), ascii.CLOSE_OBJECT);
    if (code === ascii.OPEN_ARRAY) return this.#enter([], ascii.CLOSE_ARRAY);
    if (this.#word('true')) return true;
    if (this.#word('false')) return false;
    if (this.#word('null')) return null;
    throw this.#expected('a value');
  }

  #enter(value: Open['value'], close: number): JsonValue | undefined {
    if (++this.#depth > MAX_DEPTH) throw this.#error(`arrays and objects are more than ${MAX_DEPTH} deep`);
    this.#at++;
    if (this.#peek() === close) return this.#leave(value);
    this.#open = { value, outer: this.#open, name: '' };
    if (close === ascii.CLOSE_OBJECT) this.#name(this.#open);
    return undefined;
  }

  #leave<T extends Open['value']>(value: T): T {
    this.#at++;
    this.#depth--;
    return value;
  }

  /** Puts a value where it belongs; undefined when another is to follow, else what was closed behind it. */
  #put(open: Open, value: JsonValue): JsonValue | undefined {
    const into = open.value;
    const isArray = Array.isArray(into);
    if (isArray) into.push(value);
    else into.set(open.name, value);
    const code = this.#peek();
    if (code === ascii.COMMA) {
      this.#at++;
      if (!isArray) this.#name(open);
      return undefined;
    }
    const close = isArray ? ascii.CLOSE_ARRAY : ascii.CLOSE_OBJECT;
    if (code !== close) throw this.#expected(isArray ? '"," or "]"' : '"," or "}"');
    this.#open = open.outer;
    return this.#leave(into);
  }

  #name(open: Open): void {
    if (this.#peek() !== ascii.QUOTE) throw this.#expected('a member name in double quotes');
    const start = this.#at;
    const name = this.#string();
    if ((open.value as Map<string, JsonValue>).has(name)) {
      throw this.#error(`the member name ${excerpt(name)} is there twice`, start);
    }
    if (this.#peek() !== ascii.COLON) throw this.#expected('":"');
    this.#at++;
    open.name = name;
  }

  #string(): string {
    const text = this.#text;
    let at = this.#at + 1;
    let from = at;
    let unescaped = '';
    while (at < this.#end) {
      const code = text.charCodeAt(at);
      if (code === ascii.QUOTE) {
        this.#at = at + 1;
        return this.#own(unescaped + text.slice(from, at));
      }
      if (code < ascii.SPACE) throw this.#error(`${nameOf(code)} in a string must be written as an escape`, at);
      if (code === ascii.BACKSLASH) {
        unescaped += text.slice(from, at) + this.#escape(at);
        at = from = this.#at;
      } else at++;
    }
    throw this.#error('a string is not closed', at);
  }

  #own(part: string): string {
    return this.#end > MAX_SHARED_LENGTH ? Buffer.from(part).toString() : part;
  }

  /** What the escape at `at` stands for; leaves #at behind it. */
  #escape(at: number): string {
    if (this.#code(at + 1) !== ascii.LOWER_U) {
      const plain = ESCAPES.get(this.#text.charAt(at + 1));
      if (plain === undefined) throw this.#error(`expected ${ESCAPES_IN_WORDS}`, at);
      this.#at = at + 2;
      return plain;
    }
    const unit = this.#unit(at);
    this.#at = at + 6;
    if ((unit & 0xf800) !== 0xd800) return String.fromCharCode(unit);
    if ((unit & 0xfc00) === 0xd800 && this.#text.startsWith('\\u', at + 6)) {
      const low = this.#unit(at + 6);
      this.#at = at + 12;
      if ((low & 0xfc00) === 0xdc00) return String.fromCharCode(unit, low);
    }
    throw this.#error('half of a surrogate pair stands alone', at);
  }

  #unit(at: number): number {
    const digits = this.#text.slice(at + 2, at + 6);
    if (!/^[0-9a-fA-F]{4}$/.test(digits)) throw this.#error('\\u must be followed by four hexadecimal digits', at);
    return Number.parseInt(digits, 16);
  }

  #number(): Int64 | Decimal {
    const start = this.#at;
    const first = this.#code(start) === ascii.MINUS ? start + 1 : start;
    let at = first;
    let whole = 0;
    let code = this.#code(at);
    for (; ascii.isDigit(code); code = this.#code(++at)) whole = whole * 10 + (code - ascii.ZERO);
    if (at === first) throw this.#expected('a digit', at);
    if (at - first > 1 && this.#code(first) === ascii.ZERO) throw this.#error('a number must not begin with 0', first);
    this.#at = at;
    const hasExponent = (code | CASE_BIT) === ascii.LOWER_E;
    if (code !== ascii.POINT && !hasExponent && at - first <= MAX_SAFE_DIGITS) return first > start ? 0 - whole : whole;
    if (code === ascii.POINT) code = this.#digits(at + 1);
    if ((code | CASE_BIT) === ascii.LOWER_E) {
      const sign = this.#code(this.#at + 1);
      this.#digits(this.#at + (sign === ascii.PLUS || sign === ascii.MINUS ? 2 : 1));
    }
    return numberOf(this.#text.slice(start, this.#at));
  }

  /** Passes over one digit or more; returns what stands behind them. */
  #digits(first: number): number {
    let at = first;
    while (ascii.isDigit(this.#code(at))) at++;
    if (at === first) throw this.#expected('a digit', at);
    this.#at = at;
    return this.#code(at);
  }

  #word(word: string): boolean {
    if (!this.#text.startsWith(word, this.#at)) return false;
    this.#at += word.length;
    return true;
  }

  /** Passes over white space; returns what stands behind it. */
  #peek(): number {
    let code = this.#code(this.#at);
    while (code === ascii.SPACE || code === ascii.LINE_FEED || code === ascii.RETURN || code === ascii.TAB) {
      code = this.#code(++this.#at);
    }
    return code;
  }

  /** -1 behind the end: asking charCodeAt for what is not there gives NaN, and slow code. */
  #code(at: number): number {
    return at < this.#end ? this.#text.charCodeAt(at) : -1;
  }

  #expected(what: string, at = this.#at): JsonError {
    const point = this.#text.codePointAt(at);
    return this.#error(`expected ${what}, not ${point === undefined ? 'the end' : nameOf(point)}`, at);
  }

  #error(fault: string, at = this.#at): JsonError {
    return new JsonError(fault, this.#text.slice(0, at));
  }
}

function nameOf(point: number): string {
  return excerpt(String.fromCodePoint(point));
}
