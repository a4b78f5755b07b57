import { prove } from '../../../src/store/change-json.ts';
import { columnsOf } from '../../../src/store/changes.ts';
import { DamagedError } from '../../../src/store/file/format.ts';
import { LOCK } from '../../../src/store/file/lock.ts';
import type { State } from '../../../src/store/state.ts';
import { aKey, pet } from '../../store/opened.ts';
import type { Row } from '../row.ts';
import { type Random, SECTOR_BYTES, SimDisk, seeded } from '../sim-disk.ts';
import { oneChange, openSim } from '../workload.ts';
import { damaged, outcome } from '../written-file.ts';

const DAMAGES = 500;
const OPERATIONS = 20;
const FILE = 'store-000002.jsonl';
interface Store {
  disk: SimDisk;
  bytes: Buffer;
  /** After each batch. */
  digests: string[];
  whole: State;
  /** How many of them `LOCK` knows to have been durable, where the store was not closed. */
  known?: number;
}

/** Half of it is folded into the first batch. */
async function build(random: Random, known?: number): Promise<Store> {
  const disk = new SimDisk();
  const { store, journal } = await openSim(disk);
  const animals = Array.from({ length: 1_500 }, () => pet(0));
  await store.write(() => ({ op: 'fill', at: 1, categories: [], pets: columnsOf(animals) }));
  await store.write(({ counters }) => ({ op: 'setKey', key: aKey(counters.nextSlot) }));
  for (let i = 0; i < OPERATIONS; i++) await store.write((ahead) => oneChange(ahead, random));
  await journal.compact();
  const digests = [prove(store.read).digest];
  const marks = [disk.bytes(LOCK)];
  for (let i = 0; i < OPERATIONS; i++) {
    await store.write((ahead) => oneChange(ahead, random));
    digests.push(prove(store.read).digest);
    await new Promise((resolve) => setImmediate(resolve)); // the mark comes behind the batch
    marks.push(disk.bytes(LOCK));
  }
  if (known === undefined) await store.close();
  else disk.replace(LOCK, marks[known]);
  // Without power at once: what was not synced reads as zeros.
  return { disk: disk.afterPowerLoss(() => 0.35), bytes: disk.bytes(FILE), digests, whole: store.read, known };
}

const place = (random: Random, size: number) => Math.floor(random() * size);
const withBytes = (bytes: Buffer, at: number, length: number, byte: (old: number) => number) =>
  Buffer.from(bytes.map((old, i) => (i >= at && i < at + length ? byte(old) : old)));

const DAMAGES_BY_NAME: Record<string, (bytes: Buffer, random: Random) => Buffer> = {
  'bit where the last ids stand': (bytes, random) => {
    const last = bytes.lastIndexOf(['"pet":{"id":', '"order":{"id":', '"key":{"id":"k'][place(random, 3)]);
    return withBytes(bytes, last + place(random, 20), 1, (old) => old ^ (1 << place(random, 8)));
  },
  bytes: (bytes, random) =>
    withBytes(bytes, place(random, bytes.length), 1 + place(random, 100), () => place(random, 256)),
  'bytes removed': (bytes, random) => {
    const from = place(random, bytes.length - 1);
    return Buffer.concat([bytes.subarray(0, from), bytes.subarray(from + 1 + place(random, 100))]);
  },
  sectors: (bytes, random) => {
    const from = place(random, bytes.length / SECTOR_BYTES) * SECTOR_BYTES;
    return withBytes(bytes, from, SECTOR_BYTES * (1 + place(random, 4)), () => 0);
  },
  'lines dropped': (bytes, random) => {
    const all = bytes.toString('latin1').split(/(?<=\n)/);
    return Buffer.from(all.toSpliced(place(random, all.length), 1 + place(random, 5)).join(''), 'latin1');
  },
  'garbage behind': (bytes, random) =>
    Buffer.concat([bytes, Buffer.alloc(1 + place(random, 900)).map(() => place(random, 256))]),
  'zeros behind': (bytes, random) => Buffer.concat([bytes, Buffer.alloc(1 + place(random, 2_000))]),
  'end read as zeros': (bytes, random) => withBytes(bytes, endOf(bytes, random), bytes.length, () => 0),
  'end read as noise': (bytes, random) =>
    withBytes(bytes, endOf(bytes, random), bytes.length, () => place(random, 256)),
  'end cut off': (bytes, random) => bytes.subarray(0, endOf(bytes, random)),
};

/** Where the damaged end begins: often within the last line, seldom far before it. */
const endOf = (bytes: Buffer, random: Random) => bytes.length - 1 - place(random, bytes.length * random() ** 8);

/** Refused; or, of a store that was not closed, harmless: only what a crash could have cut off is gone. */
async function judge({ digests, known }: Store, disk: SimDisk, name: string) {
  const found = await outcome(disk, digests);
  if (found instanceof DamagedError) return found;
  if (known === undefined) return 'it was closed, and this was taken';
  // What is cut off at the end, or zeroed up to its last line, looks as if a crash had been there.
  const bytes = disk.bytes(FILE);
  const left = bytes.subarray(bytes.lastIndexOf(0) + 1);
  const isEnd = /^lines dropped|^end/.test(name) || left.indexOf('\n') === left.length - 1;
  return found >= known && (isEnd || found >= digests.length - 2) ? undefined : `only ${found} batches were taken`;
}

export const row: Row = {
  number: 12,
  name: 'random damages',
  async run(scale, report) {
    const closed = await build(seeded(report.seed));
    const open = await build(seeded(report.seed), OPERATIONS / 2);
    const names = Object.keys(DAMAGES_BY_NAME);
    for (let i = 0; i < DAMAGES * scale && !report.isOver(); i++) {
      const seed = report.seed + i;
      const random = seeded(seed);
      const name = names[i % names.length];
      const store = random() < 0.5 ? closed : open;
      const bytes = DAMAGES_BY_NAME[name](store.bytes, random);
      if (bytes.equals(store.bytes)) continue;
      await report.attempt(`${name}${store.known ? '' : ' after a clean close'}, seed ${seed}`, async () => {
        const disk = damaged(store.disk, FILE, bytes);
        const found = await judge(store, disk, name);
        return found instanceof DamagedError ? undefined : found;
      });
    }
  },
};
