/** What commands do with the whole store, each on a connection of its own: compact, backup, restore. */
import type { Proof } from '../../src/store/engine.ts';
import { prove, readBackup, snapshotLines } from '../../src/store/log-format.ts';
import { schemaOf, TABLE_NAMES } from '../../src/store/model.ts';
import { contradictionIn, type Snapshot } from '../../src/store/tables.ts';
import { type Address, addressOf } from './address.ts';
import { type Session, withSession } from './connection.ts';
import { mayBeDone } from './errors.ts';
import { damaged, newId, openTables, putBatch, putRows, readAll, readRows, type Stored } from './tables.ts';

const ROWS_AT_ONCE = 1_000;
const TRIM = [
  // The newest of them stays: replicas may be no further yet.
  "DELETE FROM changes WHERE batch < (SELECT max(batch) FROM changes WHERE at < now() - interval '1 hour')",
  "DELETE FROM replays WHERE (row->>'at')::bigint <= extract(epoch FROM now() - interval '1 day') * 1000",
];

/** Removes what nobody reads any more: batches older than an hour, and replays whose time is over. */
export async function compact(address: Address): Promise<string> {
  const results = await withSession(address, (session) => session.query(...TRIM));
  const removed = results.reduce((sum, { rowCount }) => sum + (rowCount ?? 0), 0);
  return `removed ${removed} rows that nobody reads any more; PostgreSQL keeps its tables compact by itself`;
}

export async function* backup(address: Address, now: () => number): AsyncGenerator<Uint8Array, Proof> {
  const stored = await withSession(address, readAll);
  const at = now();
  return yield* snapshotLines({ store: stored.store, batch: stored.at.batch, at }, checked(stored, at));
}

/** All rows but the replays that have ended. Throws unless they fit each other. */
function checked({ tables }: Stored, now: number): Snapshot {
  for (const { id } of tables.keys.all())
    if (tables.usage.text(id) === undefined) throw damaged(`key k${id} has no row of usage`);
  const contradiction = contradictionIn(tables);
  if (contradiction !== undefined) throw damaged(contradiction);
  tables.now = () => now;
  return tables.snapshot();
}

/**
 * Fills an empty schema from a backup in one transaction, which reads it back: after the COMMIT, replicas that serve
 * count in it.
 */
export async function restoreIntoPostgres(url: string, lines: AsyncIterable<Uint8Array>): Promise<Proof> {
  const address = addressOf(url);
  const { header, tables, proof } = await readBackup('the backup', lines);
  return withSession(address, async (session) => {
    await openTables(session, address.schema);
    await fill(session, address.schema, tables.snapshot());
    const restored = await prove(header, checked(await readRows(session), header.at));
    if (restored.digest !== proof.digest)
      throw new Error('the database gave back other rows than the backup has; nothing was restored');
    await session.query('COMMIT').catch(mayBeDone);
    return restored;
  });
}

/** In a transaction that stays open. Replicas that have read the empty schema find batch 0 gone, and read all rows anew. */
async function fill(session: Session, schema: string, { lastIds, texts }: Snapshot): Promise<void> {
  const [, heads] = await session.query('BEGIN', 'SELECT batch FROM head FOR UPDATE');
  if (heads.rows[0].batch !== 0) throw new Error(`the store in schema ${schema} is not empty`);
  for (const name of TABLE_NAMES) {
    for (let from = 0; from < texts[name].length; from += ROWS_AT_ONCE) {
      const some = texts[name].slice(from, from + ROWS_AT_ONCE);
      const ids = some.map((text) => schemaOf(name).parse(text).id);
      await session.query(putRows(name, ids, some));
    }
  }
  await session.query('DELETE FROM changes', ...putBatch({ batch: 1, id: newId() }, '', lastIds));
}
