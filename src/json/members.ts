/** Validates the members of a JSON object, and names all violations at once. */
import { allFaults, excerpt } from '../quoting.ts';
import { type Int64, MAX_INT64, MIN_INT64 } from './int64.ts';
import { Decimal, type JsonValue } from './reader.ts';
import { countCharacters } from './text.ts';

/** All faults of a JSON value that is not the object that was asked for. */
export class InvalidMembers extends Error {
  constructor(violations: readonly string[]) {
    super(allFaults(violations));
  }
}

/**
 * Asks for the members of an object one by one and gathers their faults. A member that was asked for is required,
 * unless a fallback is given. The values that the methods return are valid only once `end` has returned: until then
 * a value may be a stand-in for a member that is missing or wrong.
 */
export class Members {
  readonly #members: Map<string, JsonValue>;
  readonly #known = new Set<string>();
  readonly #violations: string[] = [];
  readonly #remarks: string[] = [];

  /** Throws at once if the value is no object: it has no members to check. */
  constructor(value: JsonValue) {
    if (!(value instanceof Map)) throw new InvalidMembers([`must be a JSON object (got ${kindOf(value)})`]);
    this.#members = value;
  }

  /** A string of `min` to `max` Unicode characters, at least one of them not white space, kept as it was sent. */
  text(name: string, { min, max }: { min: number; max: number }): string {
    const value = this.#ask(name);
    const right = `${min}–${max} characters`;
    if (typeof value !== 'string') return this.#refuse(name, `a string of ${right}`, value, '');
    const length = countCharacters(value);
    if (length < min || length > max) this.#violations.push(`${name}: must be ${right} (got ${length})`);
    else if (!/\P{White_Space}/u.test(value)) this.#violations.push(`${name}: must not be only white space`);
    return value;
  }

  /** `remark`: a complaint about a valid integer. It is named only if the object is refused for another reason too. */
  int64(name: string, remark?: (value: Int64) => string | undefined): Int64 {
    const value = this.#ask(name);
    const isRight = typeof value === 'number' || typeof value === 'bigint';
    const right = value instanceof Decimal ? `a whole number from ${MIN_INT64} to ${MAX_INT64}` : 'a whole number';
    if (!isRight) return this.#refuse(name, right, value, 0);
    const said = remark?.(value);
    if (said !== undefined) this.#remarks.push(said);
    return value;
  }

  /** A small integer that may be left out. */
  integer(name: string, { min, max }: { min: number; max: number }, fallback: number): number {
    const value = this.#ask(name);
    if (value === undefined) return fallback;
    const fits = typeof value === 'number' && value >= min && value <= max;
    return fits ? value : this.#refuse(name, `a whole number from ${min} to ${max}`, value, fallback);
  }

  /** A number above 0, up to 1, with two decimals at most, that may be left out. */
  share(name: string): number | undefined {
    const value = this.#ask(name);
    if (value === undefined) return undefined;
    const share = Number(value instanceof Decimal ? value.text : value);
    const fits = (value instanceof Decimal || value === 1) && share > 0 && share <= 1;
    if (fits && Number.isInteger(Math.round(share * 1e9) / 1e7)) return share;
    return this.#refuse(name, 'a number above 0, up to 1, with two decimals at most', value, 1);
  }

  oneOf<T extends string>(name: string, values: readonly T[], fallback?: T): T {
    const value = this.#ask(name);
    if (value === undefined && fallback !== undefined) return fallback;
    const found = values.find((one) => one === value);
    return found ?? this.#refuse(name, `one of ${values.map((one) => `"${one}"`).join(', ')}`, value, values[0]);
  }

  oneOfNumbers(name: string, values: readonly number[]): number {
    const value = this.#ask(name);
    const found = values.find((one) => one === value);
    return found ?? this.#refuse(name, `one of ${values.join(', ')}`, value, values[0]);
  }

  /** Refuses members that were not asked for (`explained[name]`: why); throws if the object has any fault. */
  end(explained: Readonly<Record<string, string>> = {}): void {
    for (const name of this.#members.keys()) {
      if (this.#known.has(name)) continue;
      if (Object.hasOwn(explained, name)) this.#violations.push(`${name}: ${explained[name]}`);
      else this.#violations.push(`${excerpt(name)}: is unknown; leave it out`);
    }
    if (this.#violations.length > 0) throw new InvalidMembers([...this.#remarks, ...this.#violations]);
  }

  #ask(name: string): JsonValue | undefined {
    this.#known.add(name);
    return this.#members.get(name);
  }

  #refuse<T>(name: string, right: string, value: JsonValue | undefined, standIn: T): T {
    const fault = value === undefined ? `is missing (${right})` : `must be ${right} (got ${kindOf(value)})`;
    this.#violations.push(`${name}: ${fault}`);
    return standIn;
  }
}

function kindOf(value: JsonValue): string {
  if (Array.isArray(value)) return 'an array';
  if (value instanceof Map) return 'an object';
  // As it was sent: that it is a number would not say what is wrong with it.
  if (value instanceof Decimal) return excerpt(value.text).replaceAll('"', '');
  return typeof value === 'string' ? excerpt(value) : String(value);
}
