import { DamagedError } from '../../../src/store/file/format.ts';
import { repair } from '../../../src/store/file/tools.ts';
import type { ApiKey, Operation } from '../../../src/store/model.ts';
import { prove } from '../../../src/store/record.ts';
import { State } from '../../../src/store/state.ts';
import type { Row } from '../row.ts';
import { DIR, type Random, SimDisk, seeded } from '../sim-disk.ts';
import { aKey, openSim, recovered } from '../workload.ts';
import { damaged } from '../written-file.ts';

const DAMAGES = 500;
const OLDER = 'store-000001.jsonl';
const FILE = 'store-000002.jsonl';
const SECTOR_BYTES = 512;
const AT = 1_767_225_600_000;

const pets = (count: number) =>
  Array.from({ length: count }, () => ({ name: 'n', categoryId: 2n ** 60n, status: 'available' as const }));
const addPet = (id: number): Operation => ({
  op: 'addPet',
  pet: { id, ...pets(1)[0] },
  once: { caller: 'k1', key: `once-${id}`, at: AT + id },
});
const placeOrder = (id: number): Operation => {
  return { op: 'placeOrder', order: { id, petId: id * 2, status: 'placed', placedAt: AT } };
};
const setKey = (slot: number, changed: Partial<ApiKey> = {}): Operation => {
  return { op: 'setKey', key: { ...aKey(slot, () => slot), ...changed } };
};

/** Folded into the first batch; and behind it, where keys end, and secrets of them. */
const FIRST: Operation[] = [
  { op: 'fill', at: AT, categories: [{ id: 1, name: 'one' }], pets: pets(1_500) },
  ...[0, 1, 2, 3].map((slot) => setKey(slot)),
  ...[1, 2, 3].map(placeOrder),
  setKey(3, { revokedAt: AT }),
];
const THEN: Operation[] = [
  addPet(1_501),
  setKey(0, { revokedAt: AT }),
  addPet(1_502),
  { op: 'addPets', first: 1_503, pets: pets(3) },
  setKey(4),
  setKey(1, { secrets: [{ digest: 'new' }, { digest: 'd1', endsAt: AT }] }),
  placeOrder(4),
  { op: 'closeOrder', id: 1, status: 'delivered' },
  setKey(4, { revokedAt: AT }),
  placeOrder(5),
  addPet(1_506),
  { op: 'usage', at: AT, entries: [{ key: 'k3', dayUsed: 5, dayEndsAt: AT, banStep: 0, banEndsAt: 0 }] },
];

interface Store {
  disk: SimDisk;
  /** The file before it was compacted. */
  older: Buffer;
  bytes: Buffer;
  /** The digest after each batch; then the closing one. */
  digests: string[];
  whole: State;
}

async function build(): Promise<Store> {
  const disk = new SimDisk();
  const { store, journal } = await openSim(disk);
  for (const operation of FIRST) await store.write(() => operation);
  const older = disk.bytes(OLDER);
  await journal.compact();
  const whole = new State();
  whole.apply(FIRST);
  const digests = [prove(whole).digest];
  for (const operation of THEN) {
    await store.write(() => operation);
    whole.apply([operation]);
    digests.push(prove(whole).digest);
  }
  await store.close();
  return { disk, older, bytes: disk.bytes(FILE), digests, whole };
}

const place = (random: Random, size: number) => Math.floor(random() * size);
const withBytes = (bytes: Buffer, at: number, length: number, byte: (old: number) => number) =>
  Buffer.from(bytes.map((old, i) => (i >= at && i < at + length ? byte(old) : old)));

type Damage = (bytes: Buffer, random: Random) => Buffer | undefined;

/** What becomes of the file's lines. */
const lines =
  (change: (lines: string[], at: number, other: number) => string[]): Damage =>
  (bytes, random) => {
    const all = bytes.toString('latin1').split(/(?<=\n)/);
    return Buffer.from(change(all, place(random, all.length), place(random, all.length)).join(''), 'latin1');
  };

const flipped = (bytes: Buffer, at: number, random: Random) =>
  withBytes(bytes, at, 1, (old) => old ^ (1 << place(random, 8)));

const DAMAGES_BY_NAME: Record<string, Damage> = {
  bit: (bytes, random) => flipped(bytes, place(random, bytes.length), random),
  'bit where the last ids stand': (bytes, random) => {
    const id = ['"id":1506', '"order":{"id":5', '"id":"k5"'][place(random, 3)];
    return flipped(bytes, bytes.indexOf(id) + place(random, id.length), random);
  },
  bytes: (bytes, random) =>
    withBytes(bytes, place(random, bytes.length), 1 + place(random, 300), () => place(random, 256)),
  'bytes removed': (bytes, random) => {
    const from = place(random, bytes.length - 1);
    return Buffer.concat([bytes.subarray(0, from), bytes.subarray(from + 1 + place(random, 300))]);
  },
  sectors: (bytes, random) => {
    const from = place(random, bytes.length / SECTOR_BYTES) * SECTOR_BYTES;
    return withBytes(bytes, from, SECTOR_BYTES * (1 + place(random, 4)), () => 0);
  },
  'line dropped': lines((all, at) => all.toSpliced(at, 1)),
  'lines dropped': lines((all, at, other) => all.toSpliced(at, 1 + (other % 5))),
  'line doubled': lines((all, at, other) => all.toSpliced(other, 0, all[at])),
  'lines swapped': lines((all, a, b) => all.with(a, all[b]).with(b, all[a])),
  'garbage behind': (bytes, random) => {
    const garbage = Buffer.alloc(1 + place(random, 900)).map(() => place(random, 256));
    return Buffer.concat([bytes, garbage]);
  },
  cut: (bytes, random) => bytes.subarray(0, place(random, bytes.length)),
  emptied: () => Buffer.alloc(0),
  missing: () => undefined,
  older: () => undefined,
};

/** Refused, or harmless: only what a crash could have cut off is gone. */
async function judge(store: Store, disk: SimDisk, name: string): Promise<DamagedError | string | undefined> {
  try {
    const state = await recovered(disk);
    state.check();
    const count = store.digests.indexOf(prove(state).digest);
    if (count === -1) return 'recovered a state that never was';
    // What is cut off at the end, or zeroed up to it, looks as if a crash had been there.
    const isEnd = name === 'cut' || name.endsWith('dropped') || disk.bytes(FILE).at(-1) === 0;
    return isEnd || count >= store.digests.length - 2 ? undefined : `only ${count} batches were taken`;
  } catch (error) {
    return error instanceof DamagedError ? error : (error as Error).message;
  }
}

/** Repaired, no id is given again, and what was ended works no more; or nothing was changed. */
async function judgeRepair({ whole }: Store, disk: SimDisk): Promise<string | undefined> {
  const before = [...disk.names.values()].map(({ now }) => now);
  try {
    const { damage, lostBytes, lostBatches } = await repair(DIR, { disk });
    if (!damage || lostBytes <= 0 || lostBatches <= 0) return `it tells ${lostBatches} batches, ${lostBytes} bytes`;
  } catch (error) {
    const isUntouched = [...disk.names.values()].every(({ now }, i) => now === before[i]);
    return error instanceof DamagedError && isUntouched ? undefined : (error as Error).message;
  }
  const state = await recovered(disk);
  state.check();
  for (const name of ['nextPetId', 'nextOrderId', 'nextSlot'] as const) {
    if (state.counters[name] < whole.counters[name]) return `${name} is ${state.counters[name]}`;
  }
  const working = [...state.keys.values()].filter(({ revokedAt }) => revokedAt === undefined);
  if (working.length > 0) return `${working[0].id} works`;
  const { store } = await openSim(disk);
  await store.write((ahead) => ({ op: 'addPet', pet: { id: ahead.counters.nextPetId, ...pets(1)[0] } }));
  store.read.check();
  return store.close().then(() => undefined);
}

export const row: Row = {
  number: 12,
  name: 'random damages, a third of them repaired',
  async run(scale, report) {
    const store = await build();
    const names = Object.keys(DAMAGES_BY_NAME);
    for (let i = 0; i < DAMAGES * scale && !report.isOver(); i++) {
      const seed = report.seed + i;
      const random = seeded(seed);
      const name = names[i % names.length];
      const bytes = DAMAGES_BY_NAME[name](store.bytes, random);
      const disk = damaged(store.disk, FILE, bytes ?? Buffer.alloc(0));
      if (bytes === undefined) disk.names.delete(FILE);
      if (name === 'older') disk.replace(OLDER, store.older);
      if (bytes?.equals(store.bytes)) continue;
      await report.attempt(`${name}, seed ${seed}`, async () => {
        const found = await judge(store, disk, name);
        if (!(found instanceof DamagedError)) return found;
        return random() < 1 / 3 ? judgeRepair(store, disk) : undefined;
      });
    }
  },
};
