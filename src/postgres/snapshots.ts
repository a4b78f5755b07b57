/**
 * The whole state as rows, so that nobody has to read the log from its beginning, and its beginning can go; and how one
 * comes from a backup. What lies in the table of limits here is usage there.
 */
import { readBackup } from '../store/file/backup.ts';
import { realDisk } from '../store/file/disk.ts';
import { DamagedError, isSealed, SEAL_BYTES, seal } from '../store/file/format.ts';
import type { Proof } from '../store/model.ts';
import { decode, type Entry, encodeState, prove, StateLoader } from '../store/record.ts';
import { State } from '../store/state.ts';
import { Link, type Row } from './link.ts';
import { newId, openSchema } from './schema.ts';
import { serverOf } from './server.ts';
import { BEGIN, COMMIT, LIMITS, NEW_HISTORY, PUT_LIMITS } from './sql.ts';

const PART_CHARACTERS = 1024 * 1024;
const ROWS_TRIMMED_AT_ONCE = 1_000;
const KEYS_AT_ONCE = 10_000;

const BEGINNING = `SELECT batch, id, parts FROM snapshots UNION ALL SELECT batch, id, 0 FROM log WHERE batch = 0
  ORDER BY batch DESC, parts DESC LIMIT 1`;
const NEWEST = 'SELECT batch, id, parts FROM snapshots ORDER BY batch DESC';
const PART = 'SELECT body FROM snapshot WHERE batch = $1 AND part = $2';
/** Whoever has it makes the snapshot. One who does not say for a minute that he still does has died. */
const TAKE_WORK = `INSERT INTO work VALUES ('snapshot', $1, now() + interval '1 minute') ON CONFLICT (name)
  DO UPDATE SET by = excluded.by, until = excluded.until WHERE work.until < now() OR work.by = excluded.by`;
const TRIM_PARTS = 'DELETE FROM snapshot s WHERE NOT EXISTS (SELECT 1 FROM snapshots n WHERE n.batch = s.batch)';
const TRIM_LOG = `DELETE FROM log WHERE batch IN (
  SELECT batch FROM log WHERE batch < $1 ORDER BY batch LIMIT ${ROWS_TRIMMED_AT_ONCE})`;

/** A place in the one history of a store. */
export interface Place {
  batch: number;
  id: string;
}

/** What is read is not what was written. */
export function damaged(what: string): DamagedError {
  const advice = 'Restore a backup into another schema.';
  return Object.assign(new DamagedError('', 0, what, advice), {
    message: `damaged data in the database: ${what}. Nothing was changed. ${advice}`,
  });
}

/** Each line of a text, and what of it stands for it alone: with its checksum as in a data file (docs/formats.md). */
export function* decodeLines(text: string, what: string): Generator<{ entry: Entry; encoded: string }> {
  for (const line of text.split('\n').slice(0, -1)) {
    if (!isSealed(Buffer.from(line))) throw damaged(`${what}: a checksum is wrong`);
    yield { entry: decode(JSON.parse(line)), encoded: line.slice(SEAL_BYTES) };
  }
}

/** Reads the newest into an empty state. Gives where that stands: before all batches, if there is none. */
export async function loadSnapshot(link: Link, state: State): Promise<Place> {
  const [newest] = await link.rows({ text: BEGINNING });
  if (newest === undefined) throw damaged('the log does not begin');
  const { batch, id, parts } = newest;
  const loader = new StateLoader(state);
  let isWhole = parts === 0;
  for (let part = 0; part < parts; part++) {
    const [row] = await link.rows({ name: 'part', text: PART, values: [batch, part] });
    for (const { entry, encoded } of decodeLines(row?.body ?? '', `snapshot ${batch}`)) {
      isWhole = take(loader, entry, encoded);
    }
  }
  if (!isWhole) throw damaged(`snapshot ${batch} does not end with its proof`);
  return { batch: Number(batch), id };
}

function take(loader: StateLoader, entry: Entry, encoded: string): boolean {
  try {
    return loader.take(entry, encoded) !== undefined;
  } catch (error) {
    throw damaged((error as Error).message);
  }
}

/** Puts a state that is as it was at a batch. It counts once it has its row in `snapshots`, which is written last. */
async function writeSnapshot(link: Link, at: Place, state: State, goOn = async () => {}): Promise<void> {
  const parts = [''];
  let proof = '';
  for (const body of encodeState(state)) {
    if (parts[parts.length - 1].length >= PART_CHARACTERS) parts.push('');
    parts[parts.length - 1] += proof = seal(body);
  }
  await link.rows({ text: 'DELETE FROM snapshot WHERE batch = $1', values: [at.batch] }); // of one that was cut off
  for (const [part, text] of parts.entries()) {
    await goOn();
    await link.rows({ name: 'put', text: 'INSERT INTO snapshot VALUES ($1, $2, $3)', values: [at.batch, part, text] });
  }
  const row = [at.batch, at.id, parts.length, proof];
  await link.rows({ text: 'INSERT INTO snapshots VALUES ($1, $2, $3, $4)', values: row });
}

/** A snapshot of a state that stands still; then what nobody needs any more goes. */
export async function makeSnapshot(link: Link, at: Place, state: State): Promise<void> {
  const work = { name: 'work', text: TAKE_WORK, values: [newId()] };
  const goOn = async () => {
    const [{ rowCount }] = await link.ask([work]);
    if (rowCount !== 1) throw new Error('another process is making a snapshot');
  };
  await goOn();
  const [newest] = await link.rows({ text: NEWEST });
  if (newest?.id !== at.id) await writeSnapshot(link, at, state, goOn);
  await trim(link, goOn);
  await link.rows({ text: 'DELETE FROM work WHERE by = $1', values: work.values });
}

/** Two snapshots are kept, and the log from the older one on. */
async function trim(link: Link, goOn: () => Promise<unknown>): Promise<void> {
  const [, older] = await link.rows({ text: NEWEST });
  if (older === undefined) return;
  await link.rows({ text: 'DELETE FROM snapshots WHERE batch < $1', values: [older.batch] });
  await link.rows({ text: TRIM_PARTS });
  for (let trimmed: number | null = ROWS_TRIMMED_AT_ONCE; trimmed === ROWS_TRIMMED_AT_ONCE; ) {
    await goOn();
    [{ rowCount: trimmed }] = await link.ask([{ text: TRIM_LOG, values: [older.batch] }]);
  }
}

/** Takes into a state what the rows of limits say that callers have used. Throws where they do not fit the keys. */
export function putUsage(state: State, limits: Row[]): void {
  const rows = new Map(limits.map((row) => [row.slot as number, row]));
  state.usageTable.clear();
  for (const { id: key, slot, ...limit } of state.keys()) {
    const { perMinute, perDay, dayUsed, dayEndsAt, banStep, banEndsAt } = rows.get(slot) ?? {};
    const isSame = perMinute === limit.perMinute && perDay === limit.perDay;
    if (!isSame) throw damaged(`key ${key} and its row of limits differ`);
    state.usageTable.set(key, { key, dayUsed, dayEndsAt, banStep, banEndsAt });
  }
}

/** Fills an empty schema from a backup, and reads it back. */
export async function restorePostgres(
  file: string,
  url: string,
  onProgress?: (done: number, total: number) => void,
): Promise<Proof> {
  const state = new State();
  await readBackup(realDisk, file, state, onProgress);
  const server = serverOf(url);
  const link = new Link(server, 'restore');
  try {
    await openSchema(link, server.schema);
    await fill(link, server.schema, state);
    const back = new State();
    await loadSnapshot(link, back);
    putUsage(back, await link.rows({ text: LIMITS }));
    const proof = prove(back);
    if (proof.digest === prove(state).digest) return proof;
    throw new Error('what was restored is not what the backup holds: do not use it');
  } finally {
    link.close();
  }
}

/** All of it or nothing: without its COMMIT it is undone when the link is closed. */
async function fill(link: Link, schema: string, state: State): Promise<void> {
  const id = newId();
  link.repeats = false;
  await link.rows({ text: BEGIN });
  await link.rows({ text: "SET LOCAL idle_in_transaction_session_timeout = '60s'" }); // else it is one second
  const [{ rowCount }] = await link.ask([{ text: NEW_HISTORY, values: [id] }]);
  if (rowCount !== 1) throw new Error(`the store in schema ${schema} is not empty`);
  await writeSnapshot(link, { batch: 0, id }, state);
  const unused = { dayUsed: 0, dayEndsAt: 0, banStep: 0, banEndsAt: 0 };
  const limits = [...state.keys()].map(({ id, slot, perMinute, perDay }) => {
    return { slot, perMinute, perDay, ...(state.usage(id) ?? unused) };
  });
  for (let from = 0; from < limits.length; from += KEYS_AT_ONCE) {
    await link.rows({ text: PUT_LIMITS, values: [JSON.stringify(limits.slice(from, from + KEYS_AT_ONCE))] });
  }
  await link.rows({ text: COMMIT });
  link.repeats = true;
}
