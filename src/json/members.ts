import type { Int64 } from '../store/model.ts';
import { MAX_INT64, MIN_INT64 } from './int64.ts';
import { Decimal, type JsonValue } from './reader.ts';
import { countCharacters, excerpt } from './text.ts';

/** More than any honest mistake comes to; what is beyond is counted, not named. */
export const MAX_VIOLATIONS_NAMED = 20;

/** Every way in which a JSON value is not the object that was asked for. */
export class InvalidMembers extends Error {
  readonly violations: readonly string[];

  constructor(violations: readonly string[]) {
    const more = violations.length - MAX_VIOLATIONS_NAMED;
    super(violations.slice(0, MAX_VIOLATIONS_NAMED).join('; ') + (more > 0 ? `; and ${more} more` : ''));
    this.violations = violations;
  }
}

/**
 * Takes the members of an object one by one and gathers everything that is wrong with them. A member that was
 * asked for is required, unless a fallback is given. What the methods return holds only once `end` has returned:
 * until then it may stand for a member that is missing or wrong.
 */
export class Members {
  readonly #members: Map<string, JsonValue>;
  readonly #known = new Set<string>();
  readonly #violations: string[] = [];
  readonly #remarks: string[] = [];

  /** Throws at once for what is no object: no member can be asked of it. */
  constructor(value: JsonValue) {
    if (!(value instanceof Map)) throw new InvalidMembers([`must be a JSON object, not ${kindOf(value)}`]);
    this.#members = value;
  }

  /** A string of `min` to `max` Unicode characters, at least one of them not white space, kept as it was sent. */
  text(name: string, { min, max }: { min: number; max: number }): string {
    const value = this.#take(name);
    let sent: string | undefined;
    if (typeof value === 'string') {
      const length = countCharacters(value);
      const fits = length >= min && length <= max;
      if (fits && /\P{White_Space}/u.test(value)) return value;
      sent = fits ? 'only white space' : `of ${length}`;
    }
    this.#refuse(name, `a string of ${min} to ${max} characters`, value, sent);
    return '';
  }

  /** `remark`: what may be said against an integer beside other violations; alone it refuses nothing. */
  int64(name: string, remark?: (value: Int64) => string | undefined): Int64 {
    const value = this.#take(name);
    if (typeof value === 'number' || typeof value === 'bigint') {
      const said = remark?.(value);
      if (said !== undefined) this.#remarks.push(said);
      return value;
    }
    // Shown as it was written: "not a number" would not be true of 1.5, nor "1.5" that it was a string.
    const sent = value instanceof Decimal ? excerpt(value.text).replaceAll('"', '') : undefined;
    this.#refuse(name, `an integer from ${MIN_INT64} to ${MAX_INT64}`, value, sent);
    return 0;
  }

  oneOf<T extends string>(name: string, values: readonly T[], fallback?: T): T {
    const value = this.#take(name);
    if (value === undefined && fallback !== undefined) return fallback;
    const found = values.find((one) => one === value);
    if (found !== undefined) return found;
    const quoted = values.map((one) => `"${one}"`).join(', ');
    this.#refuse(name, `one of ${quoted}`, value, typeof value === 'string' ? excerpt(value) : undefined);
    return values[0];
  }

  /** Refuses what was not asked for, with `explained[name]` where there is more to say; throws if anything is wrong. */
  end(explained: Readonly<Record<string, string>> = {}): void {
    for (const name of this.#members.keys()) {
      if (this.#known.has(name)) continue;
      if (Object.hasOwn(explained, name)) this.#violations.push(`${name}: ${explained[name]}`);
      else this.#violations.push(`${excerpt(name)}: is unknown; leave it out`);
    }
    if (this.#violations.length > 0) throw new InvalidMembers([...this.#remarks, ...this.#violations]);
  }

  #take(name: string): JsonValue | undefined {
    this.#known.add(name);
    return this.#members.get(name);
  }

  #refuse(name: string, right: string, value: JsonValue | undefined, sent?: string): void {
    const fault = value === undefined ? `is missing (${right})` : `must be ${right}, not ${sent ?? kindOf(value)}`;
    this.#violations.push(`${name}: ${fault}`);
  }
}

function kindOf(value: JsonValue): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  if (value instanceof Map) return 'an object';
  if (typeof value === 'string') return 'a string';
  if (typeof value === 'boolean') return String(value);
  return 'a number';
}
