/** Reads the query of a target. */
import { allFaults, excerpt } from '../text.ts';
import { ApiError } from './errors.ts';

/** A query's parameters. Faults are gathered, and `end` throws them all at once. */
export class Query {
  readonly #parameters = new Map<string, string>();
  readonly #faults: string[] = [];

  constructor(query: string, allowed: readonly string[]) {
    for (const part of query.split('&')) {
      if (part === '') continue;
      const cut = part.indexOf('=');
      const name = decode(cut === -1 ? part : part.slice(0, cut));
      const value = decode(cut === -1 ? '' : part.slice(cut + 1));
      if (name === undefined || value === undefined)
        this.#faults.push(`${excerpt(part)}: is not percent-encoded UTF-8`);
      else if (!allowed.includes(name)) this.#faults.push(`${excerpt(name)}: is unknown; ${knownIn(allowed)}`);
      else if (this.#parameters.has(name)) this.#faults.push(`${name}: is given twice`);
      else this.#parameters.set(name, value);
    }
  }

  /** The parameter, converted; undefined if it was not sent or is wrong (`convert` gave undefined). */
  read<T>(name: string, convert: (text: string) => T | undefined, mustBe: string): T | undefined {
    const text = this.#parameters.get(name);
    const value = text === undefined ? undefined : convert(text);
    if (text !== undefined && value === undefined) this.#faults.push(`${name}: must be ${mustBe}`);
    return value;
  }

  /** The `limit` parameter: from 1 to `max`. */
  readLimit(max: number, fallback: number): number {
    const convert = (text: string) => (/^[1-9]\d{0,5}$/.test(text) && Number(text) <= max ? Number(text) : undefined);
    return this.read('limit', convert, `a whole number from 1 to ${max}`) ?? fallback;
  }

  end(): void {
    if (this.#faults.length > 0) throw new ApiError('invalid_parameter', allFaults(this.#faults));
  }
}

const knownIn = (allowed: readonly string[]): string =>
  allowed.length === 0 ? 'no parameters are taken here' : `known are: ${allowed.join(', ')}`;

/** Refuses a query: the endpoint has no parameters. */
export function refuseParameters(query: string): void {
  if (query !== '') new Query(query, []).end();
}

function decode(text: string): string | undefined {
  if (!/[%+]/.test(text)) return text;
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}
