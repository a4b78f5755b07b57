/**
 * How a table is described, once for both engines. A column says how a member of a row is checked, and how it is written
 * as JSON. A row is checked when it is put, by the same rules as when it is read back: so no row is acknowledged that a
 * later start would refuse.
 */
import { type Int64, MAX_INT64, MIN_INT64, parseInt64 } from '../json/int64.ts';

export interface Column<T> {
  /** What its values are, for an engine that has types of its own. */
  readonly kind: 'boolean' | 'integer' | 'text' | 'list';
  /** The value from a caller, from JSON or from the database. Throws if it is not one of this column. */
  read(value: unknown): T;
  json(value: T): string;
  /** Of a list of objects, the names of their members. */
  readonly names?: readonly string[];
}

const wrong = (must: string): never => {
  throw new Error(`must be ${must}`);
};

export function integer(min: number, max: number): Column<number> {
  const read = (value: unknown): number =>
    typeof value === 'number' && Number.isSafeInteger(value) && value >= min && value <= max
      ? value
      : wrong(`an integer from ${min} to ${max}`);
  return { kind: 'integer', read, json: String };
}

export const bool: Column<boolean> = {
  kind: 'boolean',
  read: (value) => (typeof value === 'boolean' ? value : wrong('true or false')),
  json: String,
};

/** Databases hold no U+0000 in a text, and UTF-8 no lone surrogate, so no engine takes one. */
const UNFIT = /[\0\p{Surrogate}]/u;

export function text(maxUnits: number): Column<string> {
  const read = (value: unknown): string =>
    typeof value === 'string' && value.length <= maxUnits && !UNFIT.test(value)
      ? value
      : wrong(`a text of ${maxUnits} UTF-16 units at most, without U+0000 and lone surrogates`);
  return { kind: 'text', read, json: JSON.stringify };
}

export function enumOf<T extends string>(values: readonly T[]): Column<T> {
  const read = (value: unknown): T => values.find((one) => one === value) ?? wrong(`one of ${values}`);
  return { kind: 'text', read, json: (value) => `"${value}"` };
}

/**
 * A number where that is exact, else a bigint: one value has one form, by which a Map finds it. In JSON a bigint is a
 * string, since JSON.parse would round it.
 */
export const int64: Column<Int64> = {
  kind: 'integer',
  read(value) {
    if (typeof value === 'number' && Number.isSafeInteger(value)) return value;
    const big = typeof value === 'string' ? parseInt64(value) : value;
    const fits = typeof big === 'bigint' && big >= MIN_INT64 && big <= MAX_INT64 && !Number.isSafeInteger(Number(big));
    return fits ? big : wrong('a 64-bit integer: a bigint only where a number is not exact');
  },
  json: (value) => (typeof value === 'bigint' ? `"${value}"` : String(value)),
};

/** A member that may be left out. */
export function optional<T>(column: Column<T>): Column<T | undefined> {
  return {
    kind: column.kind,
    read: (value) => (value === undefined ? undefined : column.read(value)),
    json: (value) => column.json(value as T),
  };
}

/** A row of these columns. A member that may be undefined may be missing. */
type RowOf<C> = {
  readonly [N in keyof C as undefined extends ValueOf<C[N]> ? never : N]: ValueOf<C[N]>;
} & {
  readonly [N in keyof C as undefined extends ValueOf<C[N]> ? N : never]?: ValueOf<C[N]>;
};
type ValueOf<C> = C extends Column<infer T> ? T : never;

export interface TableSchema<R extends object> {
  /** In the order of the members of a row, which is part of digests and tags. */
  readonly columns: { readonly [N in Extract<keyof R, string>]: Column<R[N]> };
  /** The names of the columns, with those of the objects in lists: `secrets`, `secrets.digest`. */
  readonly names: readonly string[];
  /** Checks an object, which becomes the row itself. Throws if a member is missing, wrong or unknown. */
  read(given: unknown): R;
  json(row: R): string;
}

export function table<C extends Record<string, Column<unknown>>>(columns: C): TableSchema<RowOf<C>> {
  const members = Object.entries(columns).map(([name, column], index) => {
    return { name, column, prefix: `${index === 0 ? '{' : ','}"${name}":` }; // for speed, the prefix is made once
  });
  return {
    columns: columns as TableSchema<RowOf<C>>['columns'],
    names: members.flatMap(({ name, column }) => [name, ...(column.names ?? []).map((inner) => `${name}.${inner}`)]),
    read(given) {
      const row = objectIn(given, 'a row');
      for (const { name, column } of members) {
        try {
          const given = row[name];
          const value = column.read(given);
          if (value !== given) row[name] = value;
        } catch (error) {
          throw new Error(`${name} ${(error as Error).message}`);
        }
      }
      for (const name in row) if (!Object.hasOwn(columns, name)) throw new Error(`${name} is unknown`);
      return row as RowOf<C>;
    },
    json(row) {
      let json = '';
      for (const { name, column, prefix } of members) {
        const value = (row as Record<string, unknown>)[name];
        if (value !== undefined) json += prefix + column.json(value);
      }
      return `${json}}`;
    },
  };
}

/** A list of objects, which are described as the rows of a table are. */
export function listOf<R extends object>(schema: TableSchema<R>): Column<readonly R[]> {
  const read = (value: unknown): R[] => (Array.isArray(value) ? value.map(schema.read) : wrong('a list'));
  return { kind: 'list', read, json: (value) => `[${value.map(schema.json)}]`, names: schema.names };
}

/** The object that a value is. `what`: for the message if it is none. */
export function objectIn(value: unknown, what: string): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new Error(`${what} must be an object`);
}
