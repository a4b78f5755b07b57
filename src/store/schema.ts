/**
 * How a table is described: once, for both engines. A column says how a member of a row is checked, and how it is
 * written as JSON and in SQL. A row is checked when it is put and again when it is read back, so a row that no start
 * would accept is never acknowledged.
 */
import { type Int64, MAX_INT64, MIN_INT64, parseInt64 } from '../json/int64.ts';

export interface Column<T> {
  /** The type of its column in PostgreSQL. */
  readonly sql: string;
  /** The value from a caller, or from JSON. Throws if it is not one of this column. */
  read(value: unknown): T;
  /** The value from the driver `pg`, which gives 64-bit integers as text. */
  fromSql(value: unknown): T;
  /** The value as a parameter of a statement. */
  toSql(value: T): unknown;
  json(value: T): string;
}

const wrong = (must: string): never => {
  throw new Error(`must be ${must}`);
};

export function integer(min: number, max: number): Column<number> {
  const read = (value: unknown): number =>
    Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max
      ? (value as number)
      : wrong(`an integer from ${min} to ${max}`);
  return { sql: 'bigint', read, fromSql: (value) => read(Number(value)), toSql: String, json: String };
}

/** PostgreSQL's text holds no U+0000, and UTF-8 no lone surrogate, so neither engine takes one. */
const UNFIT = /[\0\p{Surrogate}]/u;

export function text(maxUnits: number): Column<string> {
  const read = (value: unknown): string =>
    typeof value === 'string' && value.length <= maxUnits && !UNFIT.test(value)
      ? value
      : wrong(`a text of ${maxUnits} UTF-16 units at most, without U+0000 and lone surrogates`);
  return { sql: 'text COLLATE "C"', read, fromSql: read, toSql: (value) => value, json: JSON.stringify };
}

export function oneOf<T extends string>(values: readonly T[]): Column<T> {
  const read = (value: unknown): T => (values.includes(value as T) ? (value as T) : wrong(`one of ${values}`));
  return { sql: 'text COLLATE "C"', read, fromSql: read, toSql: (value) => value, json: (value) => `"${value}"` };
}

/**
 * Exact: a number where that is safe, else a bigint, and never both for one value, so that a Map finds it. JSON.parse
 * would round a large number, so JSON has those as text.
 */
export const int64: Column<Int64> = {
  sql: 'bigint',
  read(value) {
    if (Number.isSafeInteger(value)) return value as number;
    const big = typeof value === 'string' ? parseInt64(value) : value;
    const fits = typeof big === 'bigint' && big >= MIN_INT64 && big <= MAX_INT64 && !Number.isSafeInteger(Number(big));
    return fits ? big : wrong('a 64-bit integer: a bigint only where a number is not exact');
  },
  fromSql: (value) => parseInt64(value as string) ?? wrong('a 64-bit integer'),
  toSql: String,
  json: (value) => (typeof value === 'bigint' ? `"${value}"` : String(value)),
};

/** A value with a structure of its own: `read` checks it, and returns it with its members in a fixed order. */
export function structured<T>(read: (value: unknown) => T): Column<T> {
  return { sql: 'jsonb', read, fromSql: read, toSql: JSON.stringify, json: JSON.stringify };
}

/** A member that may be left out. */
export function optional<T>(column: Column<T>): Column<T | undefined> {
  return {
    sql: column.sql,
    read: (value) => (value === undefined ? undefined : column.read(value)),
    fromSql: (value) => (value === null ? undefined : column.fromSql(value)),
    toSql: (value) => (value === undefined ? null : column.toSql(value)),
    json: (value) => column.json(value as T),
  };
}

export interface TableSchema<R extends object> {
  /** In the order of the members of a row, which is part of digests and tags. */
  readonly columns: { readonly [K in keyof R]-?: Column<R[K]> };
  /** A new row of the members of another, in the order of the columns. Throws if one is missing, wrong or unknown. */
  read(row: object): R;
  /** The same for an object that JSON.parse has just made, which becomes the row itself: a start reads many. */
  adopt(parsed: unknown): R;
  fromSql(row: Record<string, unknown>): R;
  json(row: R): string;
}

export function table<R extends object>(columns: TableSchema<R>['columns']): TableSchema<R> {
  const all = Object.entries(columns) as [keyof R & string, Column<unknown>][];
  const members = all.map(([name, column], at) => ({ name, column, before: `${at === 0 ? '{' : ','}"${name}":` }));
  const rowOf = (take: (name: keyof R & string, column: Column<unknown>) => unknown): R => {
    const row = {} as R;
    for (const { name, column } of members) {
      const value = take(name, column);
      if (value !== undefined) row[name] = value as R[typeof name];
    }
    return row;
  };
  const checked = (name: keyof R & string, column: Column<unknown>, value: unknown): unknown => {
    try {
      return column.read(value);
    } catch (error) {
      throw new Error(`${name} ${(error as Error).message}`);
    }
  };
  const refuseUnknown = (row: object): void => {
    for (const name in row) {
      if (!Object.hasOwn(columns, name) && row[name as never] !== undefined) throw new Error(`${name} is unknown`);
    }
  };
  return {
    columns,
    read(given) {
      refuseUnknown(given);
      return rowOf((name, column) => checked(name, column, (given as R)[name]));
    },
    adopt(parsed) {
      if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) throw new Error('a row is no object');
      const row = parsed as R;
      let unknown = 0;
      for (const _ in row) unknown++;
      for (const { name, column } of members) {
        const value = row[name];
        if (value !== undefined) unknown--;
        const read = checked(name, column, value) as R[typeof name];
        if (read !== value) row[name] = read;
      }
      if (unknown !== 0) refuseUnknown(row);
      return row;
    },
    fromSql: (given) => rowOf((name, column) => column.fromSql(given[name])),
    json(row) {
      let json = '';
      for (const { name, column, before } of members) {
        const value = row[name];
        if (value !== undefined) json += before + column.json(value);
      }
      return `${json}}`;
    },
  };
}
