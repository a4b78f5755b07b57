/** The tables of a store, which whoever finds none makes. One schema, one store. */
import { randomBytes } from 'node:crypto';
import { NewerError } from '../store/record.ts';
import { type Link, LinkError, START_PATIENCE_MS } from './link.ts';
import { FENCE_SLOT, SERVER } from './sql.ts';

/** What a program must know to read the log. Raised when it may hold what older programs do not know. */
const FORMAT = 1;
const MAX_TRIES = 5;
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

/** The batches of two histories differ in their ids, though they have the same numbers. */
export const newId = () => randomBytes(9).toString('base64url');

export async function openSchema(link: Link, schema: string): Promise<void> {
  const [{ version }] = await link.rows({ text: SERVER }, START_PATIENCE_MS);
  if (version < OLDEST_VERSION) throw new Error(`PostgreSQL 15 or newer is needed, not ${version}`);
  for (let tries = 1; ; tries++) {
    const [{ has_schema, has_tables }] = await link.rows({ text: FOUND, values: [schema] });
    if (has_tables) break;
    const id = newId();
    const first = `INSERT INTO meta VALUES (1, '${id}', ${FORMAT}); INSERT INTO head VALUES (1, 0, '${id}');
      INSERT INTO log VALUES (0, '${id}', '')`;
    // One text, and so all of it or nothing.
    const text = `${has_schema ? '' : `CREATE SCHEMA ${schema};`} ${TABLES} ${first}`;
    await link.ask([{ text }]).catch((error) => {
      // Of several who find none at once, one makes them, and the others find them now.
      if (!(error instanceof LinkError) || tries === MAX_TRIES) throw error;
    });
  }
  const [{ format }] = await link.rows({ text: 'SELECT format FROM meta' });
  if (format !== FORMAT) throw new NewerError(`the store in schema ${schema} has format ${format}`);
}
