/**
 * What one replica holds in memory: all rows as of one batch. With every query for a request or a write comes the tail,
 * the batches after that one, which are applied before anything is decided or answered.
 */
import { changesIn, decodeLine } from '../../src/store/log-format.ts';
import { StoreError } from '../../src/store/model.ts';
import { type Changes, Tables } from '../../src/store/tables.ts';
import type { Address } from './address.ts';
import { type Result, type Row, type Session, type Statement, withSession } from './connection.ts';
import { damaged, HEAD_IS_NOT_LAST, mustBeReadable, type Position, readAll, unreadable } from './tables.ts';

/** The most batches that one statement brings. */
const TAIL_BATCHES = 128;
/** It begins with the last batch that the replica has, without its rows. */
const TAIL = `SELECT batch, id, CASE WHEN batch > $1 THEN rows END AS rows FROM changes
  WHERE batch >= $1 ORDER BY batch LIMIT ${TAIL_BATCHES}`;

export class Replica {
  readonly tables = new Tables();
  /** The last batch that is in them. */
  at: Position = { batch: -1, id: '' };
  readonly #address: Address;
  readonly #onFatal: (error: Error) => void;
  #loading: Promise<unknown> | undefined;
  #failure: StoreError | undefined;

  constructor(address: Address, now: () => number, onFatal: (error: Error) => void) {
    this.#address = address;
    this.#onFatal = onFatal;
    this.tables.now = now;
  }

  /** Reads all rows as of one moment, which take the place of those in memory at once. */
  async load(): Promise<void> {
    const { at, tables } = await withSession(this.#address, readAll);
    if (at.batch <= this.at.batch) return; // writes have gone on meanwhile
    tables.now = this.tables.now;
    Object.assign(this.tables, tables);
    this.at = at;
  }

  /**
   * The results of the statements, and after them the tail, which is applied. The tail is a statement of its own: one
   * that has waited for a lock does not see what was committed meanwhile.
   */
  async query(session: Session, ...statements: Statement[]): Promise<Result[]> {
    const from = this.at; // it moves meanwhile: takes and batches are on two sessions
    const results = await session.query(...statements, { name: 'tail', text: TAIL, values: [from.batch] });
    if (this.#failure) throw this.#failure;
    const [own, ...later] = results.pop()!.rows;
    if (own?.id !== from.id) {
      await this.#readAnew(session, from, own);
      await this.query(session);
      return results;
    }
    try {
      for (const { rows: line, ...at } of later) this.#applyNext(at as Position, line);
    } catch (error) {
      await this.#endIfNewer(session);
      throw this.fail(error as Error);
    }
    if (later.length + 1 === TAIL_BATCHES) await this.query(session);
    return results;
  }

  /** Applies a batch that this replica has written, unless the tail has brought it meanwhile. */
  apply(at: Position, changes: Changes): void {
    if (at.batch !== this.at.batch + 1) return;
    this.tables.apply(changes);
    this.at = at;
  }

  #applyNext(at: Position, line: string): void {
    if (at.batch <= this.at.batch) return;
    if (at.batch !== this.at.batch + 1) throw damaged(`batch ${this.at.batch + 1} is missing`);
    try {
      const content = decodeLine(Buffer.from(line));
      if (content === undefined) throw new Error('it is not as it was written');
      this.apply(at, changesIn(content));
    } catch (error) {
      throw unreadable(`batch ${at.batch}`, error as Error);
    }
  }

  /** Ends if a newer version has taken the store over. */
  mustBeReadable(format: number): void {
    try {
      mustBeReadable(format);
    } catch (error) {
      throw this.fail(error as Error);
    }
  }

  /** A batch or a row that cannot be read may be of a newer version, which is no damage. */
  async #endIfNewer(session: Session): Promise<void> {
    const [{ rows }] = await session.query('SELECT format FROM head');
    if (rows[0]) this.mustBeReadable(rows[0].format);
  }

  /** The batch `from` is not in `changes`: if it was trimmed, `first` is the oldest there. */
  async #readAnew(session: Session, from: Position, first: Row | undefined): Promise<void> {
    if (first !== undefined && first.batch > from.batch) {
      await this.#endIfNewer(session);
      this.#loading ??= this.load().finally(() => (this.#loading = undefined));
      return void (await this.#loading);
    }
    const [{ rows }] = await session.query('SELECT id FROM head');
    if (rows[0]?.id === from.id) throw this.fail(damaged(HEAD_IS_NOT_LAST));
    const why = 'the history in the database is not the one that this replica has read: it ends';
    throw this.fail(new StoreError('closed', why));
  }

  /** Nobody is answered any more. Returns the first reason. */
  fail(error: Error): StoreError {
    const failure = error instanceof StoreError ? error : new StoreError('closed', error.message);
    if (this.#failure === undefined) this.#onFatal(failure);
    this.#failure ??= failure;
    return this.#failure;
  }
}
