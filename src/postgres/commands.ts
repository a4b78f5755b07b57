/** What commands do with the whole store, each on a connection of its own: verify, compact, backup, restore. */
import type { Proof } from '../store/engine.ts';
import { prove, readBackup, snapshotLines } from '../store/file/log-format.ts';
import { COUNTED, hasEnded, StoreError, schemaOf, TABLE_NAMES } from '../store/model.ts';
import { contradictionIn, type Snapshot } from '../store/tables.ts';
import { type Address, addressOf } from './address.ts';
import { type Session, withSession } from './connection.ts';
import { DatabaseError } from './errors.ts';
import { changesOf } from './replica.ts';
import {
  cursor,
  damaged,
  HEAD_IS_NOT_LAST,
  newId,
  openSchema,
  type Position,
  putRows,
  readAll,
  type Stored,
} from './tables.ts';

const ROWS_AT_ONCE = 1_000;
const TRIM = [
  "DELETE FROM changes WHERE at < now() - interval '1 hour' AND batch < (SELECT batch FROM head)",
  "DELETE FROM replays WHERE at <= extract(epoch FROM now() - interval '1 day') * 1000",
];

/** Removes what nobody reads any more: batches older than an hour, and replays whose time is over. */
export async function trim(address: Address): Promise<number> {
  const results = await withSession(address, (session) => session.query(...TRIM));
  return results.reduce((sum, { rowCount }) => sum + (rowCount ?? 0), 0);
}

export async function compact(address: Address): Promise<string> {
  return `removed ${await trim(address)} rows that nobody reads any more; PostgreSQL keeps its tables compact by itself`;
}

export function verify(address: Address, now: () => number): Promise<Proof> {
  return withSession(address, async (session) => {
    const stored = await readChecked(session, now);
    await checkTail(session, stored.at);
    return prove(stored);
  });
}

export async function* backup(address: Address, now: () => number): AsyncGenerator<Uint8Array, Proof> {
  const stored = await withSession(address, (session) => readChecked(session, now));
  const { store, at, readAt } = stored;
  return yield* snapshotLines({ store, file: 0, batch: at.batch, at: readAt }, stored);
}

/** All rows but the replays that have ended. They must fit each other, and the head. */
async function readChecked(session: Session, now: () => number): Promise<Stored & { readAt: number }> {
  const stored = await readAll(session);
  const readAt = now();
  const { rows, lastIds } = stored;
  for (const name of COUNTED) {
    const { id } = rows[name].at(-1) ?? { id: 0 };
    if (id > lastIds[name]) throw damaged(`the last id of ${name} is ${id}, and the head says ${lastIds[name]}`);
  }
  const counted = new Set(rows.usage.map(({ id }) => id));
  for (const { id } of rows.keys) if (!counted.has(id)) throw damaged(`key k${id} has no row of usage`);
  const pets = new Set(rows.pets.map(({ id }) => id));
  const contradiction = contradictionIn(rows.orders, (id) => pets.has(id));
  if (contradiction !== undefined) throw damaged(contradiction);
  return { ...stored, readAt, rows: { ...rows, replays: rows.replays.filter((replay) => !hasEnded(replay, readAt)) } };
}

/** That the batches of the last hour can be read, and follow each other up to the head. */
async function checkTail(session: Session, at: Position): Promise<void> {
  let last: Position | undefined;
  for await (const batches of cursor(session, 'SELECT batch, id, rows FROM changes ORDER BY batch')) {
    for (const { batch, id, rows } of batches) {
      if (last && batch !== last.batch + 1) throw damaged(`batch ${last.batch + 1} is missing`);
      changesOf(batch, rows);
      last = { batch, id };
    }
  }
  if (last?.batch !== at.batch || last.id !== at.id) throw damaged(HEAD_IS_NOT_LAST);
}

/** Fills an empty schema from a backup in one transaction, and reads it back. */
export async function restoreIntoPostgres(url: string, lines: AsyncIterable<Uint8Array>): Promise<Proof> {
  const address = addressOf(url);
  const { header, snapshot, proof } = await readBackup('the backup', lines);
  await openSchema(address);
  try {
    await withSession(address, (session) => fill(session, address.schema, snapshot));
  } catch (error) {
    if (!(error instanceof DatabaseError && error.isLost)) throw error;
    throw new StoreError('unknown', `${error.message}: all was restored, or nothing, and restore tells which`);
  }
  const restored = await verify(address, () => header.at);
  if (restored.digest === proof.digest) return restored;
  throw new Error('the restored content differs from the backup: do not use it');
}

/** Replicas that wait on the empty schema know another first batch, and end. */
async function fill(session: Session, schema: string, { lastIds, rows }: Snapshot): Promise<void> {
  const [, heads] = await session.query('BEGIN', 'SELECT batch FROM head FOR UPDATE');
  if (heads.rows[0]?.batch !== 0) throw new Error(`the store in schema ${schema} is not empty`);
  for (const name of TABLE_NAMES) {
    for (let from = 0; from < rows[name].length; from += ROWS_AT_ONCE) {
      await session.query(putRows(name, rows[name].slice(from, from + ROWS_AT_ONCE).map(schemaOf(name).json)));
    }
  }
  const { pets, orders, keys } = lastIds;
  const id = newId();
  const text = 'UPDATE head SET store = $1, batch = 1, id = $2, pets = $3, orders = $4, keys = $5';
  await session.query(
    { text, values: [newId(), id, pets, orders, keys] },
    { text: 'UPDATE changes SET id = $1 WHERE batch = 0', values: [id] },
    { text: "INSERT INTO changes VALUES (1, $1, '')", values: [id] },
    'COMMIT',
  );
}
