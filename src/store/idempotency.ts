/**
 * Idempotency records by id, and in queues by age: one of all records, and one for each caller. The queues are linked
 * lists, because a record may leave from the middle: in the lab, time passes faster for one caller than for the others.
 */
import { MAX_IDEMPOTENCY_RECORDS, MAX_IDEMPOTENCY_RECORDS_OF_KEY } from './bounds.ts';
import type { FirstResult } from './model.ts';

/** A record is one link in each of two queues. */
export class IdempotencyRecord {
  readonly id: string;
  made: FirstResult;
  older: IdempotencyRecord | undefined;
  newer: IdempotencyRecord | undefined;
  callersOlder: IdempotencyRecord | undefined;
  callersNewer: IdempotencyRecord | undefined;

  constructor(id: string, made: FirstResult) {
    [this.id, this.made] = [id, made];
  }
}

const OF_ALL = { older: 'older', newer: 'newer' } as const;
const OF_CALLER = { older: 'callersOlder', newer: 'callersNewer' } as const;

class RecordQueue {
  size = 0;
  oldest: IdempotencyRecord | undefined;
  #newest: IdempotencyRecord | undefined;
  readonly #links: typeof OF_ALL | typeof OF_CALLER;

  constructor(links: typeof OF_ALL | typeof OF_CALLER = OF_ALL) {
    this.#links = links;
  }

  push(record: IdempotencyRecord): void {
    const { older, newer } = this.#links;
    record[older] = this.#newest;
    if (this.#newest) this.#newest[newer] = record;
    else this.oldest = record;
    this.#newest = record;
    this.size++;
  }

  remove(record: IdempotencyRecord): void {
    const { older, newer } = this.#links;
    const [before, after] = [record[older], record[newer]];
    if (before) before[newer] = after;
    else this.oldest = after;
    if (after) after[older] = before;
    else this.#newest = before;
    this.size--;
  }

  /** The next newer record. */
  after(record: IdempotencyRecord): IdempotencyRecord | undefined {
    return record[this.#links.newer];
  }
}

const NONE = new RecordQueue();

/** The caller in a record's id (`idempotencyId`): neither a kind nor an Idempotency-Key holds a line feed. */
export const callerOf = (id: string): string => id.slice(id.indexOf('\n') + 1, id.lastIndexOf('\n'));

/** The first result under a key whose clock is set back by `ms`. No kept moment is before 1970. */
export const setBackBy = (ms: number, made: FirstResult): FirstResult => ({ ...made, at: Math.max(0, made.at - ms) });

export class IdempotencyRecords {
  readonly #byId = new Map<string, IdempotencyRecord>();
  readonly #byCaller = new Map<string, RecordQueue>();
  all = new RecordQueue(OF_ALL);

  get size(): number {
    return this.all.size;
  }

  get(id: string): FirstResult | undefined {
    return this.#byId.get(id)?.made;
  }

  /** The records of one caller, to be read only. */
  of(caller: string): RecordQueue {
    return this.#byCaller.get(caller) ?? NONE;
  }

  /** Adds a record as the newest, in place of one with the same id. */
  set(id: string, made: FirstResult): void {
    this.delete(id);
    const record = new IdempotencyRecord(id, made);
    this.#byId.set(id, record);
    this.all.push(record);
    const caller = callerOf(id);
    const own = this.#byCaller.get(caller) ?? new RecordQueue(OF_CALLER);
    if (own.size === 0) this.#byCaller.set(caller, own);
    own.push(record);
  }

  delete(id: string): void {
    const record = this.#byId.get(id);
    if (record === undefined) return;
    const caller = callerOf(id);
    const own = this.of(caller);
    this.#byId.delete(id);
    this.all.remove(record);
    own.remove(record);
    if (own.size === 0) this.#byCaller.delete(caller);
  }

  /** The clock of this caller's key is set back by `ms`: its records keep their ages. */
  setBack(caller: string, ms: number): void {
    const own = this.of(caller);
    for (let record = own.oldest; record; record = own.after(record)) record.made = setBackBy(ms, record.made);
  }

  clear(): void {
    this.#byId.clear();
    this.#byCaller.clear();
    this.all = new RecordQueue(OF_ALL);
  }

  *[Symbol.iterator](): Generator<[id: string, made: FirstResult]> {
    for (let record = this.all.oldest; record; record = record.newer) yield [record.id, record.made];
  }
}

/** The room that is left for records in one batch: of all callers together, and of each. */
export class RecordRooms {
  readonly ofAll: RecordRoom;
  readonly #ofCallers = new Map<string, RecordRoom>();
  /** Those before the batch. */
  readonly #records: IdempotencyRecords;

  constructor(records: IdempotencyRecords) {
    this.ofAll = new RecordRoom(MAX_IDEMPOTENCY_RECORDS, records.all);
    this.#records = records;
  }

  of(caller: string): RecordRoom {
    const room =
      this.#ofCallers.get(caller) ?? new RecordRoom(MAX_IDEMPOTENCY_RECORDS_OF_KEY, this.#records.of(caller));
    this.#ofCallers.set(caller, room);
    return room;
  }
}

/**
 * The number of records that one batch may still add: the bound minus the existing ones. A record that has ended makes
 * room.
 */
class RecordRoom {
  #left: number;
  #oldest: IdempotencyRecord | undefined;
  readonly #queue: RecordQueue;

  constructor(max: number, queue: RecordQueue) {
    this.#left = max - queue.size;
    this.#oldest = queue.oldest;
    this.#queue = queue;
  }

  /** Takes room for one record. If there is none, returns the record whose end will make room. */
  take(hasEnded: (record: IdempotencyRecord) => boolean): IdempotencyRecord | undefined {
    for (; this.#left <= 0 && this.#oldest && hasEnded(this.#oldest); this.#oldest = this.#queue.after(this.#oldest)) {
      this.#left++;
    }
    if (this.#left <= 0) return this.#oldest;
    this.#left--;
    return undefined;
  }
}
