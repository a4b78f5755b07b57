import { MAX_KEYS } from '../ahead.ts';
import type { Proof } from '../model.ts';
import { decode, type Entry, prove } from '../record.ts';
import { State } from '../state.ts';
import { keepBeside } from './directory.ts';
import { type Disk, realDisk } from './disk.ts';
import { type DamagedError, fileName, isSealed, MAX_BATCH_BYTES } from './format.ts';
import { takeLock } from './lock.ts';
import { type Found, type Line, type Progress, readLines } from './read.ts';
import { goOnIn, recover } from './rewrite.ts';

type Kind = 'pet' | 'order' | 'slot';
/** None takes fewer bytes in a file. */
const MIN_BYTES: Record<Kind, number> = { pet: 7, order: 7, slot: 100 };
/** More were never given behind a place of which the highest id is known. */
const MAX_GIVEN: Record<Kind, number> = {
  pet: Number.POSITIVE_INFINITY,
  order: Number.POSITIVE_INFINITY,
  slot: MAX_KEYS,
};
const LINE_MIN_BYTES = 50;

interface Repaired {
  /** Undefined: there was nothing to repair, and nothing was changed. */
  damage?: DamagedError;
  /** Where the damaged file is kept. */
  kept?: string;
  lostBatches: number;
  lostBytes: number;
  /** Those that worked so far. */
  revoked: string[];
  /** The next ids; those that may have been given behind the cut are left out. */
  nextPetId: number;
  nextOrderId: number;
  nextSlot: number;
  proof: Proof;
}

interface RepairOptions {
  disk?: Disk;
  /** One that is simulated cannot be locked. */
  lock?: boolean;
  isAlive?: () => Promise<boolean>;
  progress?: Progress;
  now?: number;
}

/**
 * Blunt: keeps what stands before the damage, and nothing that stands behind it. But what was given there somebody may
 * know, and what was taken away there must not come back. So ids leap past all that can be read there, and past all
 * that lost bytes could have held; and all keys are revoked, for each may have been, or one of its secrets ended.
 *
 * The damaged file is kept beside, durable, before anything else is changed.
 */
export async function repair(
  dir: string,
  { disk = realDisk, lock = true, isAlive, progress, now = Date.now() }: RepairOptions = {},
): Promise<Repaired> {
  const taken = lock ? await takeLock(dir, isAlive) : undefined;
  try {
    const state = new State();
    const found = await recover(disk, dir, state, { salvage: true, progress });
    if (!found) throw new Error(`there is no store in ${dir}`);
    const { header, damage } = found;
    const nothing = { lostBatches: 0, lostBytes: 0, revoked: [], ...state.counters };
    if (!damage) return { ...nothing, proof: prove(state) };
    const loss = new Loss(state, found);
    await loss.read(disk, damage);
    const kept = await keepBeside(disk, dir, fileName(header.file));
    const report = loss.settle(state, now);
    await goOnIn(disk, dir, { ...header, file: header.file + 1, first: Math.max(found.batch, header.first) }, state);
    return { damage, kept, ...report, proof: prove(state) };
  } finally {
    taken?.release();
  }
}

/** What stood behind the cut, as far as it can be known. */
class Loss {
  /** The highest id of each kind. */
  readonly #highest: Record<Kind, number>;
  readonly #lastKept: number;
  /** Where the line before stood. */
  #before: { batch: number; n: number; isLast: boolean };
  /** Bytes that cannot be read or are not there; and those since the line before. */
  #unread = 0;
  #unreadHere = 0;
  #bytes = 0;

  constructor({ counters }: State, { header, batch, lines }: Found) {
    this.#highest = { pet: counters.nextPetId - 1, order: counters.nextOrderId - 1, slot: counters.nextSlot - 1 };
    this.#lastKept = batch === 0 ? header.first - 1 : batch;
    this.#before = { batch: this.#lastKept + (lines > 0 ? 1 : 0), n: lines - 1, isLast: lines === 0 };
  }

  async read(disk: Disk, { file, offset: from }: DamagedError): Promise<void> {
    const size = disk.size(file);
    const fd = disk.openToRead(file);
    try {
      const end = await readLines(disk, fd, size, (bytes, offset) => this.#take(bytes, offset >= from));
      if (end) this.#miss(size - Math.max(end.offset, from));
    } finally {
      disk.close(fd);
    }
    this.#bytes = size - from;
  }

  /** Makes the state one in which nothing comes back. */
  settle(state: State, now: number): Omit<Repaired, 'damage' | 'kept' | 'proof'> {
    const given = (kind: Kind) => Math.min(MAX_GIVEN[kind], Math.ceil(this.#unread / MIN_BYTES[kind]));
    const next = (kind: Kind) => this.#highest[kind] + 1 + given(kind);
    const counters = { nextPetId: next('pet'), nextOrderId: next('order'), nextSlot: next('slot') };
    Object.assign(state.counters, counters);
    const revoked = [...state.keys()].filter(({ revokedAt }) => revokedAt === undefined);
    for (const key of revoked) state.keyTable.set(key.id, { ...key, revokedAt: now });
    const lostBatches = Math.max(1, this.#before.batch - this.#lastKept);
    return { lostBatches, lostBytes: this.#bytes, revoked: revoked.map(({ id }) => id), ...counters };
  }

  #take(bytes: Buffer, isBehind: boolean): undefined {
    if (!isBehind) return;
    if (!isSealed(bytes)) return this.#miss(bytes.length + 1);
    const line: Line = JSON.parse(bytes.toString());
    if (line.op === undefined) return this.#miss(bytes.length + 1); // a header
    this.#follow(line);
    const ids = line.op === 'close' ? {} : idsIn(decode(line));
    for (const kind of Object.keys(ids) as Kind[]) this.#highest[kind] = Math.max(this.#highest[kind], ids[kind]!);
  }

  /** Lines that should stand before this one, and are not there, nor could be in what cannot be read. */
  #follow({ batch, n, last = false }: Line): void {
    const { batch: b, n: m, isLast } = this.#before;
    if (batch < b || (batch === b && n <= m)) return; // doubled, or out of place
    const missing = batch === b ? n - m - 1 : batch - b - (isLast ? 1 : 0) + n;
    if (this.#unreadHere < missing * LINE_MIN_BYTES) this.#miss((batch - b + 1) * MAX_BATCH_BYTES);
    this.#before = { batch, n, isLast: last };
    this.#unreadHere = 0;
  }

  #miss(bytes: number): undefined {
    this.#unread += bytes;
    this.#unreadHere += bytes;
  }
}

const NONE = () => ({});

/** The highest ids that a line of each kind gives. One that is missing here does not compile. */
const IDS: { [E in Entry as E['op']]: (entry: E) => Partial<Record<Kind, number>> } = {
  addPet: ({ pet }) => ({ pet: pet.id }),
  addPets: ({ first, pets }) => ({ pet: first + pets.length - 1 }),
  fill: ({ pets }) => ({ pet: pets.length }),
  pets: ({ first, names }) => ({ pet: first + names.length - 1 }),
  placeOrder: ({ order }) => ({ order: order.id }),
  orders: ({ first, petIds }) => ({ order: first + petIds.length - 1 }),
  setKey: ({ key }) => ({ slot: key.slot }),
  proof: ({ counters: { nextPetId, nextOrderId, nextSlot } }) => {
    return { pet: nextPetId - 1, order: nextOrderId - 1, slot: nextSlot - 1 };
  },
  closeOrder: NONE,
  setCategory: NONE,
  usage: NONE,
  advance: NONE,
  onces: NONE,
};

const idsIn = (entry: Entry) => (IDS[entry.op] as (entry: Entry) => Partial<Record<Kind, number>>)(entry);
