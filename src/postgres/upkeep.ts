/** What commands do with the whole store, each on a connection of its own: verify, compact, backup, restore. */
import type { Proof } from '../store/engine.ts';
import { backupLines, prove, readBackup } from '../store/file/backup.ts';
import { hasEnded, type Id, type Row, StoreError, schemaOf, TABLE_NAMES, type TableName } from '../store/model.ts';
import type { Snapshot } from '../store/tables.ts';
import { type Address, addressOf } from './address.ts';
import { type Session, withSession } from './connection.ts';
import { DatabaseError } from './errors.ts';
import { changesOf } from './replica.ts';
import { cursor, damaged, newId, openSchema, putSql, readAll, rowsJson, type Stored } from './tables.ts';

const ROWS_AT_ONCE = 1_000;
const TRIM = [
  `DELETE FROM changes WHERE batch IN (SELECT c.batch FROM changes c, head h
    WHERE c.batch < h.batch AND c.at < now() - interval '1 hour' ORDER BY c.batch LIMIT ${ROWS_AT_ONCE})`,
  `DELETE FROM replays WHERE id IN (SELECT id FROM replays
    WHERE at <= extract(epoch FROM now() - interval '1 day') * 1000 LIMIT ${ROWS_AT_ONCE})`,
];

/** Removes what nobody reads any more: batches older than an hour, and replays whose time is over. */
export function trim(address: Address): Promise<number> {
  return withSession(address, async (session) => {
    let trimmed = 0;
    for (const text of TRIM) {
      for (let count = ROWS_AT_ONCE; count === ROWS_AT_ONCE; trimmed += count) {
        count = (await session.ask(text))[0].rowCount ?? 0;
      }
    }
    return trimmed;
  });
}

export async function compact(address: Address): Promise<string> {
  return `removed ${await trim(address)} rows that nobody reads any more; PostgreSQL keeps its tables compact by itself`;
}

export function verify(address: Address, now: () => number): Promise<Proof> {
  return withSession(address, async (session) => {
    const stored = await readAll(session);
    checkRows(stored);
    await checkTail(session, stored, now());
    return prove(...asBackup(stored, now()));
  });
}

export async function* backup(address: Address, now: () => number): AsyncGenerator<Uint8Array, Proof> {
  const stored = await withSession(address, (session) => readAll(session));
  checkRows(stored);
  return yield* backupLines(...asBackup(stored, now()));
}

function asBackup({ store, at: { batch }, lastIds, rows }: Stored, now: number) {
  const replays = rows.replays.filter((replay) => !hasEnded(replay, now));
  return [
    { store, file: 0, batch, at: now, lastIds },
    { lastIds, rows: { ...rows, replays } },
  ] as const;
}

/** That the rows fit each other, and the head. */
function checkRows({ rows, lastIds }: Snapshot): void {
  for (const [name, lastId] of Object.entries(lastIds) as [keyof typeof lastIds, number][]) {
    const { id } = rows[name].at(-1) ?? { id: 0 };
    if (id > lastId) throw damaged(`the last id of ${name} is ${id}, and the head says ${lastId}`);
  }
  const counted = new Set(rows.usage.map(({ id }) => id));
  for (const { id } of rows.keys) if (!counted.has(id)) throw damaged(`key k${id} has no row of usage`);
  const ordered = new Set<number>();
  for (const { petId, status } of rows.orders) {
    if (status !== 'placed') continue;
    if (ordered.has(petId)) throw damaged(`two placed orders for animal ${petId}`);
    ordered.add(petId);
  }
}

/** That the batches of the last hour follow each other up to the head, and that the rows are as the last of them left. */
async function checkTail(session: Session, { at, rows }: Stored, now: number): Promise<void> {
  const left = Object.fromEntries(TABLE_NAMES.map((name) => [name, new Map()])) as Record<
    TableName,
    Map<Id, string | undefined>
  >;
  let last: { batch: number; id: string } | undefined;
  for await (const batches of cursor(session, 'SELECT batch, id, rows FROM changes ORDER BY batch')) {
    for (const { id, rows, ...row } of batches) {
      const batch = Number(row.batch);
      if (last && batch !== last.batch + 1) throw damaged(`batch ${last.batch + 1} is missing`);
      last = { batch, id };
      for (const { name, clears, rows: puts, gone } of changesIn(batch, rows)) {
        if (clears) left[name].clear();
        for (const put of puts) left[name].set(put.id, schemaOf(name).json(put));
        for (const one of gone) left[name].set(one, undefined);
      }
    }
  }
  if (last?.batch !== at.batch || last.id !== at.id) throw damaged('the head is not the last batch');
  left.usage.clear(); // takes change it without a batch
  for (const name of TABLE_NAMES) {
    const found = new Map<Id, Row>(left[name].size > 0 ? rows[name].map((row) => [row.id, row]) : []);
    for (const [id, text] of left[name]) {
      const row = found.get(id);
      const isAsLeft = (row && schemaOf(name).json(row)) === text;
      const isTrimmed = name === 'replays' && row === undefined && hasEnded(JSON.parse(text!), now);
      if (!isAsLeft && !isTrimmed) throw damaged(`table ${name}, row ${id}: it is not as its last batch has left it`);
    }
  }
}

function changesIn(batch: number, line: string) {
  try {
    return changesOf(line);
  } catch (error) {
    throw damaged(`batch ${batch}: ${(error as Error).message}`);
  }
}

/** Fills an empty schema from a backup in one transaction, and reads it back. */
export async function restoreIntoPostgres(url: string, lines: AsyncIterable<Uint8Array>): Promise<Proof> {
  const address = addressOf(url);
  const { tables, header, proof } = await readBackup('the backup', lines);
  await openSchema(address);
  try {
    await withSession(address, (session) =>
      session.orRollBack(() => fill(session, address.schema, tables.snapshot(header.at))),
    );
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
  const [, heads] = await session.ask('BEGIN', 'SELECT batch FROM head FOR UPDATE');
  if (heads.rows[0]?.batch !== '0') throw new Error(`the store in schema ${schema} is not empty`);
  for (const name of TABLE_NAMES) {
    for (let from = 0; from < rows[name].length; from += ROWS_AT_ONCE) {
      const values = [rowsJson(name, rows[name].slice(from, from + ROWS_AT_ONCE))];
      await session.ask({ text: putSql(name, 1), values });
    }
  }
  const { pets, orders, keys } = lastIds;
  const id = newId();
  const text = 'UPDATE head SET store = $1, batch = 1, id = $2, pets = $3, orders = $4, keys = $5';
  await session.ask(
    { text, values: [newId(), id, pets, orders, keys] },
    { text: 'UPDATE changes SET id = $1 WHERE batch = 0', values: [id] },
    { text: "INSERT INTO changes VALUES (1, $1, '')", values: [id] },
    'COMMIT',
  );
}
