/**
 * Batches of writes. Each is a transaction that locks the head first: so batches of all replicas come one after the
 * other, none is decided twice, and none deadlocks with another. It is decided on memory, which is up to date under the
 * lock.
 */
import { setTimeout as wait } from 'node:timers/promises';
import type { Commit } from '../../src/store/group-commit.ts';
import { batchLine } from '../../src/store/log-format.ts';
import { type Counted, type Id, StoreError } from '../../src/store/model.ts';
import type { Change, Changes } from '../../src/store/tables.ts';
import type { Connection, Session, Statement } from './connection.ts';
import type { Replica } from './replica.ts';
import { damaged, deleteRows, HEAD_IS_NOT_LAST, newId, type Position, putBatch, putRows } from './tables.ts';

const DOUBT_MAX_MS = 10_000;
const RETRY_MS = 100;

const LOCK = { name: 'lock', text: 'SELECT id, format FROM head WHERE one = 1 FOR UPDATE' };
/** It updates, so that its own COMMIT waits for the standby: the one in doubt may not have waited. */
const OUTCOME = `UPDATE head SET batch = batch
  RETURNING EXISTS (SELECT FROM changes WHERE batch = $1 AND id = $2) AS "isCommitted"`;

const idOf = ({ id }: Change): Id => id;

export class Batches {
  readonly #connection: Connection;
  readonly #replica: Replica;
  /** Batches whose outcome had to be found out. */
  doubts = 0;

  constructor(connection: Connection, replica: Replica) {
    this.#connection = connection;
    this.#replica = replica;
  }

  readonly commit: Commit = (decide) =>
    this.#withHead(async (session) => {
      const changes = decide();
      if (changes.length === 0) return void (await session.rollback());
      const at: Position = { batch: this.#replica.at.batch + 1, id: newId() };
      const statements = this.#statements(at, changes);
      const until = performance.now() + DOUBT_MAX_MS;
      try {
        await session.query(...statements, 'COMMIT');
      } catch (error) {
        if (await session.rollback()) throw error;
        this.doubts++;
        if (!(await this.#isCommitted(at, until))) throw error;
      }
      this.#replica.apply(at, changes);
    });

  /** In a transaction that has locked the head, with memory up to date. The work ends it. */
  #withHead<T>(work: (session: Session) => Promise<T>): Promise<T> {
    return this.#connection.run(async (session) => {
      const [, { rows }] = await this.#replica.query(session, 'BEGIN', LOCK);
      if (rows[0]) this.#replica.mustBeReadable(rows[0].format);
      if (rows[0]?.id === this.#replica.at.id) return work(session);
      throw this.#replica.fail(damaged(HEAD_IS_NOT_LAST));
    });
  }

  /**
   * After a COMMIT without an answer. The lost transaction holds the head until it has ended, so who has locked the head
   * anew sees how it ended. If the database stays away for too long, the next batch finds out.
   */
  async #isCommitted({ batch, id }: Position, until: number): Promise<boolean> {
    for (;;) {
      try {
        return await this.#withHead(async (session) => {
          const [{ rows }] = await session.query({ text: OUTCOME, values: [batch, id] }, 'COMMIT');
          return rows[0].isCommitted;
        });
      } catch {
        if (performance.now() > until) {
          throw new StoreError('unknown', 'the connection was lost in the last step of a write: it may have been kept');
        }
        await wait(RETRY_MS);
      }
    }
  }

  #statements(at: Position, changes: Changes): Statement[] {
    const { lastIds, now } = this.#replica.tables;
    const statements: Statement[] = [];
    for (const { name, rows } of changes) {
      const put = rows.filter(({ text }) => text !== undefined);
      const removed = rows.filter(({ text }) => text === undefined);
      const texts = rows.flatMap(({ text }) => text ?? []);
      if (put.length > 0) statements.push(putRows(name, put.map(idOf), texts));
      if (removed.length > 0) statements.push(deleteRows(name, removed.map(idOf)));
      if (!(name in lastIds)) continue;
      const numbers = rows.map(idOf) as number[];
      lastIds[name as Counted] = numbers.reduce((a, b) => Math.max(a, b), lastIds[name as Counted]);
    }
    const line = batchLine(at.batch, now(), changes).toString().slice(0, -1);
    return [...statements, ...putBatch(at, line, lastIds)];
  }
}
