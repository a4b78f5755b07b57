import { DamagedError } from '../../../src/store/file/format.ts';
import { repair } from '../../../src/store/file/repair.ts';
import type { ApiKey, Operation } from '../../../src/store/model.ts';
import { prove } from '../../../src/store/record.ts';
import { State } from '../../../src/store/state.ts';
import type { Row } from '../row.ts';
import { DIR, type Random, SimDisk, seeded } from '../sim-disk.ts';
import { openSim, recovered } from '../workload.ts';
import { damaged, tryCase } from '../written-file.ts';

const DAMAGES = 500;
const OLDER = 'store-000001.jsonl';
const FILE = 'store-000002.jsonl';
const SECTOR_BYTES = 512;
const AT = 1_767_225_600_000;

const pet = (id: number) => ({ id, name: `n${id}`, categoryId: 2n ** 60n, status: 'available' as const });
const secret = (slot: number, n: number, endsAt?: number) => ({ digest: `secret ${n} of ${slot}`, endsAt });

function setKey(slot: number, changed: Partial<ApiKey> = {}): Operation {
  const about = { name: 'a', plan: 'free' as const, environment: 'staging' as const, createdAt: 1 };
  const limits = { perMinute: 60, perDay: 1000 };
  return {
    op: 'setKey',
    key: { id: `k${slot + 1}`, slot, ...about, ...limits, secrets: [secret(slot, 1)], ...changed },
  };
}

const addPet = (id: number): Operation => ({
  op: 'addPet',
  pet: pet(id),
  once: { caller: 'k1', key: `once-${id}`, at: AT + id },
});
const placeOrder = (id: number): Operation => ({
  op: 'placeOrder',
  order: { id, petId: id * 2, status: 'placed', placedAt: AT },
});

/** Folded into the first batch; and behind it, where keys end, and secrets of them. */
const FIRST: Operation[] = [
  {
    op: 'fill',
    at: AT,
    categories: [{ id: 1, name: 'one' }],
    pets: Array.from({ length: 1_500 }, (_, i) => pet(i + 1)),
  },
  ...[0, 1, 2, 3].map((slot) => setKey(slot)),
  ...[1, 2, 3].map(placeOrder),
  setKey(3, { revokedAt: AT }),
];
const THEN: Operation[] = [
  addPet(1_501),
  setKey(0, { revokedAt: AT }),
  addPet(1_502),
  { op: 'addPets', first: 1_503, pets: [pet(0), pet(0), pet(0)].map(({ id: _, ...one }) => one) },
  setKey(4),
  setKey(1, { secrets: [secret(1, 2), secret(1, 1, AT)] }),
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
  whole.take(FIRST);
  const digests = [prove(whole).digest];
  for (const operation of THEN) {
    await store.write(() => operation);
    whole.take([operation]);
    digests.push(prove(whole).digest);
  }
  await store.close();
  return { disk, older, bytes: disk.bytes(FILE), digests, whole };
}

type Damage = (bytes: Buffer, random: Random) => Buffer | undefined;

const place = (random: Random, size: number) => Math.floor(random() * size);
const linesOf = (bytes: Buffer) => bytes.toString('latin1').split(/(?<=\n)/);
const joined = (lines: string[]) => Buffer.from(lines.join(''), 'latin1');

function overwritten(bytes: Buffer, at: number, length: number, random: Random): Buffer {
  const other = Buffer.from(bytes);
  for (let i = at; i < Math.min(bytes.length, at + length); i++) other[i] = place(random, 256);
  return other;
}

const DAMAGES_BY_NAME: Record<string, Damage> = {
  bit: (bytes, random) => {
    const flipped = Buffer.from(bytes);
    flipped[place(random, bytes.length)] ^= 1 << place(random, 8);
    return flipped;
  },
  'bit where the last ids stand': (bytes, random) => {
    const flipped = Buffer.from(bytes);
    const id = ['"id":1506', '"order":{"id":5', '"id":"k5"'][place(random, 3)];
    flipped[bytes.indexOf(id) + place(random, id.length)] ^= 1 << place(random, 8);
    return flipped;
  },
  bytes: (bytes, random) => overwritten(bytes, place(random, bytes.length), 1 + place(random, 300), random),
  'bytes removed': (bytes, random) => {
    const from = place(random, bytes.length - 1);
    return Buffer.concat([bytes.subarray(0, from), bytes.subarray(from + 1 + place(random, 300))]);
  },
  sectors: (bytes, random) => {
    const from = place(random, bytes.length / SECTOR_BYTES) * SECTOR_BYTES;
    const end = Math.min(bytes.length, from + SECTOR_BYTES * (1 + place(random, 4)));
    return Buffer.from(bytes).fill(0, from, end);
  },
  'line dropped': (bytes, random) => joined(linesOf(bytes).toSpliced(place(random, linesOf(bytes).length), 1)),
  'lines dropped': (bytes, random) => {
    const lines = linesOf(bytes);
    return joined(lines.toSpliced(place(random, lines.length), 1 + place(random, 5)));
  },
  'line doubled': (bytes, random) => {
    const lines = linesOf(bytes);
    const at = place(random, lines.length);
    return joined(lines.toSpliced(place(random, lines.length), 0, lines[at]));
  },
  'lines swapped': (bytes, random) => {
    const lines = linesOf(bytes);
    const [a, b] = [place(random, lines.length), place(random, lines.length)];
    return joined(lines.with(a, lines[b]).with(b, lines[a]));
  },
  'garbage behind': (bytes, random) =>
    Buffer.concat([bytes, overwritten(Buffer.alloc(1 + place(random, 900)), 0, 900, random)]),
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

/** No id is given again, and what was ended works no more. */
async function judgeRepaired({ whole }: Store, disk: SimDisk): Promise<string | undefined> {
  const { store } = await openSim(disk);
  const { pet: added } = await store.write((ahead) => ({ op: 'addPet' as const, pet: pet(ahead.nextPetId()) }));
  if (added.id < whole.counters.nextPetId) return `animal ${added.id} is given again`;
  const { next } = await new Promise<{ next: number[] }>((resolve) => {
    void store.write((ahead) => {
      resolve({ next: [ahead.nextOrderId(), ahead.keyCount()] });
      return { op: 'addPet', pet: pet(ahead.nextPetId()) };
    });
  });
  if (next[0] < whole.counters.nextOrderId || next[1] < whole.counters.nextSlot) return `next are ${next}`;
  for (const { id, revokedAt, secrets } of store.read.keys()) {
    const then = whole.key(id);
    if (revokedAt === undefined && (then?.revokedAt || secrets.some(({ digest }) => isEnded(digest, then!)))) {
      return `${id} works again`;
    }
  }
  store.check();
  await store.close();
  return undefined;
}

const isEnded = (digest: string, { secrets }: ApiKey) =>
  !secrets.some((one) => one.digest === digest && one.endsAt === undefined);

async function tryRepair(store: Store, disk: SimDisk): Promise<string | undefined> {
  const before = [...disk.names.values()].map(({ now }) => now);
  try {
    const { damage, lostBytes, lostBatches } = await repair(DIR, { disk, lock: false });
    if (!damage || lostBytes <= 0 || lostBatches <= 0) return `it tells ${lostBatches} batches, ${lostBytes} bytes`;
  } catch (error) {
    const isUntouched = [...disk.names.values()].every(({ now }, i) => now === before[i]);
    return error instanceof DamagedError && isUntouched ? undefined : (error as Error).message;
  }
  return judgeRepaired(store, disk);
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
      await tryCase(report, `${name}, seed ${seed}`, async () => {
        const found = await judge(store, disk, name);
        if (!(found instanceof DamagedError)) return found;
        return random() < 1 / 3 ? tryRepair(store, disk) : undefined;
      });
    }
  },
};
