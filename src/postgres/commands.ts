/** What commands do with the whole store, each on a connection of its own: verify, compact, backup, restore. */
import type { Proof } from '../store/engine.ts';
import { prove, readBackup, snapshotLines } from '../store/file/log-format.ts';
import { COUNTED, hasEnded, schemaOf, TABLE_NAMES } from '../store/model.ts';
import { contradictionIn, type Snapshot } from '../store/tables.ts';
import { type Address, addressOf } from './address.ts';
import { type Session, withSession } from './connection.ts';
import { damaged, newId, openTables, putBatch, putRows, readAll } from './tables.ts';

const ROWS_AT_ONCE = 1_000;
const TRIM = [
  // The newest of them stays: replicas may be no further yet.
  "DELETE FROM changes WHERE batch < (SELECT max(batch) FROM changes WHERE at < now() - interval '1 hour')",
  "DELETE FROM replays WHERE at <= extract(epoch FROM now() - interval '1 day') * 1000",
];

/** Removes what nobody reads any more: batches older than an hour, and replays whose time is over. */
export async function compact(address: Address): Promise<string> {
  const results = await withSession(address, (session) => session.query(...TRIM));
  const removed = results.reduce((sum, { rowCount }) => sum + (rowCount ?? 0), 0);
  return `removed ${removed} rows that nobody reads any more; PostgreSQL keeps its tables compact by itself`;
}

export async function verify(address: Address, now: () => number): Promise<Proof> {
  return prove((await readChecked(address, now)).snapshot);
}

export async function* backup(address: Address, now: () => number): AsyncGenerator<Uint8Array, Proof> {
  const { header, snapshot } = await readChecked(address, now);
  return yield* snapshotLines(header, snapshot);
}

/** All rows but the replays that have ended. They must fit each other, and the head. */
async function readChecked(address: Address, now: () => number) {
  const { store, at, lastIds, rows } = await withSession(address, readAll);
  for (const name of COUNTED) {
    const { id } = rows[name].at(-1) ?? { id: 0 };
    if (id > lastIds[name]) throw damaged(`the last id of ${name} is ${id}, and the head says ${lastIds[name]}`);
  }
  const counted = new Set(rows.usage.map(({ id }) => id));
  for (const { id } of rows.keys) if (!counted.has(id)) throw damaged(`key k${id} has no row of usage`);
  const pets = new Set(rows.pets.map(({ id }) => id));
  const contradiction = contradictionIn(rows.orders, (id) => pets.has(id));
  if (contradiction !== undefined) throw damaged(contradiction);
  const readAt = now();
  const snapshot = { lastIds, rows: { ...rows, replays: rows.replays.filter((one) => !hasEnded(one, readAt)) } };
  return { header: { store, file: 0, batch: at.batch, at: readAt }, snapshot };
}

/** Fills an empty schema from a backup in one transaction, and reads it back. */
export async function restoreIntoPostgres(url: string, lines: AsyncIterable<Uint8Array>): Promise<Proof> {
  const address = addressOf(url);
  const { header, tables, proof } = await readBackup('the backup', lines);
  await withSession(address, async (session) => {
    await openTables(session, address.schema);
    await fill(session, address.schema, tables.snapshot(header.at));
  });
  const restored = await verify(address, () => header.at);
  if (restored.digest === proof.digest) return restored;
  throw new Error('the restored content differs from the backup: do not use it');
}

/** Replicas that have read the empty schema find batch 0 gone, and read all rows anew. */
async function fill(session: Session, schema: string, { lastIds, rows }: Snapshot): Promise<void> {
  const [, heads] = await session.query('BEGIN', 'SELECT batch FROM head FOR UPDATE');
  if (heads.rows[0].batch !== 0) throw new Error(`the store in schema ${schema} is not empty`);
  for (const name of TABLE_NAMES) {
    for (let from = 0; from < rows[name].length; from += ROWS_AT_ONCE) {
      await session.query(putRows(name, rows[name].slice(from, from + ROWS_AT_ONCE).map(schemaOf(name).json)));
    }
  }
  await session.query('DELETE FROM changes', ...putBatch({ batch: 1, id: newId() }, '', lastIds), 'COMMIT');
}
