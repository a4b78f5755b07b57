/** Reads the query of a target. */
import { allFaults, excerpt } from '../text.ts';
import { ApiError } from './errors.ts';

/** One parameter that an endpoint knows. */
export interface Parameter<T> {
  readonly name: string;
  /** For the message: what its text must be. */
  readonly mustBe: string;
  /** Undefined if the text is wrong. */
  parse(text: string): T | undefined;
}

export const limitUpTo = (max: number): Parameter<number> => ({
  name: 'limit',
  mustBe: `a whole number from 1 to ${max}`,
  parse: (text) => (/^[1-9]\d{0,5}$/.test(text) && Number(text) <= max ? Number(text) : undefined),
});

export const oneOf = <T extends string>(name: string, values: readonly T[]): Parameter<T> => ({
  name,
  mustBe: `one of ${values.join(', ')}`,
  parse: (text) => values.find((one) => one === text),
});

/** A query's parameters. Faults are gathered, and `end` throws them all at once. */
export class Query {
  readonly #names: string[] = [];
  readonly #values: string[] = [];
  readonly #faults: string[] = [];

  constructor(query: string, allowed: readonly string[]) {
    for (let at = 0; at < query.length; ) {
      const next = query.indexOf('&', at);
      const end = next === -1 ? query.length : next;
      if (end > at) this.#add(query.slice(at, end), allowed);
      at = end + 1;
    }
  }

  /** Undefined if the parameter was not sent or is wrong. */
  read<T>({ name, mustBe, parse }: Parameter<T>): T | undefined {
    const at = this.#names.indexOf(name);
    if (at === -1) return undefined;
    const value = parse(this.#values[at]);
    if (value === undefined) this.#faults.push(`${name}: must be ${mustBe}`);
    return value;
  }

  end(): void {
    if (this.#faults.length > 0) throw new ApiError('invalid_parameter', allFaults(this.#faults));
  }

  #add(part: string, allowed: readonly string[]): void {
    const cut = part.indexOf('=');
    const name = decode(cut === -1 ? part : part.slice(0, cut));
    const value = decode(cut === -1 ? '' : part.slice(cut + 1));
    if (name === undefined || value === undefined) this.#faults.push(`${excerpt(part)}: is not percent-encoded UTF-8`);
    else if (!allowed.includes(name)) this.#faults.push(`${excerpt(name)}: is unknown; ${knownIn(allowed)}`);
    else if (this.#names.includes(name)) this.#faults.push(`${name}: is given twice`);
    else {
      this.#names.push(name);
      this.#values.push(value);
    }
  }
}

const knownIn = (allowed: readonly string[]): string =>
  allowed.length === 0 ? 'no parameters are taken here' : `known are: ${allowed.join(', ')}`;

/** Refuses a query: the endpoint has no parameters. */
export function refuseParameters(query: string): void {
  if (query !== '') new Query(query, []).end();
}

function decode(text: string): string | undefined {
  if (!text.includes('%') && !text.includes('+')) return text;
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}
