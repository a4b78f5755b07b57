/** The effect of each change, defined once for the durable state and the state ahead. */
import { DAY_MS } from '../clock.ts';
import type { Int64 } from '../json/int64.ts';
import { callerOf } from './idempotency.ts';
import type {
  ApiKey,
  Category,
  Change,
  Counters,
  FirstResult,
  IdempotencyKey,
  IdempotentKind,
  KeptCategory,
  NewPet,
  Order,
  Pet,
  PetColumns,
  Usage,
} from './model.ts';

/** The lifetime of an idempotency record, in which its first result is given again. */
const RECORD_LIFETIME_MS = DAY_MS;

/** The caller of an import's idempotency records: no key has this id. */
export const IMPORT_CALLER = 'import';

export type Rows<K, V> = Pick<Map<K, V>, 'size' | 'get' | 'clear'> & { set(key: K, row: V): unknown };

/** `load`: adds rows after all others, from the id `first` on, one for each status. */
interface RowsById<R extends { status: string }> extends Rows<number, R> {
  load(first: number, statuses: R['status'][], rowAt: (i: number) => R): void;
}

/** The tables that changes alter. */
export interface Tables {
  readonly counters: Counters;
  readonly pets: RowsById<Pet>;
  readonly orders: RowsById<Order>;
  readonly categories: Rows<Int64, KeptCategory>;
  readonly keys: Rows<string, ApiKey>;
  readonly usage: Rows<string, Usage>;
  /** `setBack`: the clock of a caller's key is set back, and the ages of its records stay as they are. */
  readonly idempotency: Rows<string, FirstResult> & { setBack(caller: string, ms: number): void };
}

/** A missing kind of change is a compile error. */
const CHANGES: { [O in Change as O['op']]: (change: O, to: Tables) => void } = {
  addPet({ pet, once }, to) {
    give('pet', pet.id, 1, to);
    to.pets.set(pet.id, pet);
    remember('addPet', once, pet, to);
  },
  pets(change, to) {
    const { first, once, statuses } = change;
    addPets(first, change, to, once === undefined);
    remember('import', once, { id: first, status: statuses[0] }, to);
  },
  placeOrder({ order, once }, to) {
    const { id, petId } = order;
    const pet = to.pets.get(petId);
    if (pet?.status !== 'available') impossible(`order ${id}: pet ${petId} is ${pet?.status ?? 'missing'}`);
    give('order', id, 1, to);
    to.orders.set(id, order);
    setStatus(petId, 'pending', to);
    remember('placeOrder', once, order, to);
  },
  closeOrder({ id, status }, to) {
    const order = to.orders.get(id);
    if (order?.status !== 'placed') impossible(`order ${id} is ${order?.status ?? 'missing'}`);
    to.orders.set(id, { ...order, status });
    setStatus(order.petId, status === 'delivered' ? 'sold' : 'available', to);
  },
  setCategory({ category, by }, to) {
    putCategory(category, by, to);
  },
  setKey({ key }, to) {
    const { counters, keys } = to;
    const before = keys.get(key.id);
    const slot = before?.slot;
    // Slots ascend; some may be left out.
    const fits = slot === undefined ? key.slot >= counters.nextSlot : key.slot === slot;
    if (!fits)
      impossible(`key ${key.id}: its slot is ${key.slot}, and must be ${slot ?? `${counters.nextSlot} or higher`}`);
    counters.nextSlot = Math.max(counters.nextSlot, key.slot + 1);
    keys.set(key.id, key);
    // The lab's reset. Else a record that was made years ahead would be kept for years.
    const setBackMs = (before?.clockAdvanceMs ?? 0) - (key.clockAdvanceMs ?? 0);
    if (setBackMs > 0) to.idempotency.setBack(key.id, setBackMs);
  },
  usage({ entries }, to) {
    for (const usage of entries) setUsage(usage, to);
  },
  fill({ categories, pets }, to) {
    for (const table of [to.pets, to.orders, to.categories, to.idempotency]) table.clear();
    Object.assign(to.counters, { nextPetId: 1, nextOrderId: 1 });
    for (const category of categories) putCategory(category, undefined, to);
    addPets(1, pets, to);
  },
  advance({ key: id, ms, usage }, to) {
    const key = to.keys.get(id) ?? impossible(`the clock of key ${id} was advanced: there is no such key`);
    to.keys.set(id, { ...key, clockAdvanceMs: (key.clockAdvanceMs ?? 0) + ms });
    setUsage(usage, to);
  },
  orders({ first, petIds, statuses, placedAts }, to) {
    give('order', first, statuses.length, to, true);
    const orderAt = (i: number) => ({ id: first + i, petId: petIds[i], status: statuses[i], placedAt: placedAts[i] });
    to.orders.load(first, statuses, orderAt);
  },
  onces({ onces }, to) {
    for (const [id, made] of onces) to.idempotency.set(id, made);
  },
  shares() {}, // counted in bytes.ts
};

/** Throws if the change contradicts those before it: then there is a bug in this program, or damage. */
export const perform = (change: Change, to: Tables): void =>
  (CHANGES[change.op] as (change: Change, to: Tables) => void)(change, to);

/** The store time in a change; 0: there is none. */
export function timeOf(change: Change): number {
  if ('at' in change) return change.at ?? 0;
  return ('once' in change && change.once?.at) || 0;
}

/** Animals as columns. Their ids, if they have any, are left out. */
export const columnsOf = (pets: NewPet[]): PetColumns => ({
  names: pets.map(({ name }) => name),
  categoryIds: pets.map(({ categoryId }) => categoryId),
  statuses: pets.map(({ status }) => status),
});

export const isChange = (op: string): boolean => Object.hasOwn(CHANGES, op);

/** Store time for a caller: the lab may have advanced the clock of its key; an import has no key. */
const ownTime = (caller: string, at: number, { keys }: Pick<Tables, 'keys'>): number =>
  at + (keys.get(caller)?.clockAdvanceMs ?? 0);

/** The rest of a record's lifetime; 0 or less: it has ended. `id`: as `idempotencyId` gives it. */
export const msLeft = (id: string, made: FirstResult, at: number, to: Pick<Tables, 'keys'>): number =>
  RECORD_LIFETIME_MS - (ownTime(callerOf(id), at, to) - made.at);

export function firstResultIn(
  to: Pick<Tables, 'idempotency' | 'keys'>,
  kind: IdempotentKind,
  once: IdempotencyKey,
): FirstResult | undefined {
  const id = idempotencyId(kind, once);
  const made = to.idempotency.get(id);
  return made && msLeft(id, made, once.at, to) > 0 ? made : undefined;
}

/** The id of a record: neither a caller's id nor an Idempotency-Key (visible ASCII and blanks) holds a line feed. */
export const idempotencyId = (kind: IdempotentKind, { caller, key }: IdempotencyKey): string =>
  `${kind}\n${caller}\n${key}`;

function impossible(what: string): never {
  throw new Error(what);
}

function addPets(first: number, { names, categoryIds, statuses }: PetColumns, to: Tables, mayLeap = false): void {
  give('pet', first, statuses.length, to, mayLeap);
  const petAt = (i: number) => ({ id: first + i, name: names[i], categoryId: categoryIds[i], status: statuses[i] });
  to.pets.load(first, statuses, petAt);
}

/** The row is made member by member: a copy by `...` takes three times the memory. */
function putCategory({ id, name }: Category, by: string | undefined, { categories }: Tables): void {
  categories.set(id, { id, name, by });
}

/**
 * Gives out `count` ids from `first` on. `first` must be the next id. With `mayLeap` (in a whole state) it may be
 * higher: ids may have been left out.
 */
function give(thing: 'pet' | 'order', first: number, count: number, { counters }: Tables, mayLeap = false): void {
  const counter = thing === 'pet' ? 'nextPetId' : 'nextOrderId';
  const next = counters[counter];
  if (mayLeap ? first < next : first !== next) impossible(`${thing} ${first}: the next id is ${next}`);
  if (!Number.isSafeInteger(first + count)) impossible(`${thing} ${first}: no id is left after it`);
  counters[counter] = first + count;
}

function setStatus(id: number, status: Pet['status'], { pets }: Tables): void {
  pets.set(id, { ...pets.get(id)!, status });
}

function setUsage(one: Usage, { keys, usage }: Tables): void {
  if (!keys.get(one.key)) impossible(`usage of ${one.key}: there is no such key`);
  usage.set(one.key, one);
}

function remember(
  kind: IdempotentKind,
  once: IdempotencyKey | undefined,
  { id, status }: Omit<FirstResult, 'at'>,
  to: Tables,
): void {
  if (once) to.idempotency.set(idempotencyId(kind, once), { id, status, at: ownTime(once.caller, once.at, to) });
}
