/**
 * An estimate of the heap that the content takes, counted as it grows: a little above the measurements on Node 20 to 26
 * (test/store/bytes.test.ts repeats them). It rests on content alone, so it is the same after a restart.
 */
import type { Int64 } from '../json/int64.ts';
import { idempotencyId, type Tables } from './changes.ts';
import { callerOf } from './idempotency.ts';
import type { ApiKey, Change } from './model.ts';

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

/** The category that a change replaces: its bytes are taken off the share of the key that set it. */
function replacedBy(change: Change, { categories }: Before): Replaced {
  const old = change.op === 'setCategory' ? categories.get(change.category.id) : undefined;
  return { bytes: old ? categoryBytes(old) : 0, by: old?.by };
}

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

interface Replaced {
  bytes: number;
  by: string | undefined;
}

export interface Growth {
  /** All bytes after the change. */
  total: number;
  /** The bytes of API keys after the change, which a `fill` keeps. */
  ofKeys: number;
  isLarger: boolean;
  records: string[];
  /** The bytes of content of the key that asks (`by`), with this change. */
  own: number;
  replaced: Replaced;
  /** `own`, and the bytes of that key's idempotency records. */
  share: number;
  by: string | undefined;
}

/**
 * All bytes of the content, and the bytes that each key has added. With `below`, it starts from the values there, and
 * leaves those unchanged.
 */
export class Bytes {
  total = 0;
  #ofKeys = 0;
  readonly #added = new Map<string, number>();
  /** Bytes of each key's idempotency records. */
  readonly #records = new Map<string, number>();
  #below: Bytes | undefined;

  constructor(below?: Bytes) {
    if (below === undefined) return;
    this.#below = below;
    this.total = below.total;
    this.#ofKeys = below.#ofKeys;
  }

  /** Bytes of the animals and orders that a key has added, and of the categories that it was the last to set. */
  addedBy(key: string): number {
    return this.#added.get(key) ?? this.#below?.addedBy(key) ?? 0;
  }

  recordsOf(key: string): number {
    return this.#records.get(key) ?? this.#below?.recordsOf(key) ?? 0;
  }

  /** The growth by a change. It must be called before the change is performed: `before` are the tables without it. */
  after(change: Change, before: Before): Growth {
    const content = contentBytes(change);
    const replaced = replacedBy(change, before);
    const key = keyGrowth(change, before);
    const records = newRecords(change, before);
    const ofRecords = records.reduce((sum, id) => sum + recordBytes(id), 0);
    const growth = content - replaced.bytes + key + ofRecords;
    const by = 'by' in change ? change.by : undefined;
    const isOwn = by !== undefined && by === replaced.by;
    const own = by === undefined ? 0 : Math.max(0, this.addedBy(by) + content - (isOwn ? replaced.bytes : 0));
    return {
      total: (change.op === 'fill' ? this.#ofKeys : this.total) + growth,
      ofKeys: this.#ofKeys + key,
      isLarger: growth > 0,
      records,
      own,
      replaced,
      share: by === undefined ? 0 : own + this.recordsOf(by) + ofRecords,
      by,
    };
  }

  /** Counts a change by the growth that `after` gave for it. */
  count(change: Change, { total, ofKeys, records, own, replaced, by }: Growth): void {
    [this.total, this.#ofKeys] = [total, ofKeys];
    if (change.op === 'fill') {
      this.#added.clear();
      this.#records.clear();
      this.#below = undefined;
    }
    for (const id of records) this.#addToRecords(id, recordBytes(id));
    if (replaced.by !== undefined)
      this.#added.set(replaced.by, Math.max(0, this.addedBy(replaced.by) - replaced.bytes));
    if (by !== undefined) this.#added.set(by, own); // after the line above: it may be the same key
    if (change.op === 'shares') for (const [key, bytes] of change.shares) this.#added.set(key, bytes);
  }

  /** Subtracts a record that has ended. */
  forget(id: string): void {
    this.total -= recordBytes(id);
    this.#addToRecords(id, -recordBytes(id));
  }

  #addToRecords(id: string, bytes: number): void {
    const key = callerOf(id);
    this.#records.set(key, this.recordsOf(key) + bytes);
  }

  /** Sorted by key, so that the same content has the same digest, in whatever order the keys came. */
  shares(): [key: string, bytes: number][] {
    return [...this.#added].filter(([, bytes]) => bytes > 0).sort(([a], [b]) => (a < b ? -1 : 1));
  }
}
