/** The whole state as rows, so that nobody has to read the log from its beginning, and its beginning can go. */
import { seal } from '../store/file/format.ts';
import type { Operation } from '../store/model.ts';
import { encodeState, StateLoader } from '../store/record.ts';
import type { State } from '../store/state.ts';
import { decodeLines, HistoryError, isCut, type Place } from './batches.ts';
import type { Link } from './link.ts';
import { newId } from './schema.ts';
import { TAIL } from './sql.ts';

const PART_CHARACTERS = 1024 * 1024;
const PARTS_READ_AT_ONCE = 8;
/** A log larger than this, and than the newest snapshot, is worth a new one. */
const MIN_LOG_BYTES = 64 * 1024 * 1024;
const ROWS_TRIMMED_AT_ONCE = 1_000;

const NEWEST = 'SELECT batch, id, parts FROM snapshots ORDER BY batch DESC';
const PARTS = 'SELECT body FROM snapshot WHERE batch = $1 AND part >= $2 AND part < $3 ORDER BY part';
/** Whoever has it makes the snapshot. One who does not say for a minute that he still does has died. */
const TAKE_WORK = `INSERT INTO work VALUES ('snapshot', $1, now() + interval '1 minute') ON CONFLICT (name)
  DO UPDATE SET by = excluded.by, until = excluded.until WHERE work.until < now() OR work.by = excluded.by`;
const TRIM_PARTS = 'DELETE FROM snapshot s WHERE NOT EXISTS (SELECT 1 FROM snapshots n WHERE n.batch = s.batch)';
const TRIM_LOG = `DELETE FROM log WHERE batch IN (
  SELECT batch FROM log WHERE batch < $1 ORDER BY batch LIMIT ${ROWS_TRIMMED_AT_ONCE})`;
const SIZES = `WITH newest AS (SELECT coalesce(max(batch), -1) AS batch FROM snapshots)
SELECT (SELECT coalesce(sum(octet_length(body)), 0) FROM log WHERE batch > newest.batch)::float8 AS log_bytes,
  (SELECT coalesce(sum(octet_length(body)), 0) FROM snapshot s WHERE s.batch = newest.batch)::float8 AS snapshot_bytes
FROM newest`;

/** Reads everything into an empty state. Gives where that stands. */
export async function loadState(link: Link, state: State): Promise<Place> {
  const [newest] = await link.rows({ text: NEWEST });
  if (newest) await loadParts(link, newest.batch, newest.parts, state);
  const [{ batch, id }] = newest ? [newest] : await link.rows({ text: 'SELECT batch, id FROM log WHERE batch = 0' });
  for (let at: Place = { batch: Number(batch), id }; ; ) {
    const rows = await link.rows({ name: 'tail', text: TAIL, values: [at.batch] });
    if (rows[0]?.id !== at.id) throw new HistoryError(`the log does not have the batch ${at.batch} that was read`);
    for (const { batch, id, body } of rows.slice(1)) {
      if (Number(batch) !== at.batch + 1) throw new HistoryError(`batch ${at.batch + 1} is missing`);
      for (const { entry } of decodeLines(body, `batch ${batch}`)) state.take([entry as Operation]);
      at = { batch: Number(batch), id };
    }
    if (!isCut(rows)) return at;
  }
}

async function loadParts(link: Link, batch: string, parts: number, state: State): Promise<void> {
  const loader = new StateLoader(state);
  let isWhole = false;
  for (let part = 0; part < parts; part += PARTS_READ_AT_ONCE) {
    const rows = await link.rows({ text: PARTS, values: [batch, part, part + PARTS_READ_AT_ONCE] });
    const lines = rows.flatMap(({ body }) => [...decodeLines(body, `snapshot ${batch}`)]);
    for (const { entry, encoded } of lines) isWhole = loader.take(entry, encoded) !== undefined;
  }
  if (!isWhole) throw new HistoryError(`snapshot ${batch} does not end with its proof`);
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
    await link.rows({ name: 'part', text: 'INSERT INTO snapshot VALUES ($1, $2, $3)', values: [at.batch, part, text] });
  }
  const row = [at.batch, at.id, parts.length, proof];
  await link.rows({ text: 'INSERT INTO snapshots VALUES ($1, $2, $3, $4)', values: row });
}

/** Whether the log is so long that a snapshot is worth its work. */
export async function isSnapshotDue(link: Link): Promise<boolean> {
  const [{ log_bytes, snapshot_bytes }] = await link.rows({ text: SIZES });
  return log_bytes > Math.max(MIN_LOG_BYTES, snapshot_bytes);
}

/** A snapshot of a state that stands still; then what nobody needs any more goes. False: somebody else is at it. */
export async function makeSnapshot(link: Link, at: Place, state: State): Promise<boolean> {
  const me = newId();
  const isMine = async () => (await link.ask([{ name: 'work', text: TAKE_WORK, values: [me] }]))[0].rowCount === 1;
  const goOn = async () => {
    if (!(await isMine())) throw new Error('another process took the snapshot over');
  };
  if (!(await isMine())) return false;
  const [newest] = await link.rows({ text: NEWEST });
  if (newest?.id !== at.id) await writeSnapshot(link, at, state, goOn);
  await trim(link, goOn);
  await link.rows({ text: 'DELETE FROM work WHERE by = $1', values: [me] });
  return true;
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
