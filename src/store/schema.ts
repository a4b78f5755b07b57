/**
 * How a table is described. A row is checked when it is put, by the same rules as when it is read back: so no row is
 * acknowledged that a later start would refuse.
 */
import { type Int64, MAX_INT64, MIN_INT64, parseInt64 } from '../json/int64.ts';

/** Another version has written it: it is not damaged, and stays as it is. */
export class VersionError extends Error {}

/** A column is the function that reads a value from a caller or from JSON. It throws if that is not one of its own. */
export type Column<T> = (value: unknown) => T;

const wrong = (must: string): never => {
  throw new Error(`must be ${must}`);
};

/** Both bounds have 15 digits at most: see `parseExact`. */
export function integer(min: number, max: number): Column<number> {
  return (value) => {
    const fits = typeof value === 'number' && Number.isSafeInteger(value) && value >= min && value <= max;
    return fits ? value : wrong(`an integer from ${min} to ${max}`);
  };
}

/** Databases hold no U+0000 in a text, and UTF-8 no lone surrogate, so no engine takes one. */
const UNFIT = /[\0\p{Surrogate}]/u;

export function text(maxUnits: number, form?: RegExp): Column<string> {
  return (value) => {
    if (typeof value !== 'string' || value.length > maxUnits || UNFIT.test(value))
      return wrong(`a text of ${maxUnits} UTF-16 units at most, without U+0000 and lone surrogates`);
    return form === undefined || form.test(value) ? value : wrong(`a text of the form ${form.source}`);
  };
}

export function oneOf<T extends string>(values: readonly T[]): Column<T> {
  return (value) => values.find((one) => one === value) ?? wrong(`one of ${values}`);
}

/** A number where that is exact, else a bigint: one value has one form. `parseExact` gives long ones as strings. */
export const int64: Column<Int64> = (value) => {
  if (typeof value === 'number' && Number.isSafeInteger(value)) return value;
  if (typeof value === 'string') return parseInt64(value) ?? wrong('a 64-bit integer');
  const fits = typeof value === 'bigint' && value >= MIN_INT64 && value <= MAX_INT64;
  return fits && !Number.isSafeInteger(Number(value))
    ? value
    : wrong('a 64-bit integer: a bigint only where a number is not exact');
};

/** A member that may be left out. */
export function optional<T>(column: Column<T>): Column<T | undefined> {
  return (value) => (value === undefined ? undefined : column(value));
}

export const boolean: Column<boolean> = (value) => (typeof value === 'boolean' ? value : wrong('true or false'));

export function listOf<T>(column: Column<T>): Column<readonly T[]> {
  return (value) => (Array.isArray(value) ? value.map(column) : wrong('a list'));
}

type Columns = Record<string, Column<unknown>>;
type OptionalName<C extends Columns> = { [N in keyof C]: undefined extends ReturnType<C[N]> ? N : never }[keyof C];
type RowOf<C extends Columns> = { readonly [N in Exclude<keyof C, OptionalName<C>>]: ReturnType<C[N]> } & {
  readonly [N in OptionalName<C>]?: ReturnType<C[N]>;
};

/** Reads an object into one with its members in the order of the columns. Throws if one is missing, wrong or unknown. */
export function object<C extends Columns>(columns: C): Column<RowOf<C>> {
  const members = Object.entries(columns);
  return (value) => {
    const given = objectIn(value);
    const row: Record<string, unknown> = {};
    for (const [name, column] of members) {
      try {
        const read = column(given[name]);
        if (read !== undefined) row[name] = read;
      } catch (error) {
        throw error instanceof VersionError ? error : new Error(`${name} ${(error as Error).message}`);
      }
    }
    for (const name in given) if (!Object.hasOwn(columns, name)) throw ofNewerVersion(`the member ${name}`);
    return row as RowOf<C>;
  };
}

/** What was written is whole, by its checksum: so a name that is unknown is one of a newer version. */
export const ofNewerVersion = (what: string) =>
  new VersionError(`written by a newer version of petstore: ${what} is unknown here`);

export function objectIn(value: unknown): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  return wrong('an object');
}

export interface Indexes<R> {
  /** Other values than its id by which a row is found. Each belongs to one row at most. */
  readonly valuesOf: (row: R) => readonly unknown[];
  /** By which lists are filtered. */
  readonly statusOf: (row: R) => string | undefined;
}

export interface Schema<R> extends Indexes<R> {
  readonly read: Column<R>;
  readonly readId: Column<unknown>;
  /** The row as JSON, with all digits of an integer. */
  json(row: R): string;
  /** The row in a text that `json` has made. */
  parse(text: string): R;
}

export function table<C extends Columns & { id: Column<unknown> }>(
  columns: C,
  { valuesOf = () => [], statusOf = () => undefined }: Partial<Indexes<RowOf<C>>> = {},
): Schema<RowOf<C>> {
  const read = object(columns);
  /** What has no long numbers is not checked again. */
  const parse = (text: string): RowOf<C> => (MAY_ROUND.test(text) ? read(parseExact(text)) : JSON.parse(text));
  return { read, readId: columns.id, json, parse, valuesOf, statusOf };
}

/** JSON.stringify takes no bigint. */
function json(row: Record<string, unknown>): string {
  for (const name in row) if (typeof row[name] === 'bigint') return exactJson(row);
  return JSON.stringify(row);
}

function exactJson(row: object): string {
  const text = (value: unknown) => (typeof value === 'bigint' ? value : JSON.stringify(value));
  const members = Object.entries(row).filter(([, value]) => value !== undefined);
  return `{${members.map(([name, value]) => `"${name}":${text(value)}`)}}`;
}

const MAY_ROUND = /\d{16}/;
const STRING_OR_LONG_NUMBER = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d{16,}/g;

/** Like JSON.parse, but integers with 16 digits or more, which that may round, are read as strings. */
export function parseExact(json: string): unknown {
  if (!MAY_ROUND.test(json)) return JSON.parse(json);
  return JSON.parse(json.replace(STRING_OR_LONG_NUMBER, (found) => (found[0] === '"' ? found : `"${found}"`)));
}
