/**
 * The log that all replicas share. A batch is appended by compare-and-swap: it counts if the batch before it is the
 * last. If another replica was first, nothing was kept, and all is decided again on what that one wrote. After the
 * third conflict in a row the head is locked for one batch: that queues, so nobody starves.
 *
 * Failure policy: when it cannot be known whether a batch was kept (the connection was lost, the wait for a standby
 * cancelled), the same batch is sent again, with the same number and id, until the answer is certain: the number can be
 * given once. Nothing else is appended before. Where another id stands at a number that this replica has, the history
 * is another one, and the replica ends.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { type Journal, type Operation, StoreError } from '../store/model.ts';
import type { State } from '../store/state.ts';
import { appendStatement, decodeLines, HistoryError, isCut, type Place, tailStatement } from './batches.ts';
import { type Link, LinkError, PATIENCE_MS, type Row, type Statement } from './link.ts';
import { newId } from './schema.ts';
import { loadState } from './snapshots.ts';
import { BEGIN, COMMIT, LOCK_HEAD } from './sql.ts';

const LOCK_AFTER_CONFLICTS = 3;
/** A lock for which nothing was left to write is given back. */
const LOCK_UNUSED_MS = 20;
/** So long a client waits for an outcome; then it is told that it is unknown. */
const OUTCOME_MAX_MS = 10_000;
/** Conflicts with nobody: the head and the log do not fit together. */
const MAX_MISFITS = 20;

/** A batch on its way. */
interface Sent {
  place: Place;
  statement: Statement;
  operations: Operation[];
  /** Whoever waits for it has been told that the outcome is unknown. */
  isGivenUp: boolean;
  resolve(others: Operation[] | undefined): void;
  reject(error: unknown): void;
}

export class PostgresJournal implements Journal {
  readonly #link: Link;
  readonly #onFatal: (error: unknown) => void;
  /** The newest batch that memory has. */
  at: Place = { batch: 0, id: '' };
  #state!: State;
  #take!: (operations: Operation[]) => void;
  /** Until its outcome is certain. */
  #sent: Sent | undefined;
  #conflicts = 0;
  #othersWrote = false;
  #isLocked = false;
  #unused: NodeJS.Timeout | undefined;
  #isClosed = false;
  readonly counts = { batches: 0, operations: 0, conflicts: 0, locks: 0, doubts: 0, followed: 0, bytes: 0 };

  constructor(link: Link, onFatal: (error: unknown) => void) {
    this.#link = link;
    this.#onFatal = onFatal;
  }

  async replay(state: State): Promise<void> {
    this.#state = state;
    this.at = await loadState(this.#link, state);
  }

  follow(take: (operations: Operation[]) => void): void {
    this.#take = take;
  }

  async append(operations: Operation[]): Promise<Operation[] | undefined> {
    const decidedOn = this.at;
    for (const until = performance.now() + PATIENCE_MS; this.#sent; await wait(20)) {
      if (performance.now() < until) continue;
      throw new StoreError('unavailable', 'what became of an earlier write is not known yet');
    }
    if (this.at !== decidedOn) return [];
    const place = { batch: this.at.batch + 1, id: newId() };
    const statement = appendStatement(operations, place.id, this.at, this.#state);
    return new Promise((resolve, reject) => {
      const sent = { place, statement, operations, isGivenUp: false, resolve, reject };
      this.#sent = sent;
      this.#send(sent).catch((error) => {
        if (this.#sent === sent) this.#sent = undefined;
        reject(error);
      });
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#unused);
  }

  /**
   * Takes rows that came from `from` on, over whichever connection, and applies what is new. They may hold our own
   * batch, whose own answer is still under way: then it is settled by this.
   */
  async arrived(rows: Row[], from: Place): Promise<void> {
    if (Number(rows[0]?.batch) !== from.batch) this.#end(`batch ${from.batch} is not there`);
    let others: Row[] = [];
    for (const row of rows) {
      const batch = Number(row.batch);
      const known = [from, this.at].find((place) => place.batch === batch);
      if (known && known.id !== row.id) this.#end(`batch ${batch} is another one`);
      if (batch <= this.at.batch) continue;
      if (row.id === this.#sent?.place.id) {
        this.#kept(this.#sent as Sent);
        await new Promise((resolve) => setImmediate(resolve)); // until the store has applied it
      } else others.push(row);
    }
    others = others.filter(({ batch }) => Number(batch) > this.at.batch);
    if (others.length > 0) this.#takeOthers(others);
  }

  /** Takes in what others have written. */
  async catchUp(): Promise<void> {
    for (let rows: Row[] | undefined; rows === undefined || isCut(rows); ) {
      const from = this.at;
      rows = (await this.#link.rows(tailStatement(from))).filter(({ slot }) => slot === null);
      await this.arrived(rows, from);
    }
  }

  /** Until it is certain whether it was kept. In doubt, the same batch goes again and again. */
  async #send(sent: Sent): Promise<void> {
    let inDoubt: NodeJS.Timeout | undefined;
    for (let misfits = 0; this.#sent === sent && !this.#isClosed; ) {
      let isUnderWay = false;
      try {
        if (this.#conflicts >= LOCK_AFTER_CONFLICTS && !this.#isLocked && !inDoubt) await this.#lock();
        if (this.#sent !== sent) break;
        const isLocked = this.#useLock();
        isUnderWay = true;
        const statements = isLocked ? [sent.statement, { text: COMMIT }] : [sent.statement];
        const [{ rowCount }] = await this.#link.ask(statements, inDoubt && OUTCOME_MAX_MS);
        isUnderWay = false;
        if (rowCount === 1) this.#kept(sent, isLocked);
        else if (++misfits > MAX_MISFITS) this.#end('its head does not fit it');
        else await this.catchUp();
      } catch (error) {
        const left = error instanceof LinkError ? error.left : undefined;
        if (left === 'unknown' && isUnderWay && !inDoubt) {
          this.counts.doubts++;
          inDoubt = setTimeout(() => giveUp(sent), OUTCOME_MAX_MS);
        }
        const isLost = left === 'unsent' || left === 'undone';
        if (left === undefined || (isLost && !inDoubt)) throw error;
        if (inDoubt) await wait(10 + 40 * Math.random());
      }
    }
    clearTimeout(inDoubt);
  }

  /** Waits for all who are before us, and takes in what they have written. */
  async #lock(): Promise<void> {
    const from = this.at;
    const [, , { rows }] = await this.#link.ask([
      { text: BEGIN },
      { name: 'lock', text: LOCK_HEAD },
      tailStatement(from),
    ]);
    this.counts.locks++;
    this.#isLocked = true;
    this.#unused = setTimeout(() => {
      if (this.#useLock()) this.#link.ask([{ text: COMMIT }]).catch(() => {});
    }, LOCK_UNUSED_MS);
    await this.arrived(
      rows.filter(({ slot }) => slot === null),
      from,
    );
  }

  #useLock(): boolean {
    clearTimeout(this.#unused);
    const isLocked = this.#isLocked;
    this.#isLocked = false;
    return isLocked;
  }

  #kept(sent: Sent, wasLocked = false): void {
    if (this.#sent !== sent) return;
    this.#sent = undefined;
    this.at = sent.place;
    this.#conflicts = wasLocked && this.#othersWrote ? LOCK_AFTER_CONFLICTS : 0;
    this.#othersWrote = false;
    this.counts.batches++;
    this.counts.operations += sent.operations.length;
    this.counts.bytes += (sent.statement.values as string[])[2].length;
    if (sent.isGivenUp) this.#take(sent.operations);
    else sent.resolve(undefined);
  }

  #takeOthers(rows: Row[]): void {
    const operations: Operation[] = [];
    try {
      for (const { batch, id, body } of rows) {
        const next = this.at.batch + 1;
        if (Number(batch) !== next) throw new Error(`batch ${next} is missing`);
        for (const { entry } of decodeLines(body, `batch ${batch}`)) operations.push(entry as Operation);
        this.at = { batch: next, id };
        this.counts.bytes += body.length;
      }
      this.#take(operations);
    } catch (error) {
      this.#end((error as Error).message);
    }
    this.counts.followed += operations.length;
    this.#othersWrote = true;
    const sent = this.#sent;
    if (sent === undefined || sent.place.batch > this.at.batch) return;
    this.counts.conflicts++; // its number is another's: it was not kept, and cannot be
    this.#conflicts++;
    this.#sent = undefined;
    if (!sent.isGivenUp) sent.resolve([]);
  }

  /** From here nothing can be told that is true. */
  #end(why: string): never {
    const error = new HistoryError(`the log in the database is not the one this replica has read: ${why}`);
    this.#onFatal(error);
    throw error;
  }
}

function giveUp(sent: Sent): void {
  sent.isGivenUp = true;
  sent.reject(new StoreError('unknown', 'the database does not tell whether this was kept'));
}
