/**
 * An estimate of the heap that the content takes, counted as it grows: a little above the measurements on Node 20 to 26
 * (test/store/bytes.test.ts repeats them). It rests on content alone, so it is the same after a restart.
 */
import type { Int64 } from '../json/int64.ts';
import { idempotencyId, type Tables } from './changes.ts';
import { callerOf } from './idempotency.ts';
import type { ApiKey, Change, KeptCategory } from './model.ts';

/** An animal with its place in a table, without its texts. (An object takes 24 bytes, and 8 for each member.) */
const PET_BYTES = 68;
/** An order, and the new object of its animal: the order changes the animal's status. */
const ORDER_BYTES = 152;
const CATEGORY_BYTES = 60;
const RECORD_BYTES = 184;
/** A key with its entries in the limiter and in the idempotency records. */
const KEY_BYTES = 420;
const SECRET_BYTES = 240;

/** V8 takes two bytes a character if any is beyond Latin-1. To be quick, this takes two if any is beyond ASCII. */
const textBytes = (text: string): number => 24 + text.length * (Buffer.byteLength(text) === text.length ? 1 : 2);

/** A small integer (32 bits) takes no bytes of its own: it lies in the member. */
function int64Bytes(value: Int64): number {
  if (typeof value === 'bigint') return 24;
  return value === (value | 0) ? 0 : 16;
}

const petBytes = (name: string, categoryId: Int64) => PET_BYTES + textBytes(name) + int64Bytes(categoryId);
const categoryBytes = ({ id, name }: { id: Int64; name: string }) => CATEGORY_BYTES + textBytes(name) + int64Bytes(id);
const keyBytes = ({ name, secrets }: ApiKey) => KEY_BYTES + textBytes(name) + secrets.length * SECRET_BYTES;
/** `id`: as `idempotencyId` gives it. */
const recordBytes = (id: string): number => RECORD_BYTES + textBytes(id);

type Before = Pick<Tables, 'categories' | 'keys' | 'idempotency'>;

function columnsBytes({ names, categoryIds }: { names: string[]; categoryIds: Int64[] }): number {
  return names.reduce((sum, name, at) => sum + petBytes(name, categoryIds[at]), 0);
}

/** The bytes of animals, orders and categories in a change. Those of a category that it replaces are not subtracted. */
function contentBytes(change: Change): number {
  const { op } = change;
  if (op === 'addPet') return petBytes(change.pet.name, change.pet.categoryId);
  if (op === 'pets') return columnsBytes(change);
  if (op === 'placeOrder') return ORDER_BYTES;
  if (op === 'orders') return change.petIds.length * ORDER_BYTES;
  if (op === 'fill') return columnsBytes(change.pets) + change.categories.reduce((n, one) => n + categoryBytes(one), 0);
  return op === 'setCategory' ? categoryBytes(change.category) : 0;
}

const replacedBy = (change: Change, { categories }: Before): KeptCategory | undefined =>
  change.op === 'setCategory' ? categories.get(change.category.id) : undefined;

function keyGrowth(change: Change, { keys }: Before): number {
  if (change.op !== 'setKey') return 0;
  const old = keys.get(change.key.id);
  return keyBytes(change.key) - (old ? keyBytes(old) : 0);
}

/** The ids of the idempotency records that the change adds. */
function newRecords(change: Change, { idempotency }: Before): string[] {
  const ids = change.op === 'onces' ? change.onces.map(([id]) => id) : [];
  if ('once' in change && change.once) ids.push(idempotencyId(kindOf(change.op), change.once));
  return ids.filter((id) => !idempotency.get(id));
}

const kindOf = (op: 'addPet' | 'placeOrder' | 'pets') => (op === 'pets' ? 'import' : op);

/** The bytes that a change adds. Less than 0: the bytes that it frees. */
export interface Growth {
  total: number;
  /** Those of API keys, which a `fill` keeps. */
  ofKeys: number;
  /** The content that the change adds, and the key to whose share it counts. */
  added: number;
  by: string | undefined;
  /** The category that the change replaces, and the key to whose share it counted. */
  freed: number;
  freedBy: string | undefined;
  /** The idempotency records that the change adds: they count to the share of their caller while they last. */
  ofRecords: number;
  records: string[];
}

/** `before`: the tables without the change. So this must be called before the change is performed. */
export function growthBy(change: Change, before: Before): Growth {
  const added = contentBytes(change);
  const by = 'by' in change ? change.by : undefined;
  const replaced = replacedBy(change, before);
  const freed = replaced ? categoryBytes(replaced) : 0;
  const ofKeys = keyGrowth(change, before);
  const records = newRecords(change, before);
  const ofRecords = records.reduce((sum, id) => sum + recordBytes(id), 0);
  const total = added - freed + ofKeys + ofRecords;
  return { total, ofKeys, added, by, freed, freedBy: replaced?.by, ofRecords, records };
}

/** Sums by key. With `below`, they start from the sums there, and leave those unchanged. */
class SumByKey {
  readonly #sums = new Map<string, number>();
  #below: SumByKey | undefined;

  constructor(below?: SumByKey) {
    this.#below = below;
  }

  get(key: string): number {
    return this.#sums.get(key) ?? this.#below?.get(key) ?? 0;
  }

  /** Never below 0: a file of an older version may tell less than what a key takes. */
  set(key: string, bytes: number): void {
    this.#sums.set(key, Math.max(0, bytes));
  }

  add(key: string, bytes: number): void {
    this.set(key, this.get(key) + bytes);
  }

  clear(): void {
    this.#sums.clear();
    this.#below = undefined;
  }

  /** Sorted by key, so that the same content has the same digest, in whatever order the keys came. */
  sorted(): [key: string, bytes: number][] {
    return [...this.#sums].filter(([, bytes]) => bytes > 0).sort(([a], [b]) => (a < b ? -1 : 1));
  }
}

/**
 * All bytes of the content, and the share of each key in them. With `below`, it starts from the values there, and
 * leaves those unchanged.
 */
export class Bytes {
  total: number;
  #ofKeys: number;
  readonly #content: SumByKey;
  readonly #records: SumByKey;

  constructor(below?: Bytes) {
    this.total = below ? below.total : 0;
    this.#ofKeys = below ? below.#ofKeys : 0;
    this.#content = below ? new SumByKey(below.#content) : new SumByKey();
    this.#records = below ? new SumByKey(below.#records) : new SumByKey();
  }

  /** Bytes of the animals and orders that a key has added, and of the categories that it was the last to set. */
  addedBy(key: string): number {
    return this.#content.get(key);
  }

  totalAfter({ op }: Change, { total }: Growth): number {
    return (op === 'fill' ? this.#ofKeys : this.total) + total;
  }

  /** The share of the key `by`: the content that it has added, and its idempotency records. */
  shareAfter({ added, by, freed, freedBy, ofRecords }: Growth): number {
    if (by === undefined) return 0;
    const content = this.#content.get(by) + added - (by === freedBy ? freed : 0);
    return content + this.#records.get(by) + ofRecords;
  }

  count(change: Change, growth: Growth): void {
    this.total = this.totalAfter(change, growth);
    this.#ofKeys += growth.ofKeys;
    if (change.op === 'fill') for (const sums of [this.#content, this.#records]) sums.clear();
    if (growth.by !== undefined) this.#content.add(growth.by, growth.added);
    // Subtracted only now: it may be the same key, and a sum stops at 0.
    if (growth.freedBy !== undefined) this.#content.add(growth.freedBy, -growth.freed);
    for (const id of growth.records) this.#records.add(callerOf(id), recordBytes(id));
    if (change.op === 'shares') for (const [key, bytes] of change.shares) this.#content.set(key, bytes);
  }

  /** Subtracts a record that has ended. */
  forget(id: string): void {
    this.total -= recordBytes(id);
    this.#records.add(callerOf(id), -recordBytes(id));
  }

  shares(): [key: string, bytes: number][] {
    return this.#content.sorted();
  }
}
