/** A store as one would first write it, and random transactions that are done on it and on a real one alike. */
import type { Int64 } from '../../src/json/int64.ts';
import {
  type Counted,
  type Id,
  type Row,
  schemaOf,
  TABLE_NAMES,
  type TableName,
  type Transaction,
} from '../../src/store/model.ts';
import { below, choose, type Random, seeded } from '../random.ts';

type PlainTables = Record<TableName, Map<Id, Row>>;

export class PlainStore {
  tables = Object.fromEntries(TABLE_NAMES.map((name) => [name, new Map()])) as PlainTables;
  lastIds = { pets: 0, orders: 0, keys: 0 };

  write<T>(work: (tx: Transaction) => T): T {
    const [tables, lastIds] = [this.tables, this.lastIds];
    this.tables = Object.fromEntries(TABLE_NAMES.map((name) => [name, new Map(tables[name])])) as PlainTables;
    this.lastIds = { ...lastIds };
    try {
      return work(Object.fromEntries(TABLE_NAMES.map((name) => [name, this.#table(name)])) as unknown as Transaction);
    } catch (error) {
      [this.tables, this.lastIds] = [tables, lastIds];
      throw error;
    }
  }

  #table(name: TableName) {
    const rows = () => this.tables[name];
    return {
      get: (id: Id) => rows().get(id),
      put: (row: Row) => {
        rows().set(row.id, { ...row });
        return schemaOf(name).json(schemaOf(name).read(row));
      },
      delete: (id: Id) => void rows().delete(id),
      add: (row: object) => {
        const added = { ...row, id: ++this.lastIds[name as Counted] } as Row;
        rows().set(added.id, added);
        return added;
      },
    };
  }

  page(name: TableName, after: Id | undefined, limit: number, status?: string): { items: Row[]; more: boolean } {
    const all = [...this.tables[name].values()]
      .sort((a, b) => (a.id < b.id ? -1 : 1))
      .filter((row) => after === undefined || row.id > after)
      .filter((row) => status === undefined || (row as { status?: string }).status === status);
    return { items: all.slice(0, limit), more: all.length > limit };
  }
}

export const INT64S: Int64[] = [0, -1, 7, 2 ** 53 - 1, 2n ** 53n, 2n ** 63n - 1n, -(2n ** 63n), 1_000_000_007];
const NAMES = ['Rex', 'Ada "the" cat', 'ñandú', '🐈‍⬛', '\\\u0001\u2028', ' ', 'x'.repeat(300)];
export const STATUSES = ['available', 'pending', 'sold'] as const;
const MAX_STEPS = 5;
export const PLACED_AT = '2030-01-01T00:00:00.000Z';
/** Ids are few, so that transactions meet. */
const IDS = 30;

export const newKey = (digest: string, more: object = {}) => ({
  name: 'a key',
  plan: 'free' as const,
  perMinute: 60,
  perDay: 1_000,
  environment: 'production' as const,
  createdAt: 1,
  secrets: [{ digest }],
  ...more,
});

export const newReplay = (id: string, keyId: number, at: number, body = '{}') => ({
  id,
  keyId,
  digest: 'd',
  status: 201,
  body,
  location: '/v1/pets/1',
  at,
});

/** The transaction that this number makes: the same on every store, and whenever it runs again. */
export function randomWork(seed: number, at: number): (tx: Transaction) => unknown {
  return (tx) => {
    const random = seeded(seed);
    const seen: unknown[] = [];
    const steps = 1 + below(random, MAX_STEPS);
    for (let step = 0; step < steps; step++) {
      seen.push(randomStep(tx, random, `${seed}-${step}`, at));
      if (random() < 0.05) throw new Error(`given up at step ${step}`);
    }
    return seen;
  };
}

const noMoments = { minuteEndsAt: 0, dayEndsAt: 0, banEndsAt: 0 };

function randomStep(tx: Transaction, random: Random, unique: string, at: number): unknown {
  const [id, name, big] = [1 + below(random, IDS), choose(random, NAMES), choose(random, INT64S)];
  const kind = random();
  if (kind < 0.3) return tx.pets.add({ name, categoryId: big, status: choose(random, STATUSES) });
  if (kind < 0.4) return order(tx, id);
  if (kind < 0.5) return closeOrder(tx, id, choose(random, ['delivered', 'cancelled'] as const));
  if (kind < 0.55) return removeAnimal(tx, id);
  if (kind < 0.65) return [tx.categories.put({ id: big, name }), tx.categories.get(big)];
  if (kind < 0.7) return [tx.categories.delete(big), tx.categories.get(big)];
  if (kind < 0.8) {
    const keyId = 1 + below(random, 3);
    const replay = newReplay(`addPet k${keyId} once-${id}`, keyId, at, JSON.stringify({ name }));
    const first = tx.replays.get(replay.id);
    if (!first) tx.replays.put(replay);
    return first;
  }
  if (kind < 0.9) {
    const moments = { minuteEndsAt: at, dayEndsAt: at, banEndsAt: 0 };
    return tx.usage.put({ id, minuteUsed: id, dayUsed: below(random, 99), strikes: 0, bans: 1, ...moments });
  }
  if (kind < 0.98) {
    const key = tx.keys.get(id);
    const secrets = [{ digest: unique }, ...(random() < 0.5 ? [{ digest: `${unique}-old`, endsAt: at }] : [])];
    if (key) return tx.keys.put({ ...key, secrets, ...(random() < 0.5 ? { revokedAt: at } : {}) });
    const added = tx.keys.add(newKey(unique, { secrets }));
    tx.usage.put({ id: added.id, minuteUsed: 0, dayUsed: 0, strikes: 0, bans: 0, ...noMoments });
    return added;
  }
  return tx.keys.get(id) ?? tx.usage.delete(id); // a key has its row of usage
}

/** As the shop does it: an animal is ordered once. */
function order(tx: Transaction, petId: number): unknown {
  const pet = tx.pets.get(petId);
  if (pet?.status !== 'available' || ordered(tx, petId)) return pet;
  tx.pets.put({ ...pet, status: 'pending' });
  return tx.orders.add({ petId, status: 'placed', placedAt: PLACED_AT });
}

function ordered(tx: Transaction, petId: number): boolean {
  for (let id = 1, order = tx.orders.get(1); order !== undefined; order = tx.orders.get(++id)) {
    if (order.petId === petId && order.status === 'placed') return true;
  }
  return false;
}

function closeOrder(tx: Transaction, id: number, status: 'delivered' | 'cancelled'): unknown {
  const order = tx.orders.get(id);
  const pet = order && tx.pets.get(order.petId);
  if (order?.status !== 'placed') return order;
  tx.orders.put({ ...order, status });
  if (pet) tx.pets.put({ ...pet, status: status === 'delivered' ? 'sold' : 'available' });
  return [order, pet];
}

function removeAnimal(tx: Transaction, id: number): unknown {
  const pet = tx.pets.get(id);
  if (pet?.status === 'sold') tx.pets.delete(id);
  return [pet, tx.pets.get(id)];
}
