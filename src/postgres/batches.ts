/**
 * Batches of writes. Each is a transaction that locks the head first: so batches of all replicas come one after the
 * other, none is decided twice, and none deadlocks with another. It is decided on memory, which is up to date under the
 * lock.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { batchLine } from '../store/file/log-format.ts';
import { COUNTED, type Counted, StoreError, schemaOf, TABLE_NAMES } from '../store/model.ts';
import type { Commit } from '../store/store.ts';
import type { Changes } from '../store/tables.ts';
import type { Connection, Session, Statement } from './connection.ts';
import { DatabaseError } from './errors.ts';
import type { Replica } from './replica.ts';
import { damaged, deleteRows, HEAD_IS_NOT_LAST, newId, putRows } from './tables.ts';

const DOUBT_MAX_MS = 10_000;
const RETRY_MS = 100;

const LOCK = { name: 'lock', text: 'SELECT id FROM head WHERE one = 1 FOR UPDATE' };
const COMMITTED = 'SELECT 1 FROM changes WHERE batch = $1 AND id = $2';
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

  readonly commit: Commit = (decide) =>
    this.#withHead(async (session) => {
      const changes = decide();
      if (changes.length === 0) return void (await session.query('ROLLBACK').catch(() => {}));
      const batch = this.#replica.at.batch + 1;
      const id = newId();
      const statements = this.#statements(batch, id, changes);
      const until = performance.now() + DOUBT_MAX_MS;
      try {
        await session.query(...statements, 'COMMIT');
      } catch (error) {
        if (!(error instanceof DatabaseError && error.isLost)) throw error;
        this.counts.doubts++;
        if (!(await this.#isCommitted(batch, id, until))) throw new StoreError('unavailable', error.message);
      }
      this.#replica.apply(batch, id, changes);
      this.counts.batches++;
    });

  /** In a transaction that has locked the head, with memory up to date. The work ends it. */
  #withHead<T>(work: (session: Session) => Promise<T>): Promise<T> {
    return this.#connection.transaction(async (session) => {
      const [, { rows }] = await this.#replica.query(session, 'BEGIN', LOCK);
      if (rows[0]?.id !== this.#replica.at.id) throw this.#replica.fail(damaged(HEAD_IS_NOT_LAST));
      return work(session);
    });
  }

  /**
   * After a COMMIT without an answer. The lost transaction holds the head until it has ended, so who has locked the head
   * anew sees how it ended. If the database stays away for too long, the next batch finds out.
   */
  async #isCommitted(batch: number, id: string, until: number): Promise<boolean> {
    for (;;) {
      try {
        return await this.#withHead(async (session) => {
          const [{ rows }] = await session.query({ text: COMMITTED, values: [batch, id] }, CONFIRM, 'COMMIT');
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
    const { lastIds } = tables;
    const versions = Object.fromEntries(TABLE_NAMES.map((name) => [name, tables.of(name).version]));
    const statements: Statement[] = [];
    for (const { name, clears, rows, texts, deleted } of changes) {
      if (clears) statements.push(`DELETE FROM ${name}`);
      if (rows.length > 0) statements.push(putRows(name, texts ?? rows.map(schemaOf(name).json)));
      if (deleted.length > 0) statements.push(deleteRows(name, deleted));
      const ids = [...rows.map((row) => row.id), ...deleted] as number[];
      if (name in lastIds) lastIds[name as Counted] = highest([clears ? 0 : lastIds[name as Counted], ...ids]);
      versions[name] = batch;
    }
    const line = batchLine(batch, this.#now(), changes).toString().slice(0, -1);
    const counters = COUNTED.map((name, at) => `${name} = $${at + 4}`);
    const head = `UPDATE head SET batch = $1, id = $2, versions = $3, ${counters}`;
    return [
      ...statements,
      { name: 'changes', text: 'INSERT INTO changes (batch, id, rows) VALUES ($1, $2, $3)', values: [batch, id, line] },
      { name: 'head', text: head, values: [batch, id, versions, ...COUNTED.map((name) => lastIds[name])] },
    ];
  }
}

const highest = (ids: number[]): number => ids.reduce((max, id) => Math.max(max, id));
