/**
 * The format of the store's file, and of a backup: JSON lines, to be read with less and jq. A line is
 * `{"crc":"1a2b3c4d",` and the rest of an object; `crc` is the CRC-32 of all bytes after its comma up to the line feed.
 *
 *     {"crc":…,"petstore":"store","format":5,"store":"…","batch":41,"at":…,"lastIds":{"pets":57,…}}
 *     {"crc":…,"rows":{"pets":[{…},…]}}              the rows as they were after batch 41, some hundred a line
 *     {"crc":…,"counts":{"pets":57,…},"digest":"…"}  ends them; the digest is the SHA-256 of their lines
 *     {"crc":…,"batch":42,"at":…,"rows":{"pets":[{…}],"orders":[{…},3]}}
 *
 * Then one line for each batch of transactions: rows as they now are, and of those that were removed the id alone. The
 * file gets its name when its first lines up to the digest are durable; each later line is written only after the one
 * before it is durable. So a crash leaves at most one bad line, the last: it lacks its line feed, or sectors of it were
 * never written and read as zeros, which no JSON text holds. Such a line was not acknowledged, and is dropped. Any other
 * bad line is damage.
 */
import { createHash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { crc32 } from 'node:zlib';
import { DamagedError, type Proof } from './engine.ts';
import { COUNTED, type Id, LAST_MOMENT, schemaOf, TABLE_NAMES } from './model.ts';
import { integer, object, objectIn, ofNewerVersion, parseExact, VersionError } from './schema.ts';
import { type Change, type Changes, contradictionIn, type Snapshot, Tables } from './tables.ts';

/** A member that is renamed, removed or takes another value makes it another format. */
const FORMAT = 5;
const CUT_OR_RESTORE =
  'Nothing was changed. Restore a backup; docs/formats.md says how to cut the file there if you have none, and what that risks.';
const ONLY_A_BACKUP = 'Nothing was changed. These lines cannot be cut off: restore a backup.';
/** A line of rows takes no more rows once it is this long: requests wait while a line is made. */
const UNITS_PER_LINE = 32 * 1024;
const MAX_LINE_BYTES = 32 * 1024 * 1024;
const LINE_FEED = 10;
const SECTOR_BYTES = 512;
const CRC_BYTES = '{"crc":"1a2b3c4d",'.length;
/** The number of a batch or an id, or a moment. No number is higher than the last moment. */
const whole = integer(0, LAST_MOMENT);
const lastIdsIn = object({ pets: whole, orders: whole, keys: whole });

export interface Header {
  /** The store's id. */
  readonly store: string;
  /** The last batch before the rows that follow, and its moment. */
  readonly batch: number;
  readonly at: number;
}

const startOf = (body: string | Uint8Array): string => `{"crc":"${crc32(body).toString(16).padStart(8, '0')}",`;

/** The line of an object that is written as JSON. Throws if it would be longer than one that is read. */
export function encodeLine(json: string): Buffer {
  const body = json.slice('{'.length);
  const line = Buffer.from(`${startOf(body)}${body}\n`);
  if (line.length > MAX_LINE_BYTES) throw new Error('these changes are too many for a line of the log');
  return line;
}

/** Whether a line without its line feed is as it was written. */
function isWhole(line: Buffer): boolean {
  return line.length > CRC_BYTES && line.toString('latin1', 0, CRC_BYTES) === startOf(line.subarray(CRC_BYTES));
}

/** The object in a line without its line feed; undefined if that is not as it was written. */
export function decodeLine(line: Buffer): Record<string, unknown> | undefined {
  return isWhole(line) ? objectIn(parseExact(`{${line.toString('utf8', CRC_BYTES)}`)) : undefined;
}

/** The lines of a header and of all rows, and the one that ends them. Returns the proof of the rows. */
export function* snapshotLines(header: Header, { lastIds, texts }: Snapshot): Generator<Buffer, Proof> {
  yield encodeLine(JSON.stringify({ petstore: 'store', format: FORMAT, ...header, lastIds }));
  const hash = createHash('sha256');
  for (const name of TABLE_NAMES) {
    const all = texts[name];
    for (let from = 0, to = 0; from < all.length; from = to) {
      for (let units = 0; to < all.length && units < UNITS_PER_LINE; to++) units += all[to].length;
      const line = encodeLine(`{"rows":{"${name}":[${all.slice(from, to)}]}}`);
      hash.update(line);
      yield line;
    }
  }
  const counts = Object.fromEntries(TABLE_NAMES.map((name) => [name, texts[name].length])) as Proof['counts'];
  const proof: Proof = { counts, digest: hash.digest('hex') };
  yield encodeLine(JSON.stringify(proof));
  return proof;
}

/** The proof of a snapshot, by which two stores are compared. */
export async function prove(header: Header, snapshot: Snapshot): Promise<Proof> {
  for (const lines = snapshotLines(header, snapshot); ; await nextTurn()) {
    const { done, value } = lines.next();
    if (done) return value;
  }
}

export function batchLine(batch: number, at: number, changes: Changes): Buffer {
  const tables = changes.map(({ name, rows }) => {
    const texts = rows.map(({ id, text }) => text ?? (typeof id === 'string' ? JSON.stringify(id) : id));
    return `"${name}":[${texts}]`;
  });
  return encodeLine(`{"batch":${batch},"at":${at},"rows":{${tables}}}`);
}

/** What a line of rows or of a batch changes. */
export function changesIn(line: Record<string, unknown>): Changes {
  return Object.entries(objectIn(line.rows)).map(([table, given]) => {
    const name = TABLE_NAMES.find((one) => one === table);
    if (name === undefined) throw ofNewerVersion(`the table ${table}`);
    if (!Array.isArray(given)) throw new Error('it has something else where a list belongs');
    const { read, readId, json } = schemaOf(name);
    const rows = given.map((one): Change => {
      if (typeof one !== 'object') return { id: readId(one) as Id };
      const row = read(one);
      return { id: row.id, row, text: json(row) };
    });
    return { name, rows };
  });
}

export type LogFile = Awaited<ReturnType<typeof readLog>>;

/** Reads a file front to back into empty tables. Throws a DamagedError with the offset if it is not as written. */
export async function readLog(file: string, pieces: AsyncIterable<Uint8Array>, tables: Tables, advice?: string) {
  /** That of the file, but with the last batch that was read. */
  let header: Header | undefined;
  const hash = createHash('sha256');
  /** True once the digest has come, and was right. */
  let hasAllRows = false;
  /** Where the last good line ends. */
  let length = 0;
  let [lastLine, rest] = [Buffer.alloc(0), Buffer.alloc(0)];

  const damaged = (what: string) =>
    new DamagedError(`${file}, offset ${length}`, what, advice ?? (hasAllRows ? CUT_OR_RESTORE : ONLY_A_BACKUP));

  /** Throws if the line does not belong where it stands. */
  const load = (line: Record<string, unknown>, bytes: Buffer) => {
    if (header === undefined) {
      header = headerIn(line);
      const lastIds = lastIdsIn(line.lastIds);
      for (const name of COUNTED) tables[name].lastId = lastIds[name];
    } else if (hasAllRows) {
      const batch = header.batch + 1;
      if (line.batch !== batch) throw new Error(`batch ${line.batch} stands where ${batch} belongs`);
      tables.apply(changesIn(line));
      header = { ...header, batch, at: whole(line.at) };
    } else if ('digest' in line) {
      hasAllRows = line.digest === hash.digest('hex');
      if (!hasAllRows) throw new Error('the lines before it are not those that were written');
    } else {
      tables.apply(changesIn(line));
      hash.update(bytes);
    }
  };

  for await (const piece of pieces) {
    rest = Buffer.concat([rest, piece]);
    for (;;) {
      const end = rest.indexOf(LINE_FEED) + 1;
      const bytes = rest.subarray(0, end);
      try {
        const line = decodeLine(bytes.subarray(0, -1));
        if (line === undefined) break; // it may be the torn end, which is judged when all is read
        load(line, bytes);
      } catch (error) {
        const { message } = error as Error;
        throw error instanceof VersionError ? new VersionError(`${file}: ${message}`) : damaged(message);
      }
      [lastLine, length, rest] = [bytes, length + end, rest.subarray(end)];
    }
    if (rest.length > MAX_LINE_BYTES) throw damaged('a line is too long, or is not as it was written');
  }
  if (header === undefined) throw damaged('it does not begin with the header of a store');
  if (!hasAllRows) throw damaged('its first lines are not complete, or not as they were written');
  if (rest.length > 0 && !isTorn(rest, length)) throw damaged('a line is not as it was written');
  const contradiction = contradictionIn(tables);
  if (contradiction !== undefined) throw damaged(contradiction);
  /** `tornBytes`: how many bytes follow the last good line. A crash left them. */
  return { header, lastLine, length, tornBytes: rest.length };
}

/**
 * True if a crash can have left these bytes at the end of the file; else they are damage. `offset`: where they begin. A
 * crash cuts a line off, or leaves sectors of it unwritten, which read as zeros. A disk writes a sector as a whole: so
 * the line's part of each sector is all zeros, or has no zero. After the line there is nothing, or zeros.
 */
function isTorn(rest: Buffer, offset: number): boolean {
  const end = rest.indexOf(LINE_FEED) + 1;
  const isWholeButForLineFeed = end === 0 && isWhole(rest.subarray(0, -1));
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
  return { header, tables, proof: await prove(header, tables.snapshot()) };
}

function headerIn({ petstore, format, store, batch, at }: Record<string, unknown>): Header {
  if (petstore !== 'store') throw new Error('it does not begin with the header of a store');
  if (format !== FORMAT) {
    const age = Number(format) > FORMAT ? 'a newer' : 'an older';
    throw new VersionError(`written by ${age} version of petstore, in format ${format}`);
  }
  if (typeof store !== 'string') throw new Error('the header names no store');
  return { store, batch: whole(batch), at: whole(at) };
}
