/**
 * The log that all replicas share, with optimistic concurrency. A batch counts if the batch before it is the last. If
 * another replica was first, nothing was kept, and the batch is decided again on top of the other's changes. After the
 * third conflict in a row the head is locked for one batch: that queues, so nobody starves.
 *
 * If the outcome of a batch is unknown (the connection was lost, the wait for a standby cancelled), it is sent again,
 * with the same number and id, until the outcome is certain: a number is given once. Nothing else is appended before.
 * If another id stands at a number that this replica has, the history is another one, and the replica ends.
 */
import { setTimeout as wait } from 'node:timers/promises';
import type { EngineOptions } from '../engine.ts';
import { encode } from '../store/change-json.ts';
import { seal } from '../store/file/format.ts';
import { type ApiKey, type Change, type Journal, StoreError } from '../store/model.ts';
import type { State } from '../store/state.ts';
import { DISK_FULL, type Link, LinkError, type Row, type Statement } from './link.ts';
import { APPEND, BEGIN, COMMIT, FENCE_SLOT, LOCK_HEAD, TAIL_ROWS, TAKE } from './sql.ts';
import { damaged, decodeLines, loadSnapshot, newId, type Place } from './tables.ts';
import type { Troubles } from './troubles.ts';

const LOCK_AFTER_CONFLICTS = 3;
/** A lock that no batch has used is given back after so long. */
const LOCK_UNUSED_MS = 20;
/** The longest wait of a client for an outcome; then the answer is that it is unknown. */
const OUTCOME_MAX_MS = 10_000;
const REFUSED = 'writes are refused';

interface Sent {
  place: Place;
  statement: Statement;
  changes: Change[];
  began: number;
  resolve(others: Change[] | undefined): void;
  reject(error: unknown): void;
}

type Options = Pick<EngineOptions, 'onFatal' | 'onBatch'> & { troubles?: Troubles };

export class PostgresJournal implements Journal {
  readonly #link: Link;
  readonly #options: Options;
  /** The newest batch in memory. */
  at: Place = { batch: 0, id: '' };
  #state!: State;
  /** Set once the whole log is read. */
  #follower: ((changes: Change[]) => void) | undefined;
  /** The batch whose outcome is not certain. */
  #sent: Sent | undefined;
  #conflicts = 0;
  /** The head of the log is locked for the next batch, until this timer ends. */
  #lock: NodeJS.Timeout | undefined;
  /**
   * The head is being locked, perhaps for a batch that has ended meanwhile. Nothing is appended before that is done: a
   * batch sent behind it without a COMMIT would be told as kept while its transaction is still open.
   */
  #locking: Promise<void> | undefined;
  readonly counts = { batches: 0, conflicts: 0, locks: 0, doubts: 0 };

  constructor(link: Link, options: Options) {
    this.#link = link;
    this.#options = options;
  }

  async replay(state: State): Promise<void> {
    this.#state = state;
    this.at = await loadSnapshot(this.#link, state);
    await this.catchUp();
  }

  follow(follower: (changes: Change[]) => void): void {
    this.#follower = follower;
  }

  async append(changes: Change[]): Promise<Change[] | undefined> {
    if (this.#sent) throw new StoreError('unavailable', 'the outcome of an earlier write is not known yet');
    const place = { batch: this.at.batch + 1, id: newId() };
    const began = performance.now();
    return new Promise((resolve, reject) => {
      this.#sent = { place, statement: this.#statement(changes, place), changes, began, resolve, reject };
      this.#send(this.#sent).catch((error) => {
        if (this.#sent?.place === place) this.#sent = undefined;
        this.#options.troubles?.failed(REFUSED, error);
        reject(error.code === DISK_FULL ? new StoreError('full', error.message) : error);
      });
    });
  }

  /** An unknown outcome stays unknown. */
  async close(): Promise<void> {
    this.#sent = undefined;
  }

  /**
   * Takes in rows of the log that were asked for from `from` on, over any connection, and fetches further ones. They
   * may hold our own batch, whose own answer is still under way: then they settle it.
   */
  async arrived(rows: Row[], from: Place): Promise<void> {
    const tail = rows.filter(({ batch }) => batch !== null);
    if (Number(tail[0]?.batch) !== from.batch) this.#end(`batch ${from.batch} is not there`);
    for (const row of tail) {
      const batch = Number(row.batch);
      const known = [from, this.at].find((place) => place.batch === batch);
      if (known && known.id !== row.id) this.#end(`batch ${batch} is another one`);
      if (batch <= this.at.batch) continue;
      if (row.id === this.#sent?.place.id) {
        this.#kept(this.#sent as Sent);
        await new Promise((resolve) => setImmediate(resolve)); // until the store has applied it
      } else this.#readOther(row);
    }
    if (tail.length === TAIL_ROWS) await this.catchUp();
  }

  async catchUp(): Promise<void> {
    const from = this.at;
    await this.arrived(await this.#link.rows(tailFrom(from)), from);
  }

  /** Sends a batch until its outcome is certain: while that is in doubt, the same batch again and again. */
  async #send(sent: Sent): Promise<void> {
    let inDoubt: NodeJS.Timeout | undefined;
    while (this.#sent === sent) {
      if (inDoubt) await wait(10 + 40 * Math.random());
      let isUnderWay = false;
      try {
        if (this.#conflicts >= LOCK_AFTER_CONFLICTS && !this.#lock && !inDoubt) {
          this.#locking ??= this.#lockHead().finally(() => void (this.#locking = undefined));
        }
        await this.#locking;
        if (this.#sent !== sent) break;
        const statements = this.#lock ? [sent.statement, { text: COMMIT }] : [sent.statement];
        clearTimeout(this.#lock);
        this.#lock = undefined;
        isUnderWay = true;
        const [{ rowCount }] = await this.#link.ask(statements);
        isUnderWay = false;
        if (rowCount === 1) this.#kept(sent);
        else await this.catchUp();
        if (this.#sent === sent && !inDoubt) throw new StoreError('unavailable', 'the head of the log does not fit it');
      } catch (error) {
        if (!(error instanceof LinkError) || (error.isUndone && !inDoubt)) throw error;
        if (!isUnderWay || inDoubt) continue;
        this.counts.doubts++;
        inDoubt = setTimeout(() => {
          sent.resolve = (others) => others ?? this.#follower?.(sent.changes);
          sent.reject(new StoreError('unknown', 'the database does not tell whether this was kept'));
        }, OUTCOME_MAX_MS);
      }
    }
    clearTimeout(inDoubt);
  }

  /** Waits for all replicas before us, and takes in their batches. */
  async #lockHead(): Promise<void> {
    const from = this.at;
    const [, , { rows }] = await this.#link.ask([{ text: BEGIN }, { name: 'lock', text: LOCK_HEAD }, tailFrom(from)]);
    this.counts.locks++;
    this.#lock = setTimeout(() => {
      this.#lock = undefined;
      this.#link.ask([{ text: COMMIT }]).catch(() => {});
    }, LOCK_UNUSED_MS);
    await this.arrived(rows, from);
  }

  #kept(sent: Sent): void {
    if (this.#sent !== sent) return;
    this.#sent = undefined;
    this.at = sent.place;
    this.#conflicts = 0;
    this.counts.batches++;
    this.#options.troubles?.worked(REFUSED);
    this.#options.onBatch?.(performance.now() - sent.began);
    sent.resolve(undefined);
  }

  #readOther({ batch, id, body }: Row): void {
    const next = this.at.batch + 1;
    if (Number(batch) !== next) this.#end(`batch ${next} is missing`);
    try {
      const changes = [...decodeLines(body, `batch ${batch}`)].map(({ entry }) => entry as Change);
      if (this.#follower) this.#follower(changes);
      else this.#state.apply(changes);
    } catch (error) {
      if (!this.#follower) throw error;
      this.#end((error as Error).message);
    }
    this.at = { batch: next, id };
    const sent = this.#sent;
    if (sent?.place.batch !== next) return;
    this.counts.conflicts++; // another batch has its number: it was not kept, and cannot be
    this.#conflicts++;
    this.#sent = undefined;
    sent.resolve([]);
  }

  /** The statement also sets the limits that the changes alter; of two changes to a key, those of the last. */
  #statement(changes: Change[], { batch, id }: Place): Statement {
    const limits = new Map<string, object>();
    for (const change of changes) {
      const { op } = change;
      if (op === 'setKey') limits.set(change.key.id, limitsOf(change.key));
      if (op !== 'advance') continue;
      const before = limits.get(change.key) ?? limitsOf(this.#state.keys.get(change.key) as ApiKey);
      limits.set(change.key, { ...before, ms: change.ms }); // no batch goes on behind such a change
    }
    const body = changes.map((change) => seal(encode(change))).join('');
    const values = [batch, id, body, this.at.id, JSON.stringify([...limits.values()])];
    return { name: 'append', text: APPEND, values };
  }

  /** Ends the replica: from here on no true answer is possible. */
  #end(why: string): never {
    if (!this.#follower) throw damaged(why);
    const error = new StoreError('unavailable', `the log in the database is not the one this replica has read: ${why}`);
    this.#options.onFatal?.(error);
    throw error;
  }
}

/** The log behind `place`, whose row comes first. The statement is a commit, too: see FENCE_SLOT. */
function tailFrom(place: Place): Statement {
  return { name: 'take', text: TAKE, values: [[FENCE_SLOT], [0], place.batch, 0] };
}

const limitsOf = ({ slot, perMinute, perDay }: ApiKey) => ({ slot, perMinute, perDay, ms: 0 });
