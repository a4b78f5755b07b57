/**
 * The tables of a store, and its snapshots: the whole state as rows, so that nobody has to read the log from its
 * beginning, and its beginning can go. One schema, one store.
 */
import { randomBytes } from 'node:crypto';
import { decode, type Entry, encodeState, loaderOf, VersionError } from '../store/change-json.ts';
import { DamagedError, inPieces, isSealed, parsed, SEAL_BYTES, seal } from '../store/file/format.ts';
import type { State } from '../store/state.ts';
import { type Link, LinkError, type Row } from './link.ts';
import { BEGIN_READING, FENCE_SLOT, SERVER } from './sql.ts';

/** The version of the log's format. Raised when the log may hold changes that older programs do not know. */
const FORMAT = 2;
const OLDEST_VERSION = 150_000;

/** No second index on `limits`, and room in each page: every update stays in its page (HOT). */
const TABLES = `
CREATE TABLE meta (one int PRIMARY KEY CHECK (one = 1), store text NOT NULL, format int NOT NULL);
CREATE TABLE head (one int PRIMARY KEY CHECK (one = 1), batch bigint NOT NULL, id text NOT NULL) WITH (fillfactor = 10);
CREATE TABLE log (batch bigint PRIMARY KEY, id text NOT NULL, body text NOT NULL);
CREATE TABLE limits (slot int PRIMARY KEY, per_minute int NOT NULL, per_day int NOT NULL,
  minute_used int NOT NULL DEFAULT 0, day_used int NOT NULL DEFAULT 0,
  strikes int NOT NULL DEFAULT 0, ban_step int NOT NULL DEFAULT 0,
  minute_ends timestamptz NOT NULL DEFAULT 'epoch', day_ends timestamptz NOT NULL DEFAULT 'epoch',
  ban_ends timestamptz NOT NULL DEFAULT 'epoch') WITH (fillfactor = 50);
CREATE TABLE snapshot (batch bigint, part int, body text NOT NULL, PRIMARY KEY (batch, part));
CREATE TABLE snapshots (batch bigint PRIMARY KEY, id text NOT NULL, parts int NOT NULL, proof text NOT NULL);
CREATE TABLE work (name text PRIMARY KEY, by text NOT NULL, until timestamptz NOT NULL);
INSERT INTO limits (slot, per_minute, per_day) VALUES (${FENCE_SLOT}, 0, 0);`;
const FOUND = `SELECT to_regnamespace($1) IS NOT NULL AS has_schema, to_regclass($1 || '.meta') IS NOT NULL AS has_tables`;

const ROWS_TRIMMED_AT_ONCE = 1_000;

const BEGINNING = `SELECT batch, id, parts FROM snapshots UNION ALL SELECT batch, id, 0 FROM log WHERE batch = 0
  ORDER BY batch DESC, parts DESC LIMIT 1`;
const PART = 'SELECT body FROM snapshot WHERE batch = $1 AND part = $2';
/** Takes the lease on making the snapshot. A process that has not renewed it for a minute has died. */
const TAKE_WORK = `INSERT INTO work VALUES ('snapshot', $1, now() + interval '1 minute') ON CONFLICT (name)
  DO UPDATE SET by = excluded.by, until = excluded.until WHERE work.until < now() OR work.by = excluded.by`;
/** Two snapshots are kept, and the log from the older one on. */
const TRIM = [
  'DELETE FROM snapshots WHERE batch < (SELECT batch FROM snapshots ORDER BY batch DESC OFFSET 1 LIMIT 1)',
  'DELETE FROM snapshot s WHERE NOT EXISTS (SELECT 1 FROM snapshots n WHERE n.batch = s.batch)',
  `DELETE FROM log WHERE batch IN (SELECT batch FROM log
    WHERE batch < (SELECT min(batch) FROM snapshots HAVING count(*) > 1) ORDER BY batch LIMIT ${ROWS_TRIMMED_AT_ONCE})`,
];

/** An id. Batches of two histories have the same numbers, but different ids. */
export const newId = () => randomBytes(9).toString('base64url');

/** Opens a schema, and makes its tables if there are none, unless they must exist. Tries for ten seconds. */
export async function openSchema(link: Link, schema: string, mustExist = false, tries = 5): Promise<void> {
  try {
    const [{ version }] = await link.rows({ text: SERVER });
    if (version < OLDEST_VERSION) throw new Error(`PostgreSQL 15 or newer is needed, not ${version}`);
    const [{ has_schema, has_tables }] = await link.rows({ text: FOUND, values: [schema] });
    if (!has_tables && mustExist) throw new Error(`there is no store in schema ${schema}`);
    if (!has_tables) {
      const id = newId();
      const first = `INSERT INTO meta VALUES (1, '${id}', ${FORMAT}); INSERT INTO head VALUES (1, 0, '${id}');
        INSERT INTO log VALUES (0, '${id}', '')`;
      // One text, and so all of it or nothing.
      await link.ask([{ text: `${has_schema ? '' : `CREATE SCHEMA "${schema}";`} ${TABLES} ${first}` }]);
    }
    const [{ format }] = await link.rows({ text: 'SELECT format FROM meta' });
    if (format !== FORMAT) throw new VersionError(`schema ${schema} has format ${format}`, format < FORMAT);
  } catch (error) {
    if (!(error instanceof LinkError) || error.isFinal || tries === 1) throw error;
    await openSchema(link, schema, mustExist, tries - 1); // another process may have made them
  }
}

/** A place in the one history of a store. */
export interface Place {
  batch: number;
  id: string;
}

export function damaged(what: string): DamagedError {
  const message = `damaged data in the database: ${what}. Nothing was changed. Restore a backup into another schema.`;
  return Object.assign(new DamagedError('', 0, what, ''), { message });
}

/**
 * The entries of a text, each with the part of its line that the digest covers. Lines have checksums as in a data file
 * (docs/formats.md).
 */
export function* decodeLines(text: string, what: string): Generator<{ entry: Entry; encoded: string }> {
  for (const line of text.split('\n').slice(0, -1)) {
    const bytes = Buffer.from(line);
    if (!isSealed(bytes)) throw damaged(`${what}: a checksum is wrong`);
    yield { entry: decodeLine(bytes, what), encoded: line.slice(SEAL_BYTES) };
  }
}

function decodeLine(line: Buffer, what: string): Entry {
  try {
    return decode(parsed(line) ?? {});
  } catch (error) {
    throw error instanceof VersionError ? error : damaged(`${what}: ${(error as Error).message}`);
  }
}

/**
 * Reads the newest snapshot into an empty state, all parts as of one moment. Gives its place: before all batches, if
 * there is none.
 */
export async function loadSnapshot(link: Link, state: State): Promise<Place> {
  return link.transaction(BEGIN_READING, (held) => readSnapshot(held, state));
}

async function readSnapshot(link: Pick<Link, 'rows'>, state: State): Promise<Place> {
  const [newest] = await link.rows({ text: BEGINNING });
  if (newest === undefined) throw damaged('the log does not begin');
  const { batch, id, parts } = newest;
  const load = loaderOf(state);
  let isWhole = parts === 0;
  for (let part = 0; part < parts; part++) {
    const [row] = await link.rows({ name: 'part', text: PART, values: [batch, part] });
    for (const { entry, encoded } of decodeLines(row?.body ?? '', `snapshot ${batch}`)) {
      try {
        load(entry, encoded);
        isWhole = entry.op === 'proof';
      } catch (error) {
        throw damaged((error as Error).message);
      }
    }
  }
  if (!isWhole) throw damaged(`snapshot ${batch} does not end with its proof`);
  return { batch: Number(batch), id };
}

/** Writes the state as of a batch. It counts once it has its row in `snapshots`, which is written last. */
export async function writeSnapshot(
  link: Pick<Link, 'rows'>,
  state: State,
  at: Place,
  goOn = async () => {},
): Promise<void> {
  await link.rows({ text: 'DELETE FROM snapshot WHERE batch = $1', values: [at.batch] }); // the rest of a cut attempt
  let [parts, proof] = [0, ''];
  for (const part of inPieces(sealed(state))) {
    await goOn();
    const row = [at.batch, parts++, part];
    await link.rows({ name: 'put', text: 'INSERT INTO snapshot VALUES ($1, $2, $3)', values: row });
    proof = part.slice(part.lastIndexOf('\n', part.length - 2) + 1);
  }
  const row = [at.batch, at.id, parts, proof];
  await link.rows({ text: 'INSERT INTO snapshots VALUES ($1, $2, $3, $4)', values: row });
}

function* sealed(state: State): Generator<string> {
  for (const body of encodeState(state)) yield seal(body);
}

/** Writes a snapshot of a state that does not change meanwhile; then removes old snapshots and the log before them. */
export async function makeSnapshot(link: Link, state: State, at: Place): Promise<void> {
  const work = { name: 'work', text: TAKE_WORK, values: [newId()] };
  const goOn = async () => {
    const [{ rowCount }] = await link.ask([work]);
    if (rowCount !== 1) throw new Error('another process is making a snapshot');
  };
  await goOn();
  const [newest] = await link.rows({ text: BEGINNING });
  if (newest?.id !== at.id) await writeSnapshot(link, state, at, goOn);
  for (const text of TRIM) {
    do await goOn();
    while ((await link.ask([{ text }]))[0].rowCount === ROWS_TRIMMED_AT_ONCE);
  }
  await link.rows({ text: 'DELETE FROM work WHERE by = $1', values: work.values });
}

/** Takes the usage of callers from the rows of limits into a state. Throws if they do not fit the keys. */
export function putUsage(state: State, limits: Row[]): void {
  const rows = new Map(limits.map((row) => [row.slot as number, row]));
  state.usage.clear();
  for (const { id: key, slot, ...limit } of state.keys.values()) {
    const { perMinute, perDay, dayUsed, dayEndsAt, banStep, banEndsAt } = rows.get(slot) ?? {};
    const isSame = perMinute === limit.perMinute && perDay === limit.perDay;
    if (!isSame) throw damaged(`key ${key} and its row of limits differ`);
    state.usage.set(key, { key, dayUsed, dayEndsAt, banStep, banEndsAt });
  }
}
