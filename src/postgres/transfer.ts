/** Between a directory's file and a database: what lies in the table of limits here is usage there. */
import { readBackup } from '../store/file/backup.ts';
import { realDisk } from '../store/file/disk.ts';
import type { Proof } from '../store/model.ts';
import { prove } from '../store/record.ts';
import { State } from '../store/state.ts';
import { Link, type Row } from './link.ts';
import { newId, openSchema } from './schema.ts';
import { serverOf } from './server.ts';
import { damaged, loadSnapshot, writeSnapshot } from './snapshots.ts';
import { BEGIN, COMMIT, LOOK, NEW_HISTORY, PUT_LIMITS } from './sql.ts';

const KEYS_AT_ONCE = 10_000;
const START_PATIENCE_MS = 10_000;

/** Takes into a state what the rows of limits say that callers have used. Throws where they do not fit the keys. */
export function putUsage(state: State, limits: Row[]): void {
  const rows = new Map(limits.map((row) => [row.slot as number, row]));
  state.usageTable.clear();
  for (const { id, slot, perMinute, perDay } of state.keys()) {
    const { per_minute, per_day, day_used: dayUsed, day_ends, ban_step: banStep, ban_ends } = rows.get(slot) ?? {};
    if (per_minute !== perMinute || per_day !== perDay) throw damaged(`key ${id} and its row of limits differ`);
    const usage = { key: id, dayUsed, dayEndsAt: Math.ceil(day_ends), banStep, banEndsAt: Math.ceil(ban_ends) };
    state.usageTable.set(id, usage);
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
    await link.rows({ text: 'SELECT 1' }, START_PATIENCE_MS);
    await openSchema(link, server.schema);
    await fill(link, server.schema, state);
    const back = new State();
    await loadSnapshot(link, back);
    putUsage(back, await link.rows({ text: LOOK, values: [null] }));
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
}
