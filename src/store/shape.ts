/**
 * The schema of every change as it is kept. A line with the right checksum may still be nonsense: written by another
 * program, or by hand. It is checked where it is read, so that later code can rely on its shape. A change is checked
 * before it is written, too: what no reader would take must not be acknowledged.
 *
 * If a member is added to a change and not here, this file does not compile.
 */
import { parseInt64 } from '../json/int64.ts';
import { excerpt } from '../quoting.ts';
import {
  type ApiKey,
  type Category,
  type Change,
  type Counters,
  ENVIRONMENTS,
  type FirstResult,
  type IdempotencyKey,
  MAX_SLOTS,
  ORDER_STATUSES,
  type Order,
  PET_STATUSES,
  type Pet,
  type PetColumns,
  PLANS,
  type Proof,
  type Usage,
} from './model.ts';

/** Returns the fault of a value, as a text to follow the name of its member; undefined: there is none. */
type Check = (value: unknown) => string | undefined;

/** The last moment of RFC 3339, in the year 9999. */
const MAX_TIME_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999);
/** A name has 255 characters at most, each of which may take two UTF-16 units. */
const MAX_NAME_UNITS = 510;
const MAX_LIMIT = 1_000_000_000;

const numberFrom =
  (min: number, max: number): Check =>
  (value) =>
    Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max
      ? undefined
      : ` is no whole number from ${min} to ${max}`;
const id = numberFrom(1, Number.MAX_SAFE_INTEGER);
const count = numberFrom(0, Number.MAX_SAFE_INTEGER);
const limit = numberFrom(1, MAX_LIMIT);
const text: Check = (value) => (typeof value === 'string' ? undefined : ' is no text');
const isName = (value: unknown): boolean =>
  typeof value === 'string' && value.length > 0 && value.length <= MAX_NAME_UNITS;
const name: Check = (value) => (isName(value) ? undefined : ' is no name');
const moment: Check = (value) =>
  typeof value === 'number' && value >= 0 && value <= MAX_TIME_MS ? undefined : ' is no moment';
const matching =
  (pattern: RegExp): Check =>
  (value) =>
    typeof value === 'string' && pattern.test(value) ? undefined : ' does not have the right form';
/** A number. One that a double does not hold exactly is a bigint before it is written, and a text in a line. */
const int64: Check = (value) => {
  if (Number.isSafeInteger(value)) return undefined;
  const isLong = typeof value === 'string' || typeof value === 'bigint';
  return isLong && typeof parseInt64(String(value)) === 'bigint' ? undefined : ' is no int64';
};

const oneOf =
  (values: readonly string[]): Check =>
  (value) =>
    values.includes(value as string) ? undefined : ` is none of ${values.join(', ')}`;
const maybe =
  (check: Check): Check =>
  (value) =>
    value === undefined ? undefined : check(value);
const listOf =
  (check: Check): Check =>
  (value) => {
    if (!Array.isArray(value)) return ' is no list';
    for (let at = 0; at < value.length; at++) {
      const wrong = check(value[at]);
      if (wrong !== undefined) return `[${at}]${wrong}`;
    }
    return undefined;
  };

type Members<T> = { [K in keyof Required<T>]: Check };

/** `more`: a check of the members together. */
function shape<T>(members: Members<T>, more?: (whole: T) => string | undefined): Check {
  const entries = Object.entries<Check>(members);
  return (value) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return ' is no object';
    let known = 0;
    for (const [name, check] of entries) {
      const member = (value as Record<string, unknown>)[name];
      const wrong = check(member);
      if (wrong !== undefined) return `.${name}${wrong}`;
      if (member !== undefined || name in value) known++; // `in` is slower, so it comes second
    }
    const names = Object.keys(value);
    if (names.length > known) {
      const other = names.find((name) => !Object.hasOwn(members, name));
      return ` has a member ${excerpt(other!)} that is not known: a newer version may have written it`;
    }
    return more?.(value as T);
  };
}

const evenly = (...columns: unknown[][]): string | undefined =>
  columns.every(({ length }) => length === columns[0].length) ? undefined : ' has columns of different lengths';

const pet = shape<Pet>({ id, name, categoryId: int64, status: oneOf(PET_STATUSES) });
const order = { id, petId: id, placedAt: moment };
const category = shape<Category>({ id: int64, name });
const once = shape<IdempotencyKey>({ caller: matching(/^[^\n]+$/), key: matching(/^[^\n]+$/), at: moment });
const usage = shape<Usage>({ key: text, dayUsed: count, dayEndsAt: moment, banStep: count, banEndsAt: moment });
/** Returns the same as `check`, but much faster for a valid list: a start must not wait long for a million animals. */
const quickly =
  (areWell: (items: unknown[]) => boolean, check: Check): Check =>
  (value) =>
    Array.isArray(value) && areWell(value) ? undefined : check(value);

function areNames(items: unknown[]): boolean {
  for (let i = 0; i < items.length; i++) if (!isName(items[i])) return false;
  return true;
}

function areNumbers(items: unknown[]): boolean {
  for (let i = 0; i < items.length; i++) if (!Number.isSafeInteger(items[i])) return false;
  return true;
}

function areStatuses(items: unknown[]): boolean {
  for (let i = 0; i < items.length; i++) {
    const item = items[i];
    if (item !== 'available' && item !== 'sold' && item !== 'pending') return false;
  }
  return true;
}

const columns = {
  names: quickly(areNames, listOf(name)),
  categoryIds: quickly(areNumbers, listOf(int64)),
  statuses: quickly(areStatuses, listOf(oneOf(PET_STATUSES))),
};
const areEven = ({ names, categoryIds, statuses }: PetColumns) => evenly(names, categoryIds, statuses);
const key = shape<ApiKey>(
  {
    id: text,
    slot: numberFrom(0, MAX_SLOTS - 1),
    name,
    plan: oneOf(PLANS),
    perMinute: limit,
    perDay: limit,
    environment: oneOf(ENVIRONMENTS),
    createdAt: moment,
    revokedAt: maybe(moment),
    clockAdvanceMs: maybe(moment),
    secrets: listOf(shape<ApiKey['secrets'][0]>({ digest: matching(/./), endsAt: maybe(moment) })),
  },
  ({ id, slot }) => (id === `k${slot + 1}` ? undefined : `.id is not k${slot + 1}, as its slot says`),
);
const counters = shape<Counters>({ nextPetId: id, nextOrderId: id, nextSlot: numberFrom(0, MAX_SLOTS) });
const proof = shape<Proof>({ pets: count, orders: count, categories: count, keys: count, digest: text });
const madePet = shape<FirstResult>({ id, status: oneOf(PET_STATUSES), at: moment });
const madeOrder = shape<FirstResult>({ id, status: oneOf(['placed']), at: moment });
const idempotencyId = matching(/^(?:addPet|placeOrder|import)\n[^\n]+\n[^\n]+$/);
const pairOf =
  (first: Check, second: (first: string) => Check): Check =>
  (value) =>
    Array.isArray(value) && value.length === 2 ? (first(value[0]) ?? second(value[0])(value[1])) : ' is no pair';
const onceEntry = pairOf(idempotencyId, (id) => (id.startsWith('placeOrder') ? madeOrder : madePet));

const keyId = matching(/^k[1-9]\d*$/);
const by = maybe(keyId);
const share = pairOf(keyId, () => count);

/** The members that a line of a file has in addition to those of its change. */
const LINE = { crc: maybe(text), batch: maybe(id), n: maybe(count), last: maybe(() => undefined) };
const kind = <O extends Change['op']>(
  op: O,
  members: Omit<Members<Extract<Change, { op: O }>>, 'op'>,
  more?: (change: Extract<Change, { op: O }>) => string | undefined,
) => shape<object>({ ...LINE, op: oneOf([op]), ...members }, more as (whole: object) => string | undefined);

const SHAPES: { [O in Change['op']]: Check } & { proof: Check } = {
  addPet: kind('addPet', { pet, once: maybe(once), by }),
  pets: kind('pets', { first: id, once: maybe(once), ...columns }, (some) =>
    some.names.length === 0 ? '.names is empty' : areEven(some),
  ),
  placeOrder: kind('placeOrder', {
    order: shape<Order>({ ...order, status: oneOf(['placed']) }),
    once: maybe(once),
    by,
  }),
  closeOrder: kind('closeOrder', { id, status: oneOf(['delivered', 'cancelled']) }),
  setCategory: kind('setCategory', { category, by }),
  setKey: kind('setKey', { key, at: maybe(moment) }),
  usage: kind('usage', { at: moment, entries: listOf(usage) }),
  fill: kind('fill', { at: moment, categories: listOf(category), pets: shape<PetColumns>(columns, areEven) }),
  advance: kind('advance', { at: moment, key: text, ms: moment, usage }),
  orders: kind(
    'orders',
    { first: id, petIds: listOf(id), statuses: listOf(oneOf(ORDER_STATUSES)), placedAts: listOf(moment) },
    ({ petIds, statuses, placedAts }) => evenly(petIds, statuses, placedAts),
  ),
  onces: kind('onces', { onces: listOf(onceEntry) }),
  shares: kind('shares', { shares: listOf(share) }),
  proof: shape({ ...LINE, op: text, counters, time: moment, proof }),
};

/** Throws if a change is not of the shape for its `op`. The `op` must be one that this program knows. */
export function mustFit(op: keyof typeof SHAPES, change: unknown): void {
  const wrong = SHAPES[op](change);
  if (wrong !== undefined) throw new Error(`${op}${wrong}`);
}

export const isCounters = (value: unknown): value is Counters => counters(value) === undefined;
