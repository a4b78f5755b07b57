/** The whole state as rows, so that nobody has to read the log from its beginning, and its beginning can go. */
import { DamagedError, isSealed, SEAL_BYTES, seal } from '../store/file/format.ts';
import { decode, type Entry, encodeState, StateLoader } from '../store/record.ts';
import type { State } from '../store/state.ts';
import type { Link } from './link.ts';
import { newId } from './schema.ts';

const PART_CHARACTERS = 1024 * 1024;
const ROWS_TRIMMED_AT_ONCE = 1_000;

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
  for (let start = 0, feed = text.indexOf('\n'); feed !== -1; start = feed + 1, feed = text.indexOf('\n', start)) {
    const line = text.slice(start, feed);
    if (!isSealed(Buffer.from(line))) throw damaged(`${what}: a checksum is wrong`);
    yield { entry: decode(JSON.parse(line)), encoded: line.slice(SEAL_BYTES) };
  }
}

/** Reads the newest into an empty state. Gives where that stands: before all batches, if there is none. */
export async function loadSnapshot(link: Link, state: State): Promise<Place> {
  const [newest] = await link.rows({ text: `${NEWEST} LIMIT 1` });
  if (newest === undefined) {
    const [first] = await link.rows({ text: 'SELECT id FROM log WHERE batch = 0' });
    if (first === undefined) throw damaged('the log does not begin');
    return { batch: 0, id: first.id };
  }
  const { batch, id, parts } = newest;
  const loader = new StateLoader(state);
  let isWhole = false;
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
export async function writeSnapshot(link: Link, at: Place, state: State, goOn = async () => {}): Promise<void> {
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
