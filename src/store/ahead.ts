/**
 * The pending state: the durable state with the batch so far applied. The decisions of a batch are called on it, one
 * after the other. It copies nothing: over each table of the state lies a layer of the rows that the batch has changed.
 */
import type { Int64 } from '../json/int64.ts';
import {
  KEYS_THAT_FILL_IT,
  MAX_CATEGORIES,
  MAX_KEYS,
  shareIsFull,
  storeIsFull,
  tooMany,
  tooManyRecords,
  tooManyRecordsOf,
} from './bounds.ts';
import { Bytes, type Growth, growthBy } from './bytes.ts';
import { firstResultIn, IMPORT_CALLER, msLeft, perform, type Rows, type Tables } from './changes.ts';
import { callerOf, type IdempotencyRecord, IdempotencyRecords, RecordRooms, setBackBy } from './idempotency.ts';
import type {
  Ahead,
  ApiKey,
  Change,
  Counters,
  FirstResult,
  IdempotencyKey,
  IdempotentKind,
  KeptCategory,
  Order,
  Pet,
  Usage,
} from './model.ts';
import { mustFit } from './shape.ts';
import type { State } from './state.ts';

/** Rows that are decided but not durable, over those of the state. */
class Layer<K, V> {
  readonly changed = new Map<K, V>();
  #below: Pick<Rows<K, V>, 'size' | 'get'>;
  #added = 0;

  constructor(below: Pick<Rows<K, V>, 'size' | 'get'>) {
    this.#below = below;
  }

  get size(): number {
    return this.#below.size + this.#added;
  }

  get(key: K): V | undefined {
    return this.changed.get(key) ?? this.#below.get(key);
  }

  set(key: K, row: V): void {
    if (this.get(key) === undefined) this.#added++;
    this.changed.set(key, row);
  }

  load(first: number, rows: unknown[], rowAt: (i: number) => V): void {
    for (let i = 0; i < rows.length; i++) this.set((first + i) as K, rowAt(i));
  }

  clear(): void {
    this.changed.clear();
    this.#added = 0;
    this.#below = new Map();
  }
}

class RecordLayer extends Layer<string, FirstResult> {
  /** What lies below, once more: here also the records of one caller can be asked for. */
  #recordsBelow: Pick<IdempotencyRecords, 'of'>;

  constructor(below: IdempotencyRecords) {
    super(below);
    this.#recordsBelow = below;
  }

  setBack(caller: string, ms: number): void {
    const own = this.#recordsBelow.of(caller);
    for (let record = own.oldest; record; record = own.after(record)) {
      if (!this.changed.has(record.id)) this.changed.set(record.id, record.made);
    }
    for (const [id, made] of this.changed) if (callerOf(id) === caller) this.changed.set(id, setBackBy(ms, made));
  }

  override clear(): void {
    super.clear();
    this.#recordsBelow = new IdempotencyRecords();
  }
}

export class StateAhead implements Ahead, Tables {
  readonly counters: Counters;
  readonly pets: Layer<number, Pet>;
  readonly orders: Layer<number, Order>;
  readonly categories: Layer<Int64, KeptCategory>;
  readonly keys: Layer<string, ApiKey>;
  readonly idempotency: RecordLayer;
  /** Changes write it; decisions never read it. */
  readonly usage = new Map<string, Usage>();
  readonly #state: State;
  readonly #bytes: Bytes;
  readonly #maxBytes: number;
  #rooms: RecordRooms;

  constructor(state: State, maxBytes = Number.POSITIVE_INFINITY) {
    this.#state = state;
    this.#bytes = new Bytes(state.bytes);
    this.#maxBytes = maxBytes;
    this.#rooms = new RecordRooms(state.idempotency);
    this.counters = { ...state.counters };
    this.pets = new Layer(state.pets);
    this.orders = new Layer(state.orders);
    this.categories = new Layer(state.categories);
    this.keys = new Layer(state.keys);
    this.idempotency = new RecordLayer(state.idempotency);
  }

  allKeys(): Iterable<ApiKey> {
    return new Map([...this.#state.keys, ...this.keys.changed]).values();
  }

  isEmpty(): boolean {
    const { nextPetId, nextOrderId } = this.counters;
    return nextPetId === 1 && nextOrderId === 1 && this.categories.size === 0;
  }

  firstResult(kind: IdempotentKind, once: IdempotencyKey): FirstResult | undefined {
    return firstResultIn(this, kind, once);
  }

  /** Throws a BoundError if there is no room for the change, and an Error if a start could not read it back. */
  apply(change: Change): void {
    mustFit(change.op, change);
    this.#refuseOneTooMany(change);
    const growth = growthBy(change, this);
    this.#refuseTooLarge(change, growth);
    if ('once' in change && change.once) this.#takeRoom(change.once); // behind all other refusals
    this.#bytes.count(change, growth);
    if (change.op === 'fill') this.#rooms = new RecordRooms(new IdempotencyRecords());
    perform(change, this);
  }

  /**
   * Throws if the counters in memory are not those of the decided state: that is a bug, and no further answer may rest
   * on this memory. The rows are not compared.
   */
  checkAgainst({ counters }: State): void {
    for (const name of Object.keys(counters) as (keyof Counters)[]) {
      if (counters[name] !== this.counters[name]) throw new Error(`${name} is not as it was decided`);
    }
  }

  #refuseOneTooMany(change: Change): void {
    const { categories, keys } = this;
    if (change.op === 'setCategory' && categories.size >= MAX_CATEGORIES && !categories.get(change.category.id)) {
      throw tooMany('categories', MAX_CATEGORIES);
    }
    if (change.op === 'setKey' && keys.size >= MAX_KEYS && !keys.get(change.key.id)) throw tooMany('keys', MAX_KEYS);
  }

  /** A change that makes nothing larger is never refused, nor is a change of a known key: it may be a revocation. */
  #refuseTooLarge(change: Change, growth: Growth): void {
    if (growth.total <= 0 || (change.op === 'setKey' && this.keys.get(change.key.id))) return;
    if (this.#bytes.totalAfter(change, growth) > this.#maxBytes) throw storeIsFull(this.#maxBytes);
    const isShareFull = this.#bytes.shareAfter(growth) > this.#maxBytes / KEYS_THAT_FILL_IT;
    if (isShareFull) throw shareIsFull(this.#maxBytes, growth.by!);
  }

  /** The bound of one caller does not apply to an import: the operator runs it. */
  #takeRoom({ caller, at }: IdempotencyKey): void {
    const left = ({ id, made }: IdempotencyRecord) => msLeft(id, this.idempotency.get(id) ?? made, at, this);
    const hasEnded = (record: IdempotencyRecord) => left(record) <= 0;
    const own = caller === IMPORT_CALLER ? undefined : this.#rooms.of(caller).take(hasEnded);
    if (own) throw tooManyRecordsOf(caller, left(own));
    const any = this.#rooms.ofAll.take(hasEnded);
    if (any) throw tooManyRecords(left(any));
  }
}
