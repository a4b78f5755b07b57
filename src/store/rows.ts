/** The kinds of tables in memory. Rows are never changed in place: whoever holds one holds a snapshot of it. */
import { blockOf, hasEnded, type Id, indexInBlock, type Page, type Replay, type Row } from './model.ts';

/** What every kind has. `put` and `delete` return the row that was there before. */
export interface MemoryTable<R extends Row> {
  readonly size: number;
  revision: number;
  get(id: Id): R | undefined;
  put(row: R): R | undefined;
  delete(id: Id): R | undefined;
  clear(): void;
  /** All rows, in the order in which they are written to a file. */
  all(): readonly R[];
}

export type CountedRow = Row & { readonly id: number };

const statusOf = (row: object): string => (row as { status?: string }).status ?? '';
const NONE: readonly never[] = [];

/** For speed: fills what lies before the element, since an array with holes is slower. */
function setAt<T>(array: T[], index: number, value: T, filler: T): void {
  while (array.length < index) array.push(filler);
  array[index] = value;
}

type Block<R> = (R | undefined)[];

/**
 * Rows with ids that the store gives. A removed row leaves a hole, and a block without rows takes almost no memory. Rows
 * can also be found by other values than their ids, each of which belongs to one row at most: `valuesOf` says which a
 * row has.
 */
export class CountedRows<R extends CountedRow, V = never> implements MemoryTable<R> {
  size = 0;
  revision = 0;
  /** The highest id that was ever given. */
  lastId = 0;
  #blocks: (Block<R> | undefined)[] = [];
  #blockRevisions: number[] = [];
  /** By status, how many rows of each block have it: a page of a rare status skips the blocks without it. */
  readonly #counts = new Map<string, number[]>();
  #changes = 0;
  readonly #byValue = new Map<V, R>();
  readonly valuesOf: (row: R) => readonly V[];

  constructor(valuesOf: (row: R) => readonly V[] = () => NONE) {
    this.valuesOf = valuesOf;
  }

  find(value: V): R | undefined {
    return this.#byValue.get(value);
  }

  get(id: number): R | undefined {
    return this.#blocks[blockOf(id)]?.[indexInBlock(id)];
  }

  put(row: R): R | undefined {
    return this.#set(row.id, row);
  }

  delete(id: number): R | undefined {
    return this.#set(id, undefined);
  }

  clear(): void {
    this.#blocks = [];
    this.#blockRevisions = [];
    this.size = 0;
    this.lastId = 0;
    this.#counts.clear();
    this.#byValue.clear();
  }

  blockRevision(block: number): number {
    return this.#blockRevisions[block] ?? 0;
  }

  page({ after = 0, limit, status }: { after?: number; limit: number; status?: string }): Page<R> {
    const items: R[] = [];
    const first = Math.max(0, after) + 1;
    const counts = status === undefined ? undefined : (this.#counts.get(status) ?? []);
    for (let number = blockOf(first); number < this.#blocks.length; number++) {
      if (counts !== undefined && !counts[number]) continue;
      const block = this.#blocks[number] ?? [];
      for (let index = number === blockOf(first) ? indexInBlock(first) : 0; index < block.length; index++) {
        const row = block[index];
        if (row === undefined || (status !== undefined && statusOf(row) !== status)) continue;
        if (items.length === limit) return { items, more: true };
        items.push(row);
      }
    }
    return { items, more: false };
  }

  all(): R[] {
    const rows = new Array<R>(this.size); // for speed: with room for all, which halves the time
    let size = 0;
    for (const block of this.#blocks) {
      for (const row of block ?? []) if (row !== undefined) rows[size++] = row;
    }
    return rows;
  }

  #set(id: number, row: R | undefined): R | undefined {
    this.lastId = Math.max(this.lastId, id);
    const number = blockOf(id);
    const block = this.#blocks[number] ?? [];
    const before = block[indexInBlock(id)];
    if (row === before) return before;
    if (block.length === 0) setAt(this.#blocks, number, block, undefined);
    setAt(block, indexInBlock(id), row, undefined);
    // Never the same number twice, though a block may be removed and made again.
    setAt(this.#blockRevisions, number, ++this.#changes, 0);
    if (before) {
      this.#count(before, -1);
      for (const value of this.valuesOf(before)) {
        if (this.#byValue.get(value) === before) this.#byValue.delete(value);
      }
    }
    if (row) {
      this.#count(row, 1);
      for (const value of this.valuesOf(row)) this.#byValue.set(value, row);
    } else if (block.every((one) => one === undefined)) {
      this.#blocks[number] = undefined;
      this.#blockRevisions[number] = 0;
    }
    return before;
  }

  #count(row: R, by: 1 | -1): void {
    this.size += by;
    const counts = this.#counts.get(statusOf(row)) ?? [];
    if (counts.length === 0) this.#counts.set(statusOf(row), counts);
    setAt(counts, blockOf(row.id), (counts[blockOf(row.id)] ?? 0) + by, 0);
  }
}

/** Rows whose ids are not the store's to give. Numbers and bigints are in one order. */
export class MapRows<R extends Row> implements MemoryTable<R> {
  revision = 0;
  protected readonly byId = new Map<Id, R>();
  /** The sorted ids; undefined: they must be sorted again. */
  #ids: Id[] | undefined;

  get size(): number {
    return this.byId.size;
  }

  get(id: Id): R | undefined {
    return this.byId.get(id);
  }

  put(row: R): R | undefined {
    const before = this.byId.get(row.id);
    this.byId.set(row.id, row);
    if (before === undefined) this.#ids?.splice(indexAfter(this.#ids, row.id), 0, row.id);
    return before;
  }

  delete(id: Id): R | undefined {
    const before = this.byId.get(id);
    if (this.byId.delete(id)) this.#ids = undefined;
    return before;
  }

  clear(): void {
    this.byId.clear();
    this.#ids = undefined;
  }

  all(): readonly R[] {
    return this.#sortedIds().map((id) => this.byId.get(id)!);
  }

  page({ after, limit }: { after?: Id; limit: number }): Page<R> {
    const ids = this.#sortedIds();
    const from = after === undefined ? 0 : indexAfter(ids, after);
    const items = ids.slice(from, from + limit).map((id) => this.byId.get(id)!);
    return { items, more: from + limit < ids.length };
  }

  #sortedIds(): readonly Id[] {
    this.#ids ??= [...this.byId.keys()].sort((a, b) => (a < b ? -1 : 1));
    return this.#ids;
  }
}

/** The index of the first id after this one, by binary search. */
function indexAfter(ids: readonly Id[], id: Id): number {
  let [from, to] = [0, ids.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (ids[middle] > id) to = middle;
    else from = middle + 1;
  }
  return from;
}

/**
 * The replays of Idempotency-Keys. A replay that is 24 hours old counts as absent at once, and leaves memory with a
 * later batch. The log does not say so: whoever reads it sees that the replay has ended.
 *
 * They stand in the order in which they were put. The replays of one API key are therefore in the order of their
 * moments: an extra that moves a moment moves all of that key's.
 */
export class Replays extends MapRows<Replay> {
  readonly #now: () => number;
  readonly #onDrop: (row: Replay) => void;
  readonly #byKeyId = new Map<number, Map<Id, Replay>>();

  constructor(now: () => number, onDrop: (row: Replay) => void) {
    super();
    this.#now = now;
    this.#onDrop = onDrop;
  }

  override get(id: Id): Replay | undefined {
    const replay = super.get(id);
    return replay && !hasEnded(replay, this.#now()) ? replay : undefined;
  }

  override put(replay: Replay): Replay | undefined {
    const before = this.delete(replay.id); // so that an Idempotency-Key that is used again goes to the end
    const ofKey = this.#byKeyId.get(replay.keyId) ?? new Map<Id, Replay>();
    this.#byKeyId.set(replay.keyId, ofKey.set(replay.id, replay));
    super.put(replay);
    return before;
  }

  override delete(id: Id): Replay | undefined {
    const before = super.delete(id);
    if (before === undefined) return undefined;
    const ofKey = this.#byKeyId.get(before.keyId)!;
    ofKey.delete(id);
    if (ofKey.size === 0) this.#byKeyId.delete(before.keyId);
    return before;
  }

  override clear(): void {
    super.clear();
    this.#byKeyId.clear();
  }

  /** The oldest first, so that they are in the order of their moments again when they are read. */
  override all(): readonly Replay[] {
    return [...this.byId.values()].sort((a, b) => a.at - b.at || (a.id < b.id ? -1 : 1));
  }

  ofKey(keyId: number): ReadonlyMap<Id, Replay> {
    const ofKey = this.#byKeyId.get(keyId) ?? new Map<Id, Replay>();
    this.dropEnded(ofKey);
    return ofKey;
  }

  /** Drops the replays at the front that have ended. */
  dropEnded(rows: ReadonlyMap<Id, Replay> = this.byId): void {
    const now = this.#now();
    for (const replay of rows.values()) {
      if (!hasEnded(replay, now)) return;
      this.delete(replay.id);
      this.#onDrop(replay);
    }
  }
}
