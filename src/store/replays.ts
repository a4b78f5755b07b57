/**
 * The replays of Idempotency-Keys, by id and by the API key that made them. One that is 24 hours old counts as absent at
 * once, and leaves memory with a later batch; the log needs no word of that, for every reader finds it ended.
 */
import { hasEnded, type Id, type Replay } from './model.ts';
import { MapRows } from './rows.ts';

const NONE: ReadonlyMap<Id, Replay> = new Map();

/** In the order in which they were put first, which is that of their moments: a lab moves all of a key's alike. */
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
    const ofKey = this.#byKey.get(replay.keyId) ?? new Map<Id, Replay>();
    this.#byKey.set(replay.keyId, ofKey.set(replay.id, replay));
    return super.put(replay);
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
    this.dropEnded(this.#byKey.get(keyId));
    return this.#byKey.get(keyId) ?? NONE;
  }

  /** Drops those at the front, all of them: each was put once, so a batch pays for one in the long run. */
  dropEnded(rows: ReadonlyMap<Id, Replay> = this.byId): void {
    const now = this.#now();
    for (const replay of rows.values()) {
      if (!hasEnded(replay, now)) return;
      this.delete(replay.id);
      this.#onDrop(replay);
    }
  }
}
