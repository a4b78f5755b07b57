/** The kinds of tables in memory. Rows are never changed in place: whoever holds one holds a snapshot of it. */
import { BLOCK_ROWS, blockOf, hasEnded, type Id, type Page, type Replay, type Row } from './model.ts';

const statusOf = (row: object): string => (row as { status?: string }).status ?? '';

/** Fills what lies before the element: an array with holes is slower. */
function setAt<T>(array: T[], at: number, value: T, filler: T): void {
  while (array.length < at) array.push(filler);
  array[at] = value;
}

/**
 * Rows with ids that the store gives. A removed row leaves a hole, and a block without rows takes almost no memory. They
 * can also be found by other values than their ids, each of which belongs to one row at most.
 */
export class CountedRows<R extends Row & { readonly id: number }, V = never> implements RowMap<R> {
  size = 0;
  version = 0;
  /** The highest id that was ever given. */
  lastId = 0;
  #blocks: ((R | undefined)[] | undefined)[] = [];
  #blockVersions: number[] = [];
  /** By status, how many rows of each block have it: a page of a rare status skips blocks without it. */
  readonly #counts = new Map<string, number[]>();
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
    return this.#blocks[blockOf(id as number)]?.[((id as number) - 1) % BLOCK_ROWS];
  }

  put(row: R): R | undefined {
    return this.#set(row.id, row);
  }

  delete(id: Id): R | undefined {
    return this.#set(id as number, undefined);
  }

  clear(): void {
    [this.#blocks, this.#blockVersions, this.size, this.lastId] = [[], [], 0, 0];
    this.#counts.clear();
    this.#byValue.clear();
  }

  blockVersion(block: number): number {
    return this.#blockVersions[block] ?? 0;
  }

  page({ after = 0, limit, status }: { after?: number; limit: number; status?: string }): Page<R> {
    const items: R[] = [];
    const counts = this.#counts.get(status ?? '') ?? [];
    const first = Math.max(0, after) + 1;
    const end = status === undefined ? this.#blocks.length : counts.length;
    for (let number = blockOf(first); number < end; number++) {
      if (status !== undefined && counts[number] === 0) continue;
      const block = this.#blocks[number] ?? [];
      for (let at = Math.max(0, first - 1 - number * BLOCK_ROWS); at < block.length; at++) {
        const row = block[at];
        if (row === undefined || (status !== undefined && statusOf(row) !== status)) continue;
        if (items.length === limit) return { items, more: true };
        items.push(row);
      }
    }
    return { items, more: false };
  }

  all(): R[] {
    const rows = new Array<R>(this.size); // with room for all, which halves the time
    let count = 0;
    for (const block of this.#blocks) for (const row of block ?? []) if (row !== undefined) rows[count++] = row;
    return rows;
  }

  #set(id: number, row: R | undefined): R | undefined {
    this.lastId = Math.max(this.lastId, id);
    const [number, at] = [blockOf(id), (id - 1) % BLOCK_ROWS];
    const block = this.#blocks[number] ?? [];
    const before = block[at];
    if (row === before) return before;
    if (block.length === 0) setAt(this.#blocks, number, block, undefined);
    setAt(block, at, row, undefined);
    // Never the same number twice, though a block may be removed and made again.
    setAt(this.#blockVersions, number, ++this.#changes, 0);
    if (before) {
      this.#count(before, -1);
      for (const value of this.valuesOf?.(before) ?? []) {
        if (this.#byValue.get(value) === before) this.#byValue.delete(value);
      }
    }
    if (row) {
      this.#count(row, 1);
      for (const value of this.valuesOf?.(row) ?? []) this.#byValue.set(value, row);
    } else if (block.every((one) => one === undefined)) {
      [this.#blocks[number], this.#blockVersions[number]] = [undefined, 0];
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

/** What each kind of table has. `put` and `delete` return the row that was there before. */
export type RowMap<R extends Row> = Pick<MapRows<R>, 'size' | 'version' | 'get' | 'put' | 'delete' | 'clear' | 'all'>;

/** Rows with chosen ids. Numbers and bigints are one order. */
export class MapRows<R extends Row> {
  /** The batch that last changed the table. */
  version = 0;
  protected readonly byId = new Map<Id, R>();
  /** In their order; undefined: not sorted yet, or not since one went. */
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
    if (before === undefined) this.#ids?.splice(placeAfter(this.#ids, row.id), 0, row.id);
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

  /** All rows, in the order in which they are written to a file. */
  all(): readonly R[] {
    return this.#sortedIds().map((id) => this.byId.get(id)!);
  }

  page({ after, limit }: { after?: Id; limit: number }): Page<R> {
    const ids = this.#sortedIds();
    const from = after === undefined ? 0 : placeAfter(ids, after);
    const items = ids.slice(from, from + limit).map((id) => this.byId.get(id)!);
    return { items, more: from + limit < ids.length };
  }

  #sortedIds(): readonly Id[] {
    this.#ids ??= [...this.byId.keys()].sort((a, b) => (a < b ? -1 : 1));
    return this.#ids;
  }
}

/** The place of the first id behind this one, found by halves. */
function placeAfter(ids: readonly Id[], id: Id): number {
  let [from, to] = [0, ids.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (ids[middle] > id) to = middle;
    else from = middle + 1;
  }
  return from;
}

/**
 * The replays of Idempotency-Keys, in the order in which they were put. For one caller that is the order of their
 * moments, and stays it if moments are moved, since all of a caller's are. One that is 24 hours old counts as absent at
 * once, and leaves memory with a later batch. That is not logged: every reader sees that it has ended.
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

  /** Drops those that have ended, which stand at the front. */
  dropEnded(rows: ReadonlyMap<Id, Replay> = this.byId): void {
    const now = this.#now();
    for (const replay of rows.values()) {
      if (!hasEnded(replay, now)) return;
      this.delete(replay.id);
      this.#onDrop(replay);
    }
  }
}
