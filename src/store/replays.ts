/**
 * The replays of Idempotency-Keys, by id and by the API key that made them. One that is 24 hours old counts as absent
 * at once, and is dropped from memory a little later; the log needs no word of that, for every reader finds it ended.
 */
import { hasEnded, type Id, type Replay, type ReplaysOfKey } from './model.ts';
import type { RowMap } from './rows.ts';

/** Dropping goes over the keys, so it is done once in so long, and for so many replays at most. */
const DROP_EVERY_MS = 1_000;
const MAX_DROPS = 10_000;

export class Replays implements RowMap<Replay> {
  readonly #now: () => number;
  readonly #onDrop: (row: Replay) => void;
  readonly #byKey = new Map<number, OfKey>();
  readonly #byId = new Map<Id, Replay>();
  #droppedAt = Number.NEGATIVE_INFINITY;

  constructor(now: () => number, onDrop: (row: Replay) => void) {
    [this.#now, this.#onDrop] = [now, onDrop];
  }

  get size(): number {
    return this.#byId.size;
  }

  get(id: Id): Replay | undefined {
    const replay = this.#byId.get(id);
    return replay && !hasEnded(replay, this.#now()) ? replay : undefined;
  }

  put(replay: Replay): Replay | undefined {
    const before = this.#byId.get(replay.id);
    if (before && before.keyId !== replay.keyId) this.delete(before.id);
    this.#byId.set(replay.id, replay);
    let group = this.#byKey.get(replay.keyId);
    if (group === undefined) this.#byKey.set(replay.keyId, (group = new OfKey(this)));
    group.rows.set(replay.id, replay);
    return before;
  }

  delete(id: Id): Replay | undefined {
    const before = this.#byId.get(id);
    if (before === undefined) return undefined;
    this.#byId.delete(id);
    const group = this.#byKey.get(before.keyId)!;
    group.rows.delete(id);
    if (group.rows.size === 0) this.#byKey.delete(before.keyId);
    return before;
  }

  clear(): void {
    this.#byId.clear();
    this.#byKey.clear();
  }

  /** The oldest first, so that the rows of each key are in the order of their moments again when they are read. */
  list(): Replay[] {
    return [...this.#byId.values()].sort((a, b) => a.at - b.at || (a.id < b.id ? -1 : 1));
  }

  ofKey(keyId: number): ReplaysOfKey {
    const group = this.#byKey.get(keyId);
    group?.dropEnded(this.#now(), MAX_DROPS);
    return group ?? new OfKey(this);
  }

  dropEnded(): void {
    const now = this.#now();
    if (now - this.#droppedAt < DROP_EVERY_MS) return;
    this.#droppedAt = now;
    let left = MAX_DROPS;
    for (const group of this.#byKey.values()) {
      left -= group.dropEnded(now, left);
      if (left === 0) return;
    }
  }

  drop(replay: Replay): void {
    this.delete(replay.id);
    this.#onDrop(replay);
  }
}

/** In the order in which they were put first, which is that of their moments: a lab moves all of a key's alike. */
class OfKey implements ReplaysOfKey {
  readonly rows = new Map<Id, Replay>();
  readonly #all: Replays;

  constructor(all: Replays) {
    this.#all = all;
  }

  get size(): number {
    return this.rows.size;
  }

  get oldest(): Replay | undefined {
    return this.rows.values().next().value;
  }

  [Symbol.iterator](): Iterator<Replay> {
    return this.rows.values();
  }

  /** Returns how many were dropped. */
  dropEnded(now: number, max: number): number {
    let drops = 0;
    for (const replay of this.rows.values()) {
      if (drops === max || !hasEnded(replay, now)) break;
      this.#all.drop(replay);
      drops++;
    }
    return drops;
  }
}
