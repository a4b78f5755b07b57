/**
 * The format of the store's file, and of a backup: JSON lines, to be read with less and jq. A line is
 * `{"crc":"1a2b3c4d",` and the rest of an object; `crc` is the CRC-32 of all bytes after its comma up to the line feed.
 *
 *     {"crc":…,"petstore":"store","format":4,"store":"…","file":7,"batch":41,"at":…,"lastIds":{"pets":57,…}}
 *     {"crc":…,"table":"pets","rows":[{…},…]}        the rows as they were after batch 41, some hundred a line
 *     {"crc":…,"counts":{"pets":57,…},"digest":"…"}  ends them; the digest is the SHA-256 of all these lines
 *     {"crc":…,"batch":42,"at":…,"clear":["pets"],"pets":[{…}],"gone":{"orders":[3]}}
 *
 * Then one line for each batch of transactions: tables are cleared first, then rows are put as they now are, then the
 * `gone` are removed. The file gets its name when its first lines up to the digest are durable; each later line is
 * written only after the one before it is durable. So a crash leaves at most one bad line, the last: it lacks its line
 * feed, or sectors of it were never written and read as zeros, which no JSON text holds. Such a line was not
 * acknowledged, and is dropped. Any other bad line is damage.
 */
import { createHash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { crc32 } from 'node:zlib';
import { DamagedError, type Proof, VersionError } from '../engine.ts';
import { type Id, LAST_MOMENT, schemaOf, TABLE_NAMES, type TableName } from '../model.ts';
import { integer, objectIn } from '../schema.ts';
import { type Changes, contradictionIn, type Snapshot, type TableChanges, Tables } from '../tables.ts';

const FORMAT = 4;
const ONLY_A_BACKUP = 'Nothing was changed. These lines cannot be cut off: restore a backup.';
/** A line of rows ends behind the row that brings it to this length: requests wait while one is made. */
const UNITS_PER_LINE = 32 * 1024;
export const MAX_LINE_BYTES = 32 * 1024 * 1024;
const LINE_FEED = 10;
const SECTOR_BYTES = 512;
/** The length of `{"crc":"1a2b3c4d",` */
const CRC_BYTES = 18;

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
export const encodeLine = (body: string): Buffer => Buffer.from(`${startOf(body)}${body}\n`);

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

export function* snapshotLines({ store, file, batch, at }: Header, snapshot: Snapshot): Generator<Buffer, Proof> {
  const { lastIds } = snapshot; // the highest ids that were ever given: their rows may be gone
  yield encodeLine(JSON.stringify({ petstore: 'store', format: FORMAT, store, file, batch, at, lastIds }).slice(1));
  return yield* rowLines(snapshot);
}

/** All rows, line by line. Returns what they are proved by: the rows and their order. */
export function* rowLines({ rows }: Snapshot): Generator<Buffer, Proof> {
  const hash = createHash('sha256');
  for (const name of TABLE_NAMES) {
    const { json } = schemaOf(name);
    let [texts, missing, units]: [string[], number, number] = [[], rows[name].length, 0];
    for (const row of rows[name]) {
      const text = json(row);
      texts.push(text);
      units += text.length;
      missing--;
      if (units < UNITS_PER_LINE && missing > 0) continue;
      const line = encodeLine(`"table":"${name}","rows":[${texts}]}`);
      hash.update(line);
      yield line;
      [texts, units] = [[], 0];
    }
  }
  const proof = proofOf((name) => rows[name].length, hash.digest('hex'));
  yield proofLine(proof);
  return proof;
}

function proofOf(count: (name: TableName) => number, digest: string): Proof {
  return { counts: Object.fromEntries(TABLE_NAMES.map((name) => [name, count(name)])) as Proof['counts'], digest };
}
const proofLine = (proof: Proof): Buffer => encodeLine(JSON.stringify(proof).slice(1));

/** What a snapshot is proved by. */
export async function prove(snapshot: Snapshot): Promise<Proof> {
  for (const lines = rowLines(snapshot); ; await nextTurn()) {
    const { done, value } = lines.next();
    if (done) return value;
  }
}

export function batchLine(batch: number, at: number, changes: Changes): Buffer {
  let body = `"batch":${batch},"at":${at}`;
  const clears = changes.filter((table) => table.clears).map(({ name }) => `"${name}"`);
  if (clears.length > 0) body += `,"clear":[${clears}]`;
  const gone: string[] = [];
  for (const { name, rows, texts, deleted } of changes) {
    const schema = schemaOf(name);
    if (rows.length > 0) body += `,"${name}":[${texts ?? rows.map(schema.json)}]`;
    if (deleted.length > 0) gone.push(`"${name}":[${deleted.map((id) => schema.columns.id.json(id as never))}]`);
  }
  if (gone.length > 0) body += `,"gone":{${gone}}`;
  return encodeLine(`${body}}`);
}

/** What a line with a batch changes. */
export function changesIn({ batch: _, at: __, clear = [], gone = {}, ...put }: Record<string, unknown>): Changes {
  const cleared = list(clear).map(tableNamed);
  const removed = objectIn(gone, '"gone"') as Record<string, unknown>;
  const names = new Set([...cleared, ...Object.keys({ ...put, ...removed }).map(tableNamed)]);
  return [...names].map((name): TableChanges => {
    const { read, columns } = schemaOf(name);
    const deleted = listOf(name, removed).map(columns.id.read as (id: unknown) => Id);
    return { name, clears: cleared.includes(name), rows: listOf(name, put).map(read), deleted };
  });
}

const listOf = (name: TableName, lists: Record<string, unknown>) => (name in lists ? list(lists[name]) : []);

export interface LogFile {
  /** That of the file, but with the last batch that was read. */
  readonly header: Header;
  /** Where the last good line begins and ends. */
  readonly lastLine: number;
  readonly length: number;
  /** The bytes behind it, which a crash left. */
  readonly tornBytes: number;
}

/** Reads a file front to back into empty tables. Throws a DamagedError with the offset if it is not as it was written. */
export async function readLog(
  file: string,
  pieces: AsyncIterable<Uint8Array>,
  tables: Tables,
  advice?: string,
): Promise<LogFile> {
  const lines = new LineReader(tables);
  let [lastLine, length, isBad] = [0, 0, false];
  let rest: Buffer = Buffer.alloc(0);
  const damaged = (what: string) =>
    new DamagedError(`${file}, offset ${length}`, what, advice ?? (lines.hasAllRows ? undefined : ONLY_A_BACKUP));
  for await (const piece of pieces) {
    rest = Buffer.concat([rest, piece]);
    for (let end = rest.indexOf(LINE_FEED) + 1; end > 0 && !isBad; end = rest.indexOf(LINE_FEED) + 1) {
      try {
        isBad = !lines.take(rest.subarray(0, end));
      } catch (error) {
        const { message } = error as Error;
        throw error instanceof VersionError ? new VersionError(`${file}: ${message}`) : damaged(message);
      }
      if (isBad) break; // it may be the torn end, which is judged when all is read
      [lastLine, length, rest] = [length, length + end, rest.subarray(end)];
    }
    if (rest.length > MAX_LINE_BYTES) throw damaged('a line is too long, or is not as it was written');
  }
  const { header } = lines;
  if (header === undefined) throw damaged('it does not begin with the header of a store');
  if (!lines.hasAllRows) throw damaged('its first lines are not complete, or not as they were written');
  if (rest.length > 0 && !isTorn(rest, length)) throw damaged('a line is not as it was written');
  const contradiction = contradictionIn(tables.orders.all(), (id) => tables.pets.get(id) !== undefined);
  if (contradiction !== undefined) throw damaged(contradiction);
  return { header, lastLine, length, tornBytes: rest.length };
}

/** Reads a backup, or a copy of the file of a store, into new tables. `name`: for messages. */
export async function readBackup(name: string, lines: AsyncIterable<Uint8Array>) {
  const tables = new Tables();
  const advice = 'Nothing was changed. It is no backup, or was changed or cut after it was written.';
  const { header, length, tornBytes } = await readLog(name, lines, tables, advice);
  if (tornBytes > 0) throw new DamagedError(`${name}, offset ${length}`, 'it ends within a line', advice);
  const snapshot = tables.snapshot(header.at);
  return { header, snapshot, proof: await prove(snapshot) };
}

/** Takes the lines of a file, one after the other, and throws if one does not belong where it stands. */
class LineReader {
  header: Header | undefined;
  /** True after the line that ends the rows. */
  hasAllRows = false;
  readonly #tables: Tables;
  readonly #hash = createHash('sha256');

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  /** False if the line is not as it was written. */
  take(bytes: Buffer): boolean {
    const line = decodeLine(bytes.subarray(0, -1));
    if (line === undefined) return false;
    if (this.header === undefined) this.header = this.#begin(line);
    else if (this.hasAllRows) this.header = this.#apply(line, this.header);
    else if ('digest' in line) this.#end(bytes);
    else this.#load(line, bytes, this.header);
    return true;
  }

  #begin(line: Record<string, unknown>): Header {
    const { petstore, format, store, file, batch, at, lastIds } = line;
    if (petstore !== 'store') throw new Error('it does not begin with the header of a store');
    if (format !== FORMAT) {
      const age = Number(format) > FORMAT ? 'a newer' : 'an older';
      throw new VersionError(`the store was written by ${age} version of petstore, in format ${format}`);
    }
    if (typeof store !== 'string') throw new Error('the header names no store');
    const { pets, orders, keys } = objectIn(lastIds, '"lastIds"') as Snapshot['lastIds'];
    this.#tables.begin({ pets: count(pets), orders: count(orders), keys: count(keys) });
    return { store, file: count(file), batch: count(batch), at: count(at) };
  }

  #load({ table, rows }: Record<string, unknown>, bytes: Buffer, { batch }: Header): void {
    const name = tableNamed(table);
    const read = list(rows).map(schemaOf(name).read);
    this.#hash.update(bytes);
    this.#tables.apply([{ name, clears: false, rows: read, bytes: bytes.length, deleted: [] }], batch);
  }

  #end(bytes: Buffer): void {
    const proof = proofOf((name) => this.#tables[name].size, this.#hash.digest('hex'));
    this.hasAllRows = proofLine(proof).equals(bytes);
    if (!this.hasAllRows) throw new Error('the lines before it are not those that were written');
  }

  #apply(line: Record<string, unknown>, header: Header): Header {
    const { batch, at } = line;
    if (batch !== header.batch + 1) throw new Error(`batch ${batch} stands where ${header.batch + 1} belongs`);
    this.#tables.apply(changesIn(line), batch);
    return { ...header, batch, at: count(at) };
  }
}

function tableNamed(name: unknown): TableName {
  if (!TABLE_NAMES.includes(name as TableName)) throw new Error('it names a table that is unknown');
  return name as TableName;
}

function list(value: unknown): unknown[] {
  if (!Array.isArray(value)) throw new Error('it has something else where a list belongs');
  return value;
}

/** Reads the number of a batch, a file or an id, or a moment: none is beyond the last moment of RFC 3339. */
const count = integer(0, LAST_MOMENT).read;

/** True if a crash can have left these bytes behind the last good line, which ends at `offset`. */
function isTorn(rest: Buffer, offset: number): boolean {
  const end = rest.indexOf(LINE_FEED);
  if (end !== -1)
    return isPartlyUnwritten(rest.subarray(0, end + 1), offset) && rest.subarray(end + 1).every((byte) => byte === 0);
  // A complete line with another byte in place of its line feed was changed, not cut off.
  return decodeLine(rest.subarray(0, -1)) === undefined || isPartlyUnwritten(rest, offset);
}

/** True if there is a zero, and each zero is in a sector whose part behind `offset` is all zeros. */
function isPartlyUnwritten(rest: Buffer, offset: number): boolean {
  let isPartly = false;
  for (let from = 0; from < rest.length; from += SECTOR_BYTES - ((offset + from) % SECTOR_BYTES)) {
    const sector = rest.subarray(from, from + SECTOR_BYTES - ((offset + from) % SECTOR_BYTES));
    if (!sector.includes(0)) continue;
    if (sector.some((byte) => byte !== 0)) return false;
    isPartly = true;
  }
  return isPartly;
}
