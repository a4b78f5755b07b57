import { keyIdOfSlot } from './keys.ts';
import type { ApiKey, Int64, Operation } from './model.ts';
import { onceKey } from './onces.ts';
import type { SnapshotLine } from './read-snapshot.ts';
import { type End, reviveInt64 } from './record.ts';
import type { Recovered } from './recovery.ts';
import type { State } from './state.ts';

type Table = 'pet' | 'order' | 'key';

/** No animal or order takes fewer, in a record or a line of a snapshot. */
const ROW_MIN_BYTES = 7;

/**
 * What stood behind the cut. What can still be read of it is lost, and told; but somebody may know the ids in it, and
 * those in what cannot be read: they are never given again. If there are lines of a snapshot, they come first.
 */
export class Loss {
  /** `others`: changes of what is there, use and idempotency records. */
  readonly counts = { pets: 0, orders: 0, categories: 0, keys: 0, others: 0 };
  readonly #kept: State;
  /** How many ids were given, as far as any was seen. */
  readonly #given: Record<Table, number>;
  /** How many more at most, in what cannot be read. Ids grow: what stood before one that is seen had lower ones. */
  readonly #more = { pet: 0, order: 0 };
  /** Animals of imports whose end was not seen. */
  #unended: number;
  readonly #categories = new Set<Int64>();
  /** Each as it was last. */
  readonly #keys = new Map<string, ApiKey>();

  constructor({ state, unended }: Pick<Recovered, 'state' | 'unended'>) {
    this.#kept = state;
    this.#unended = unended;
    const { counters, keyTable } = state;
    this.#given = { pet: counters.nextPetId - 1, order: counters.nextOrderId - 1, key: keyTable.size };
  }

  /** A line whose checksum is wrong, or a log that is gone. There the end of an import may have stood. */
  takeUnreadable(kind: string, bytes: number): void {
    const isTold = kind === 'snapshot' && this.#given.pet + this.#given.order > 0; // its counters come first
    if (isTold) return;
    const rows = Math.ceil(bytes / ROW_MIN_BYTES);
    this.#more.order += rows;
    this.#more.pet += Math.max(rows, this.#unended);
  }

  takeLine({ counters, pets, orders, ...line }: SnapshotLine): void {
    const { counts } = this;
    const { categories = [], keys = [], usage = [], onces = [], end } = line;
    if (counters) this.#seeNew('pet', counters.nextPetId - 1);
    if (counters) this.#seeNew('order', counters.nextOrderId - 1);
    for (const id of idsIn(pets)) this.#losePet(id);
    for (const id of idsIn(orders)) this.#loseOrder(id);
    this.#see({ pet: orders?.petIds });
    for (const [id] of categories) this.#loseCategory(reviveInt64(id));
    // A key that is kept is not older than what a snapshot says of it.
    for (const key of keys) if (!this.#kept.keyTable.has(key.id)) this.#loseKey(key);
    for (const { key } of usage) {
      if (!this.#kept.usageTable.has(key)) counts.others++;
      this.#seeKey(key);
    }
    for (const [kind, caller, key, { id }] of onces) {
      if (!this.#kept.onces.has(onceKey(kind, caller, key))) counts.others++;
      this.#see({ [kind === 'addPet' ? 'pet' : 'order']: [id] });
      this.#seeKey(caller);
    }
    if (!end) return;
    // What the snapshot held in all is told: so what cannot be read is counted too.
    const kept = this.#kept.counts();
    for (const kind of ['pets', 'orders', 'categories'] as const) {
      counts[kind] = Math.max(counts[kind], end[kind] - kept[kind]);
    }
    this.#see({ pet: [end.pets], order: [end.orders], key: [end.keys] });
  }

  takeRecord(operation: Operation | End): void {
    if ('once' in operation && operation.once) this.#seeKey(operation.once.caller);
    switch (operation.op) {
      case 'addPet':
        this.#losePet(operation.pet.id);
        break;
      case 'placeOrder':
        this.#loseOrder(operation.order.id);
        this.#see({ pet: [operation.order.petId] });
        break;
      case 'closeOrder':
        this.counts.others++;
        this.#see({ order: [operation.id] });
        break;
      case 'setCategory':
        this.#loseCategory(operation.category.id);
        break;
      case 'setKey':
        this.#loseKey(operation.key);
        break;
      case 'usage':
        this.counts.others++;
        for (const { key } of operation.entries) this.#seeKey(key);
        break;
      case 'seed':
        for (const { id } of operation.categories) this.#loseCategory(id);
        for (const { id } of operation.pets) this.#losePet(id);
        break;
      case 'importPart':
        this.#unended += operation.pets.length;
        break;
      case 'endImport': // its animals are those of all its parts, also of parts before the cut
        if (!this.#kept.petTable.has(operation.first)) this.counts.pets += operation.count;
        this.#seeNew('pet', operation.first + operation.count - 1);
        break;
    }
  }

  /**
   * Keeps the ids from being given again. A key that is lost stays as one that is revoked, without its secrets: what
   * cannot be read may have revoked it. What was taken from a key behind the cut stays taken, for the same reason.
   */
  settle(wall: number): void {
    const { counters, keyTable } = this.#kept;
    counters.nextPetId = this.#given.pet + this.#more.pet + 1;
    counters.nextOrderId = this.#given.order + this.#more.order + 1;
    for (const { id, revokedAt, secrets } of this.#keys.values()) {
      const key = keyTable.get(id);
      const isKept = ({ digest }: { digest: string }) => key?.secrets.some((secret) => secret.digest === digest);
      if (key) keyTable.set(id, { ...key, revokedAt: key.revokedAt ?? revokedAt, secrets: secrets.filter(isKept) });
    }
    this.counts.keys = Math.max(0, this.#given.key - keyTable.size);
    const about = { name: 'lost', plan: 'free', environment: 'production', createdAt: wall } as const;
    const unknown = { ...about, perMinute: 0, perDay: 0, revokedAt: wall };
    for (let slot = keyTable.size; slot < this.#given.key; slot++) {
      const id = keyIdOfSlot(slot);
      const lost = this.#keys.get(id) ?? { ...unknown, id, slot };
      keyTable.set(id, { ...lost, revokedAt: lost.revokedAt ?? wall, secrets: [] });
    }
  }

  #losePet(id: number): void {
    if (!this.#kept.petTable.has(id)) this.counts.pets++;
    this.#seeNew('pet', id);
  }

  #loseOrder(id: number): void {
    if (!this.#kept.orderTable.has(id)) this.counts.orders++;
    this.#seeNew('order', id);
  }

  #loseCategory(id: Int64): void {
    if (this.#kept.categoryTable.has(id)) this.counts.others++;
    else if (!this.#categories.has(id)) this.counts.categories++;
    this.#categories.add(id);
  }

  #loseKey(key: ApiKey): void {
    if (this.#kept.keyTable.has(key.id)) this.counts.others++;
    this.#keys.set(key.id, key);
    this.#seeKey(key.id);
  }

  #seeKey(id: string): void {
    this.#see({ key: [Number(/^k(\d+)$/.exec(id)?.[1] ?? 0)] });
  }

  /** The line in which it was given. */
  #seeNew(table: 'pet' | 'order', id: number): void {
    if (id > this.#given[table]) this.#more[table] = 0;
    this.#see({ [table]: [id] });
  }

  #see(ids: Partial<Record<Table, number[]>>): void {
    for (const table of ['pet', 'order', 'key'] as const) {
      this.#given[table] = Math.max(this.#given[table], ...(ids[table] ?? []));
    }
  }
}

/** Of the rows in columns. */
function idsIn({ first, statuses }: { first: number; statuses: string } = { first: 0, statuses: '' }): number[] {
  return [...statuses].flatMap((status, place) => (status === '-' ? [] : [first + place]));
}
