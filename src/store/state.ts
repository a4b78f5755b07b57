/** The whole content in memory, and the list of changes that builds it again from nothing. */
import { Bytes, growthBy } from './bytes.ts';
import { columnsOf, firstResultIn, msLeft, perform, type Tables, timeOf } from './changes.ts';
import { IdempotencyRecords } from './idempotency.ts';
import type {
  ApiKey,
  Change,
  Counters,
  Counts,
  FirstResult,
  IdempotencyKey,
  IdempotentKind,
  Order,
  Pet,
  Reading,
  Usage,
} from './model.ts';
import { Categories, Table } from './table.ts';

/** Expired idempotency records are dropped a few at a time, so that no write pays for all of them. */
const DROPS_PER_RECORD = 64;
const ITEMS_PER_LINE = 512;

/** Keys by id, and by the digests of their secrets. */
class Keys extends Map<string, ApiKey> {
  readonly byDigest = new Map<string, ApiKey>();

  override set(id: string, key: ApiKey): this {
    for (const { digest } of this.get(id)?.secrets ?? []) this.byDigest.delete(digest);
    for (const { digest } of key.secrets) this.byDigest.set(digest, key);
    return super.set(id, key);
  }
}

export class State implements Tables, Reading {
  /** The latest store time in any record. */
  time = 0;
  counters: Counters = { nextPetId: 1, nextOrderId: 1, nextSlot: 0 };
  readonly pets = new Table<Pet>();
  readonly orders = new Table<Order>();
  readonly categories = new Categories();
  readonly keys = new Keys();
  readonly usage = new Map<string, Usage>();
  readonly idempotency = new IdempotencyRecords();
  readonly bytes = new Bytes();

  counts(): Counts {
    const { pets, orders, categories, keys } = this;
    return { pets: pets.size, orders: orders.size, categories: categories.size, keys: keys.size };
  }

  firstResult(kind: IdempotentKind, once: IdempotencyKey): FirstResult | undefined {
    return firstResultIn(this, kind, once);
  }

  apply(changes: readonly Change[]): void {
    for (const change of changes) {
      this.bytes.count(change, growthBy(change, this));
      perform(change, this);
      const at = timeOf(change);
      if (at > 0) this.#passed(at, 'once' in change ? change.once?.caller : undefined);
    }
  }

  /**
   * Drops expired idempotency records: first those of the caller that has just added one, then those of all. Time comes
   * from the changes, never from a clock: so a replay drops the same ones.
   */
  #passed(at: number, caller = ''): void {
    this.time = Math.max(this.time, at);
    let drops = DROPS_PER_RECORD;
    for (const whose of [() => this.idempotency.of(caller), () => this.idempotency.all]) {
      for (let { oldest } = whose(); drops > 0 && oldest; { oldest } = whose()) {
        if (msLeft(oldest.id, oldest.made, this.time, this) > 0) break;
        this.idempotency.delete(oldest.id);
        this.bytes.forget(oldest.id);
        drops--;
      }
    }
  }

  /**
   * The whole state as changes that build it from nothing, except for counters and time. No change depends on a later
   * one.
   */
  *changes(): Generator<Change> {
    for (const pets of pieces(this.pets.rows(), isNext)) yield { op: 'pets', first: pets[0].id, ...columnsOf(pets) };
    for (const orders of pieces(this.orders.rows(), isNext)) {
      const petIds = orders.map(({ petId }) => petId);
      const placedAts = orders.map(({ placedAt }) => placedAt);
      yield { op: 'orders', first: orders[0].id, petIds, placedAts, statuses: orders.map(({ status }) => status) };
    }
    for (const { id, name, by } of this.categories.page().items)
      yield { op: 'setCategory', category: { id, name }, by };
    for (const key of this.keys.values()) yield { op: 'setKey', key };
    const all = [...this.keys.keys()].flatMap((id) => this.usage.get(id) ?? []);
    const used = all.filter(({ dayUsed, banStep }) => dayUsed > 0 || banStep > 0);
    for (const entries of pieces(used)) yield { op: 'usage', at: 0, entries };
    for (const onces of pieces(this.idempotency)) yield { op: 'onces', onces };
    for (const shares of pieces(this.bytes.shares())) yield { op: 'shares', shares };
  }

  /** Throws if the state contradicts itself. */
  check(): void {
    const { nextPetId, nextOrderId, nextSlot } = this.counters;
    const tooHigh = this.pets.page(nextPetId - 1, 1).items[0] ?? this.orders.page(nextOrderId - 1, 1).items[0];
    if (tooHigh) throw new Error(`${tooHigh.id} is an id that was not given yet`);
    const placed = new Set<number>();
    for (const { id, petId, status } of this.orders.rows()) {
      const now = this.pets.statusOf(petId);
      if (!now) throw new Error(`order ${id}: there is no pet ${petId}`);
      if (status !== 'placed') continue;
      if (now !== 'pending') throw new Error(`order ${id} is placed, and pet ${petId} ${now}`);
      if (placed.has(petId)) throw new Error(`pet ${petId}: two orders are placed`);
      placed.add(petId);
    }
    for (const [id, made] of this.idempotency) {
      const [thing, rows] = id.startsWith('placeOrder') ? ['order', this.orders] : ['pet', this.pets];
      if (!rows.statusOf(made.id)) throw new Error(`an Idempotency-Key made ${thing} ${made.id}, which is not there`);
    }
    const { byDigest } = this.keys;
    let [secrets, last] = [0, -1];
    for (const key of this.keys.values()) {
      const { id, slot } = key;
      if (slot <= last || slot >= nextSlot)
        throw new Error(`key ${id}: slot ${slot} is not above ${last} and below ${nextSlot}`);
      last = slot;
      for (const { digest } of key.secrets) {
        if (byDigest.get(digest) !== key) throw new Error(`key ${id}: its secret is another key's`);
        secrets++;
      }
    }
    if (secrets !== byDigest.size) throw new Error('there is a secret that belongs to no key');
    for (const id of this.usage.keys()) if (!this.keys.has(id)) throw new Error(`usage of ${id}: there is no such key`);
  }
}

/** Splits items into pieces that fit in a line each. A gap between items (`follows` is false) begins a new piece. */
function* pieces<T>(items: Iterable<T>, follows = (_last: T, _next: T) => true): Generator<T[]> {
  let piece: T[] = [];
  for (const item of items) {
    if (piece.length === ITEMS_PER_LINE || (piece.length > 0 && !follows(piece[piece.length - 1], item))) {
      yield piece;
      piece = [];
    }
    piece.push(item);
  }
  if (piece.length > 0) yield piece;
}

/** False at a gap in the ids. */
const isNext = (last: { id: number }, next: { id: number }): boolean => next.id === last.id + 1;
