/**
 * The format of the store's file, and of a backup: JSON lines, to be read with less and jq. A line is
 * `{"crc":"1a2b3c4d",` and the rest of an object; `crc` is the CRC-32 of all bytes after its comma up to the line feed.
 *
 *     {"crc":…,"petstore":"store","format":4,"columns":["pets.id",…],"store":"…","file":7,"batch":41,"at":…,"lastIds":{"pets":57,…}}
 *     {"crc":…,"table":"pets","rows":[{…},…]}        the rows as they were after batch 41, some hundred a line
 *     {"crc":…,"counts":{"pets":57,…},"digest":"…"}  ends the rows; the digest is the SHA-256 of their lines
 *     {"crc":…,"batch":42,"at":…,"clear":["pets"],"pets":[{…}],"gone":{"orders":[3]}}
 *
 * Then one line for each batch of transactions: tables are cleared first, then rows are put as they now are, then the
 * `gone` are removed. The file gets its name when its first lines up to the digest are durable; each later line is
 * written only after the one before it is durable. So a crash leaves at most one bad line, the last: it lacks its line
 * feed, or sectors of it were never written and read as zeros, which no JSON text holds. Such a line was not acknowledged,
 * and is dropped. Any other bad line is damage.
 */
import { createHash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { crc32 } from 'node:zlib';
import { DamagedError, type Proof, VersionError } from './engine.ts';
import { COLUMNS, type Id, LAST_MOMENT, schemaOf, TABLE_NAMES, type TableName } from './model.ts';
import { integer, objectIn, table } from './schema.ts';
import { type Changes, contradictionIn, type Put, type Snapshot, split, type TableChanges, Tables } from './tables.ts';

const FORMAT = 4;
const CUT_OR_RESTORE =
  'Nothing was changed. Restore a backup; docs/operating.md says how to cut the file there if you have none, and what that risks.';
const ONLY_A_BACKUP = 'Nothing was changed. These lines cannot be cut off: restore a backup.';
/** A line of rows takes no more rows once it is this long: requests wait while a line is made. */
const UNITS_PER_LINE = 32 * 1024;
export const MAX_LINE_BYTES = 32 * 1024 * 1024;
const LINE_FEED = 10;
const SECTOR_BYTES = 512;
const CRC_BYTES = '{"crc":"1a2b3c4d",'.length;

export interface Header {
  /** The store's id. */
  readonly store: string;
  /** The number in the file's name; 0: a backup. */
  readonly file: number;
  /** The last batch before the rows that follow, and its moment. */
  readonly batch: number;
  readonly at: number;
}

const startOf = (body: string | Uint8Array): string => `{"crc":"${crc32(body).toString(16).padStart(8, '0')}",`;

/** The line of an object that is written as JSON. */
export function encodeLine(json: string): Buffer {
  const body = json.slice('{'.length);
  return Buffer.from(`${startOf(body)}${body}\n`);
}

/** The object in a line without its line feed; undefined if it is not as it was written. */
export function decodeLine(line: Buffer): Record<string, unknown> | undefined {
  const body = line.subarray(CRC_BYTES);
  if (line.length <= CRC_BYTES || line.toString('latin1', 0, CRC_BYTES) !== startOf(body)) return undefined;
  try {
    return JSON.parse(`{${body.toString('utf8')}`);
  } catch {
    return undefined;
  }
}

/** The lines of a header and of all rows. Returns the proof of the rows. */
export function* snapshotLines({ store, file, batch, at }: Header, snapshot: Snapshot): Generator<Buffer, Proof> {
  const { lastIds } = snapshot;
  const header = { petstore: 'store', format: FORMAT, columns: COLUMNS, store, file, batch, at, lastIds };
  yield encodeLine(JSON.stringify(header));
  return yield* rowLines(snapshot);
}

/** The lines of all rows, and the one that ends them. Returns the proof, by which two stores are compared. */
export function* rowLines({ rows }: Snapshot): Generator<Buffer, Proof> {
  const hash = createHash('sha256');
  const counts: Record<TableName, number> = { pets: 0, orders: 0, categories: 0, keys: 0, replays: 0, usage: 0 };
  for (const name of TABLE_NAMES) {
    const { json } = schemaOf(name);
    const { length } = rows[name];
    for (let next = 0; next < length; ) {
      const texts: string[] = [];
      for (let units = 0; next < length && units < UNITS_PER_LINE; next++) {
        const text = json(rows[name][next]);
        texts.push(text);
        units += text.length;
      }
      const line = encodeLine(`{"table":"${name}","rows":[${texts}]}`);
      hash.update(line);
      yield line;
    }
    counts[name] = length;
  }
  const proof: Proof = { counts, digest: hash.digest('hex') };
  yield encodeLine(JSON.stringify(proof));
  return proof;
}

/** What proves a snapshot. */
export async function prove(snapshot: Snapshot): Promise<Proof> {
  for (const lines = rowLines(snapshot); ; await nextTurn()) {
    const { done, value } = lines.next();
    if (done) return value;
  }
}

export function batchLine(batch: number, at: number, changes: Changes): Buffer {
  let json = `{"batch":${batch},"at":${at}`;
  const clears = changes.filter((one) => one.clears).map(({ name }) => `"${name}"`);
  if (clears.length > 0) json += `,"clear":[${clears}]`;
  const gone: string[] = [];
  for (const { name, rows } of changes) {
    const { texts, removed } = split(rows);
    const { id } = schemaOf(name).columns;
    if (texts.length > 0) json += `,"${name}":[${texts}]`;
    if (removed.length > 0) gone.push(`"${name}":[${removed.map((one) => id.json(one))}]`);
  }
  if (gone.length > 0) json += `,"gone":{${gone}}`;
  return encodeLine(`${json}}`);
}

/** What the line of a batch changes. */
export function changesIn({ batch: _, at: __, clear = [], gone = {}, ...put }: Record<string, unknown>): Changes {
  const cleared = list(clear).map(tableNamed);
  const removed = objectIn(gone, '"gone"');
  const names = new Set([...cleared, ...Object.keys({ ...put, ...removed }).map(tableNamed)]);
  return [...names].map((name): TableChanges => {
    const { read, json, columns } = schemaOf(name);
    const rows = new Map<Id, Put | null>();
    for (const row of listOf(name, put).map(read)) rows.set(row.id, { row, text: json(row) });
    for (const id of listOf(name, removed)) rows.set(columns.id.read(id), null);
    return { name, clears: cleared.includes(name), rows };
  });
}

const listOf = (name: TableName, lists: Record<string, unknown>) => (name in lists ? list(lists[name]) : []);

export interface LogFile {
  /** That of the file, but with the last batch that was read. */
  readonly header: Header;
  /** True if its header names all columns of this version. If not, rows of this version would look damaged to an older one. */
  readonly namesColumns: boolean;
  /** Where the last good line begins and ends. */
  readonly lastLine: number;
  readonly length: number;
  /** How many bytes follow the last good line: a crash left them. */
  readonly tornBytes: number;
}

/** Reads a file front to back into empty tables. Throws a DamagedError with the offset if it is not as written. */
export async function readLog(
  file: string,
  pieces: AsyncIterable<Uint8Array>,
  tables: Tables,
  advice?: string,
): Promise<LogFile> {
  const loader = new Loader(tables);
  let [lastLine, length] = [0, 0];
  let rest: Buffer = Buffer.alloc(0);
  const damaged = (what: string) => {
    const usual = loader.hasAllRows ? CUT_OR_RESTORE : ONLY_A_BACKUP;
    return new DamagedError(`${file}, offset ${length}`, what, advice ?? usual);
  };
  for await (const piece of pieces) {
    rest = Buffer.concat([rest, piece]);
    for (;;) {
      const end = rest.indexOf(LINE_FEED) + 1;
      const line = end === 0 ? undefined : decodeLine(rest.subarray(0, end - 1));
      if (line === undefined) break; // it may be the torn end, which is judged when all is read
      try {
        loader.take(line, rest.subarray(0, end));
      } catch (error) {
        const { message } = error as Error;
        throw error instanceof VersionError ? new VersionError(`${file}: ${message}`) : damaged(message);
      }
      [lastLine, length, rest] = [length, length + end, rest.subarray(end)];
    }
    if (rest.length > MAX_LINE_BYTES) throw damaged('a line is too long, or is not as it was written');
  }
  const { header, hasAllRows, columns } = loader;
  if (header === undefined) throw damaged('it does not begin with the header of a store');
  if (!hasAllRows) throw damaged('its first lines are not complete, or not as they were written');
  if (rest.length > 0 && !isTorn(rest, length)) throw damaged('a line is not as it was written');
  const contradiction = contradictionIn(tables.orders.all(), (id) => tables.pets.get(id) !== undefined);
  if (contradiction !== undefined) throw damaged(contradiction);
  const namesColumns = COLUMNS.every((column) => columns.includes(column));
  return { header, namesColumns, lastLine, length, tornBytes: rest.length };
}

/** Loads tables line by line: the header, the rows, the digest that ends them, then batches. */
class Loader {
  header: Header | undefined;
  columns: readonly unknown[] = [];
  /** True once the digest has come, and was right. */
  hasAllRows = false;
  readonly #tables: Tables;
  readonly #hash = createHash('sha256');

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  /** Throws if the line does not belong where it stands. */
  take(line: Record<string, unknown>, bytes: Buffer): void {
    if (this.header === undefined) {
      this.header = headerIn(line);
      this.columns = columnsIn(line);
      this.#tables.begin(lastIds.read(line.lastIds));
    } else if (this.hasAllRows) {
      const batch = this.header.batch + 1;
      if (line.batch !== batch) throw new Error(`batch ${line.batch} stands where ${batch} belongs`);
      this.#tables.apply(changesIn(line), batch);
      this.header = { ...this.header, batch, at: whole.read(line.at) };
    } else if ('digest' in line) {
      this.hasAllRows = line.digest === this.#hash.digest('hex');
      if (!this.hasAllRows) throw new Error('the lines before it are not those that were written');
    } else {
      const name = tableNamed(line.table);
      this.#tables.load(name, list(line.rows).map(schemaOf(name).read), this.header.batch, bytes.length);
      this.#hash.update(bytes);
    }
  }
}

/**
 * True if a crash can have left these bytes at the end of the file; else they are damage. `offset`: where they begin. A
 * crash cuts a line off, or leaves sectors of it unwritten, which read as zeros. A disk writes a sector as a whole: so
 * the line's part of each sector is all zeros, or has no zero. After the line there is nothing, or zeros.
 */
function isTorn(rest: Buffer, offset: number): boolean {
  const end = rest.indexOf(LINE_FEED) + 1;
  const isWholeButForLineFeed = end === 0 && decodeLine(rest.subarray(0, -1)) !== undefined;
  if (end === 0 && !isWholeButForLineFeed) return true;
  const line = end === 0 ? rest : rest.subarray(0, end);
  if (!line.includes(0) || hasOtherThanZeros(rest.subarray(line.length))) return false;
  for (let from = 0, to = 0; from < line.length; from = to) {
    to = from + SECTOR_BYTES - ((offset + from) % SECTOR_BYTES);
    const sector = line.subarray(from, to);
    if (sector.includes(0) && hasOtherThanZeros(sector)) return false;
  }
  return true;
}

const hasOtherThanZeros = (bytes: Buffer): boolean => bytes.some((byte) => byte !== 0);

/** Reads a backup, or a copy of the file of a store, into new tables. `name`: for messages. */
export async function readBackup(name: string, lines: AsyncIterable<Uint8Array>) {
  const tables = new Tables();
  const advice = 'Nothing was changed. It is no backup, or was changed or cut after it was written.';
  const { header, length, tornBytes } = await readLog(name, lines, tables, advice);
  if (tornBytes > 0) throw new DamagedError(`${name}, offset ${length}`, 'it ends within a line', advice);
  tables.now = () => header.at;
  return { header, tables, proof: await prove(tables.snapshot(header.at)) };
}

function headerIn({ petstore, format, store, file, batch, at }: Record<string, unknown>): Header {
  if (petstore !== 'store') throw new Error('it does not begin with the header of a store');
  if (format !== FORMAT) {
    const age = Number(format) > FORMAT ? 'a newer' : 'an older';
    throw new VersionError(`written by ${age} version of petstore, in format ${format}`);
  }
  if (typeof store !== 'string') throw new Error('the header names no store');
  return { store, file: whole.read(file), batch: whole.read(batch), at: whole.read(at) };
}

/** The columns that a header names; the first versions named none. Throws if this version does not know one. */
function columnsIn({ columns = [] }: Record<string, unknown>): unknown[] {
  const named = list(columns);
  const unknown = named.filter((column) => !COLUMNS.some((one) => one === column));
  if (unknown.length === 0) return named;
  throw new VersionError(`written by a newer version of petstore (it has ${unknown.join(', ')})`);
}

function tableNamed(name: unknown): TableName {
  const known = TABLE_NAMES.find((one) => one === name);
  if (known === undefined) throw new Error('it names a table that is unknown');
  return known;
}

function list(value: unknown): unknown[] {
  if (!Array.isArray(value)) throw new Error('it has something else where a list belongs');
  return value;
}

/** The number of a batch, a file or an id, or a moment. No number is higher than the last moment. */
const whole = integer(0, LAST_MOMENT);
const lastIds = table({ pets: whole, orders: whole, keys: whole });
