/**
 * What one replica holds in memory: all rows as of one batch. Each statement of a request or of a write brings the rows
 * of later batches, the tail, which are applied before anything is decided or answered.
 */
import { changesIn, decodeLine } from '../store/file/log-format.ts';
import { StoreError, TABLE_NAMES } from '../store/model.ts';
import { type Changes, Tables } from '../store/tables.ts';
import type { Address } from './address.ts';
import { type Result, type Session, type Statement, withSession } from './connection.ts';
import { DatabaseError } from './errors.ts';
import { damaged, type Position, readAll } from './tables.ts';

/** The most batches that one statement brings. */
const TAIL_BATCHES = 128;
const TAIL = `SELECT batch, id, CASE WHEN batch > $1 THEN rows END AS rows FROM changes
  WHERE batch >= $1 ORDER BY batch LIMIT ${TAIL_BATCHES}`;

export class Replica {
  readonly tables: Tables;
  readonly #address: Address;
  readonly #onFatal: (error: Error) => void;
  #at: Position = { batch: -1, id: '' };
  #loading: Promise<void> | undefined;
  #failure: StoreError | undefined;

  constructor(address: Address, now: () => number, onFatal: (error: Error) => void) {
    this.#address = address;
    this.#onFatal = onFatal;
    this.tables = new Tables(now);
  }

  get at(): Position {
    return this.#at;
  }

  /** The batches behind the position of this replica, and the last one that it has, without its rows. */
  get tail(): Statement {
    return { name: 'tail', text: TAIL, values: [this.#at.batch] };
  }

  /**
   * Applies what `tail` has brought, and asks on while there is more. `from`: where this replica was when it was sent.
   * Throws if this replica must end or load anew; the session may then be in the middle of a transaction.
   */
  async follow(session: Session, from: Position, { rows }: Result): Promise<void> {
    if (this.#failure) throw this.#failure;
    const [own, ...later] = rows;
    if (own !== undefined && own.batch > from.batch) {
      this.#loading ??= this.load().finally(() => (this.#loading = undefined));
      await this.#loading;
      throw new DatabaseError('its tail no longer reached back to this replica, which has read all rows anew');
    }
    if (own?.id !== from.id) {
      const why = 'the history in the database is not the one that this replica has read: it ends';
      throw this.fail(new StoreError('closed', why));
    }
    for (const { batch, id, rows } of later) this.#apply(batch, id, rows);
    if (rows.length < TAIL_BATCHES) return;
    const next = this.#at;
    const [more] = await session.query(this.tail);
    await this.follow(session, next, more);
  }

  /** Applies a batch that this replica has written, unless the tail has brought it meanwhile. */
  apply(batch: number, id: string, changes: Changes): void {
    if (batch !== this.#at.batch + 1) return;
    this.tables.apply(changes, batch);
    this.#at = { batch, id };
  }

  #apply(batch: number, id: string, rows: string): void {
    if (batch <= this.#at.batch) return;
    if (batch !== this.#at.batch + 1) throw this.fail(damaged(`batch ${this.#at.batch + 1} is missing`));
    try {
      this.apply(batch, id, changesOf(batch, rows));
    } catch (error) {
      throw this.fail(error as StoreError);
    }
  }

  /** All rows as of one moment take the place of those in memory at once. */
  async load(onProgress?: (done: number, total: number) => void): Promise<void> {
    const { at, versions, lastIds, rows } = await withSession(this.#address, (session) => readAll(session, onProgress));
    for (const name of TABLE_NAMES) {
      this.tables.apply([{ name, clears: true, rows: rows[name], deleted: [] }], versions[name] ?? 0);
    }
    this.tables.begin(lastIds);
    this.#at = at;
  }

  /** Nobody is answered any more. Returns the first reason. */
  fail(error: StoreError): StoreError {
    if (this.#failure === undefined) this.#onFatal(error);
    this.#failure ??= error;
    return this.#failure;
  }
}

/** The rows of a batch, from the line that the file engine would have written. */
export function changesOf(batch: number, line: string): Changes {
  if (line === '') return []; // the first batch of a history
  try {
    const content = decodeLine(Buffer.from(line));
    if (content === undefined) throw new Error('it is not as it was written');
    return changesIn(content);
  } catch (error) {
    throw damaged(`batch ${batch}: ${(error as Error).message}`);
  }
}
