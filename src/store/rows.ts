/** The kinds of tables in memory. Rows are never changed in place: whoever holds one holds a snapshot of it. */
import { BLOCK_ROWS, blockOf, hasEnded, type Id, type Page, type Replay, type Row } from './model.ts';

/** What one kind of table has to do. `put` and `delete` return the row that was there before. */
export interface RowMap<R extends Row> {
  readonly size: number;
  /** The batch that last changed the table. */
  version: number;
  get(id: Id): R | undefined;
  put(row: R): R | undefined;
  delete(id: Id): R | undefined;
  clear(): void;
  /** All rows, in the order in which they are written to a file. */
  all(): readonly R[];
}

/** How many rows have each status. */
type StatusCounts = Record<string, number>;

interface Block<R> {
  readonly rows: (R | undefined)[];
  readonly counts: StatusCounts;
  version: number;
}

/** A page of a rare status skips blocks without it, and so many blocks together if none of them has it. */
const REGION_BLOCKS = 64;

const regionOf = (block: number): number => Math.floor(block / REGION_BLOCKS);
const statusOf = (row: object): string => (row as { status?: string }).status ?? '';

/**
 * Rows with ids that the store gives. A removed row leaves a hole, and a block without rows takes no memory. They can
 * also be found by other values than their ids, each of which belongs to one row at most.
 */
export class CountedRows<R extends Row & { readonly id: number }, V = never> implements RowMap<R> {
  size = 0;
  version = 0;
  /** The highest id that was ever given. */
  lastId = 0;
  #blocks: (Block<R> | undefined)[] = [];
  #regions: StatusCounts[] = [];
  #changes = 0;
  readonly #byValue = new Map<V, R>();
  readonly valuesOf: ((row: R) => readonly V[]) | undefined;

  constructor(valuesOf?: (row: R) => readonly V[]) {
    this.valuesOf = valuesOf;
  }

  find(value: V): R | undefined {
    return this.#byValue.get(value);
  }

  get(id: Id): R | undefined {
    return this.#blocks[blockOf(id as number)]?.rows[((id as number) - 1) % BLOCK_ROWS];
  }

  put(row: R): R | undefined {
    this.lastId = Math.max(this.lastId, row.id);
    const number = blockOf(row.id);
    while (this.#blocks.length <= number) this.#blocks.push(undefined);
    while (this.#regions.length <= regionOf(number)) this.#regions.push({});
    const block = (this.#blocks[number] ??= { rows: [], counts: {}, version: 0 });
    const at = (row.id - 1) % BLOCK_ROWS;
    while (block.rows.length < at) block.rows.push(undefined);
    const before = block.rows[at];
    block.rows[at] = row;
    this.#changed(block, before, row);
    return before;
  }

  delete(id: Id): R | undefined {
    this.lastId = Math.max(this.lastId, id as number);
    const before = this.get(id);
    if (before === undefined) return undefined;
    const number = blockOf(before.id);
    const block = this.#blocks[number]!;
    block.rows[(before.id - 1) % BLOCK_ROWS] = undefined;
    this.#changed(block, before, undefined);
    if (block.rows.every((row) => row === undefined)) this.#blocks[number] = undefined;
    return before;
  }

  clear(): void {
    [this.#blocks, this.#regions, this.size, this.lastId] = [[], [], 0, 0];
    this.#byValue.clear();
  }

  blockVersion(block: number): number {
    return this.#blocks[block]?.version ?? 0;
  }

  page({ after = 0, limit, status }: { after?: number; limit: number; status?: string }): Page<R> {
    const items: R[] = [];
    const first = Math.max(0, after) + 1;
    for (let number = blockOf(first); number < this.#blocks.length; number++) {
      if (status !== undefined && !this.#regions[regionOf(number)][status]) {
        number = (regionOf(number) + 1) * REGION_BLOCKS - 1; // the last of its region
        continue;
      }
      const block = this.#blocks[number];
      if (block === undefined || (status !== undefined && !block.counts[status])) continue;
      for (let at = Math.max(0, first - 1 - number * BLOCK_ROWS); at < block.rows.length; at++) {
        const row = block.rows[at];
        if (row === undefined || (status !== undefined && statusOf(row) !== status)) continue;
        if (items.length === limit) return { items, more: true };
        items.push(row);
      }
    }
    return { items, more: false };
  }

  all(): R[] {
    const rows: R[] = [];
    for (const block of this.#blocks) {
      for (const row of block?.rows ?? []) if (row !== undefined) rows.push(row);
    }
    return rows;
  }

  #changed(block: Block<R>, before: R | undefined, after: R | undefined): void {
    // Never the same number twice, though a block may be removed and made again.
    block.version = ++this.#changes;
    if (before) {
      this.#count(block, before, -1);
      for (const value of this.valuesOf?.(before) ?? []) {
        if (this.#byValue.get(value) === before) this.#byValue.delete(value);
      }
    }
    if (after) {
      this.#count(block, after, 1);
      for (const value of this.valuesOf?.(after) ?? []) this.#byValue.set(value, after);
    }
  }

  #count(block: Block<R>, row: R, by: 1 | -1): void {
    this.size += by;
    const status = statusOf(row);
    for (const counts of [block.counts, this.#regions[regionOf(blockOf(row.id))]]) {
      counts[status] = (counts[status] ?? 0) + by;
    }
  }
}

/** Rows with chosen ids. Numbers and bigints are one order. */
export class MapRows<R extends Row> implements RowMap<R> {
  version = 0;
  protected readonly byId = new Map<Id, R>();
  /** By id, as of the last change; undefined: nobody has read them since. */
  #sorted: readonly R[] | undefined;

  get size(): number {
    return this.byId.size;
  }

  get(id: Id): R | undefined {
    return this.byId.get(id);
  }

  put(row: R): R | undefined {
    const before = this.byId.get(row.id);
    this.byId.set(row.id, row);
    this.#sorted = undefined;
    return before;
  }

  delete(id: Id): R | undefined {
    const before = this.byId.get(id);
    if (this.byId.delete(id)) this.#sorted = undefined;
    return before;
  }

  clear(): void {
    this.byId.clear();
    this.#sorted = undefined;
  }

  all(): readonly R[] {
    this.#sorted ??= [...this.byId.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
    return this.#sorted;
  }

  page({ after, limit }: { after?: Id; limit: number }): Page<R> {
    const rows = this.all();
    const from = after === undefined ? 0 : firstAfter(rows, after);
    return { items: rows.slice(from, from + limit), more: from + limit < rows.length };
  }
}

/** The position of the first row with a higher id: binary search. */
function firstAfter(rows: readonly Row[], id: Id): number {
  let [low, high] = [0, rows.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (rows[middle].id <= id) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * The replays of Idempotency-Keys, in the order in which they were put. For one caller that is the order of their
 * moments, even if a lab has moved them, since it moves all of a caller's. One that is 24 hours old counts as absent at
 * once, and leaves memory with a later batch; the log needs no word of that, for every reader finds it ended.
 */
export class Replays extends MapRows<Replay> {
  readonly #now: () => number;
  readonly #onDrop: (row: Replay) => void;
  readonly #byKey = new Map<number, Map<Id, Replay>>();

  constructor(now: () => number, onDrop: (row: Replay) => void) {
    super();
    [this.#now, this.#onDrop] = [now, onDrop];
  }

  override get(id: Id): Replay | undefined {
    const replay = super.get(id);
    return replay && !hasEnded(replay, this.#now()) ? replay : undefined;
  }

  override put(replay: Replay): Replay | undefined {
    const before = this.delete(replay.id); // a key that is used again goes to the end
    const ofKey = this.#byKey.get(replay.keyId) ?? new Map<Id, Replay>();
    this.#byKey.set(replay.keyId, ofKey.set(replay.id, replay));
    super.put(replay);
    return before;
  }

  override delete(id: Id): Replay | undefined {
    const before = super.delete(id);
    if (before === undefined) return undefined;
    const ofKey = this.#byKey.get(before.keyId)!;
    ofKey.delete(id);
    if (ofKey.size === 0) this.#byKey.delete(before.keyId);
    return before;
  }

  override clear(): void {
    super.clear();
    this.#byKey.clear();
  }

  /** The oldest first, so that they are in the order of their moments again when they are read. */
  override all(): readonly Replay[] {
    return [...this.byId.values()].sort((a, b) => a.at - b.at || (a.id < b.id ? -1 : 1));
  }

  ofKey(keyId: number): ReadonlyMap<Id, Replay> {
    const ofKey = this.#byKey.get(keyId) ?? new Map<Id, Replay>();
    this.dropEnded(ofKey);
    return ofKey;
  }

  /** Drops those that have ended, which stand at the front. In the long run a batch drops as many as it puts. */
  dropEnded(rows: ReadonlyMap<Id, Replay> = this.byId): void {
    const now = this.#now();
    for (const replay of rows.values()) {
      if (!hasEnded(replay, now)) return;
      this.delete(replay.id);
      this.#onDrop(replay);
    }
  }
}
