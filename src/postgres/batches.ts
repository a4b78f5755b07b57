/**
 * Batches of writes. Each is a transaction that locks the head first: so batches of all replicas come one after the
 * other, none is decided twice, and none deadlocks with another. It is decided on memory, which is up to date under the
 * lock.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { batchLine } from '../store/file/log-format.ts';
import { COUNTED, type Counted, StoreError } from '../store/model.ts';
import type { Commit } from '../store/store.ts';
import type { Changes } from '../store/tables.ts';
import type { Connection, Session, Statement } from './connection.ts';
import { DatabaseError } from './errors.ts';
import type { Replica } from './replica.ts';
import { damaged, deleteSql, newId, putSql, rowsJson } from './tables.ts';

const DOUBT_MAX_MS = 10_000;
const RETRY_MS = 100;

const LOCK = { name: 'lock', text: 'SELECT batch, id FROM head WHERE one = 1 FOR UPDATE' };
const KEPT = 'SELECT 1 FROM changes WHERE batch = $1 AND id = $2';
/** Its commit waits for the standby, which a commit before may not have done. */
const CONFIRM = 'UPDATE head SET batch = batch';

export class Batches {
  readonly #connection: Connection;
  readonly #replica: Replica;
  readonly #now: () => number;
  readonly counts = { batches: 0, doubts: 0 };

  constructor(connection: Connection, replica: Replica, now: () => number) {
    this.#connection = connection;
    this.#replica = replica;
    this.#now = now;
  }

  readonly commit: Commit = async (decide) => {
    const session = await this.#connection.session();
    await session.orRollBack(async () => {
      await this.#begin(session);
      const changes = decide();
      if (changes.length === 0) return void (await session.ask('ROLLBACK').catch(() => {}));
      const batch = this.#replica.at.batch + 1;
      const id = newId();
      const statements = this.#statements(batch, id, changes);
      const until = performance.now() + DOUBT_MAX_MS;
      try {
        await session.ask(...statements, 'COMMIT');
      } catch (error) {
        if (!(error instanceof DatabaseError && error.isLost)) throw error;
        this.counts.doubts++;
        if (!(await this.#isKept(batch, id, until))) throw new StoreError('unavailable', error.message);
      }
      this.#replica.apply(batch, id, changes);
      this.counts.batches++;
    });
  };

  /** The tail is a statement of its own: one that has waited for a lock does not see what was committed meanwhile. */
  async #begin(session: Session): Promise<void> {
    const from = this.#replica.at;
    const [, { rows }, tail] = await session.ask('BEGIN', LOCK, this.#replica.tail);
    await this.#replica.follow(session, from, tail);
    if (rows[0]?.id === this.#replica.at.id) return;
    const error = damaged('the head is not the last batch');
    this.#replica.fail(error);
    throw error;
  }

  /**
   * After a COMMIT without an answer. The lost transaction holds the head until it has ended, so who has locked the head
   * anew sees how it ended. If the database stays away for too long, the next batch finds out.
   */
  async #isKept(batch: number, id: string, until: number): Promise<boolean> {
    for (;;) {
      try {
        const session = await this.#connection.session();
        return await session.orRollBack(async () => {
          await this.#begin(session);
          const [{ rows }] = await session.ask({ text: KEPT, values: [batch, id] }, CONFIRM, 'COMMIT');
          return rows.length > 0;
        });
      } catch {
        if (performance.now() > until) {
          throw new StoreError('unknown', 'the connection was lost in the last step of a write: it may have been kept');
        }
        await wait(RETRY_MS);
      }
    }
  }

  #statements(batch: number, id: string, changes: Changes): Statement[] {
    const { tables } = this.#replica;
    const clears = changes.filter((one) => one.clears).map(({ name }) => `DELETE FROM ${name}`);
    const values: unknown[] = [batch, id, batchLine(batch, this.#now(), changes).toString().slice(0, -1)];
    const parts = ['h AS (INSERT INTO changes (batch, id, rows) VALUES ($1, $2, $3))'];
    const lastIds = { ...tables.lastIds };
    const { pets, orders, categories, keys } = tables;
    const versions = { pets: pets.version, orders: orders.version, categories: categories.version, keys: keys.version };
    for (const { name, clears, rows, texts, gone } of changes) {
      if (rows.length > 0) {
        const at = values.push(texts ? `[${texts}]` : rowsJson(name, rows));
        parts.push(`p${at} AS (${putSql(name, at)})`);
      }
      if (gone.length > 0) {
        const at = values.push(gone.map(String));
        parts.push(`g${at} AS (${deleteSql(name, at)})`);
      }
      const ids = [...rows.map((row) => row.id), ...gone] as number[];
      if (name in lastIds) lastIds[name as Counted] = highest([clears ? 0 : lastIds[name as Counted], ...ids]);
      if (name in versions) versions[name as keyof typeof versions] = batch;
    }
    const counters = COUNTED.map((name) => `${name} = $${values.push(lastIds[name])}`);
    const text = `WITH ${parts.join(', ')}
      UPDATE head SET batch = $1, id = $2, versions = $${values.push(versions)}, ${counters} WHERE one = 1`;
    return [...clears, { name: nameOf(text), text, values }];
  }
}

const highest = (ids: number[]): number => ids.reduce((max, id) => Math.max(max, id));

/** PostgreSQL cuts names at 63 bytes. There are as many texts as combinations of tables that change together. */
const names = new Map<string, string>();
function nameOf(text: string): string {
  const name = names.get(text) ?? `b${names.size}`;
  names.set(text, name);
  return name;
}
