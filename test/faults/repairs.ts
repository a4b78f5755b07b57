/** Repair on the simulated disk, with the power failing at every file call of it. Part of row 10. */
import { DamagedError } from '../../src/store/damage.ts';
import type { ApiKey, Operation } from '../../src/store/model.ts';
import { recover } from '../../src/store/recovery.ts';
import { type Repaired, repair } from '../../src/store/repair.ts';
import { prove } from '../../src/store/snapshot.ts';
import type { State } from '../../src/store/state.ts';
import type { Report } from './row.ts';
import { type Random, SimDisk } from './sim-disk.ts';
import { DIR, openSim } from './workload.ts';
import { damaged, LOG, tryCase, writtenLog } from './written-log.ts';

const FATES = 4;
const COMPACTED_SNAPSHOT = 'snapshot-000002.jsonl';
const COMPACTED_LOG = 'log-000002.jsonl';

/** At any moment the old files are there, as they were or as copies; and the store is damaged, or repaired. */
async function judge(disk: SimDisk, old: [string, Buffer][], repaired: string): Promise<string | undefined> {
  for (const [name, bytes] of old) {
    const isKept = disk.list().some((copy) => copy.startsWith(name) && disk.bytes(copy).equals(bytes));
    if (!isKept) return `${name} is gone`;
  }
  try {
    return prove((await recover(disk, DIR)).state).digest === repaired ? undefined : 'neither damaged nor repaired';
  } catch (error) {
    return error instanceof DamagedError ? undefined : (error as Error).message;
  }
}

/** Repairs; `names` are the files that must be kept. */
async function tryRepair(report: Report, random: Random, disk: SimDisk, names: string[]): Promise<Repaired> {
  const old = names.map((name): [string, Buffer] => [name, disk.bytes(name)]);
  const moments: SimDisk[] = [];
  disk.onCall = () => moments.push(disk.copy());
  const repaired = await repair(DIR, { disk, lock: false });
  const { damage, proof } = repaired;
  for (const moment of [...moments, disk]) {
    for (let i = 0; i < FATES && !report.isOver(); i++) {
      await tryCase(report, `repair of ${damage?.file} damaged at ${damage?.offset}`, () =>
        judge(moment.afterPowerLoss(random), old, proof.digest),
      );
    }
  }
  return repaired;
}

/** A line of the log is no JSON any more. */
async function tryLogs(report: Report, random: Random): Promise<void> {
  const written = await writtenLog(false);
  for (const batch of written.batches.slice(0, -1)) {
    const bytes = Buffer.from(written.bytes);
    bytes[bytes.indexOf('"batch"', batch.end)] = 1;
    const disk = damaged(written.disk, LOG, bytes);
    const { damage } = await tryRepair(report, random, disk, [LOG]);
    const lines = bytes.subarray(0, damage?.offset).toString('latin1').split('\n').length - 2;
    if ((await recover(disk, DIR)).state.counts().pets > lines) report.fail('repair kept what stands after the damage');
  }
}

const AT = 1_767_225_600_000;

const pet = (id: number) => ({ id, name: `n${id}`, categoryId: 1, status: 'available' as const });
const addPet = (id: number, caller: string): Operation => ({
  op: 'addPet',
  pet: pet(id),
  once: { caller, key: `once-${id}`, at: AT },
});
const placeOrder = (id: number): Operation => ({
  op: 'placeOrder',
  order: { id, petId: 500 + id, status: 'placed', placedAt: AT },
});
const category = (id: number) => ({ id, name: `c${id}` });
const use = (key: string): Operation => ({
  op: 'usage',
  at: AT,
  entries: [{ key, dayUsed: 5, dayEndsAt: AT, banStep: 0, banEndsAt: 0 }],
});
function setKey(slot: number, changed: { revokedAt?: number } = {}): Operation {
  const about = { name: 'a', plan: 'free' as const, environment: 'staging' as const, createdAt: 1 };
  const limits = { perMinute: 60, perDay: 1000 };
  const secrets = [{ digest: `d${slot}` }];
  return { op: 'setKey', key: { id: `k${slot + 1}`, slot, ...about, ...limits, secrets, ...changed } };
}

/** Lines of every kind, of animals more than one. */
const IN_SNAPSHOT: Operation[] = [
  { op: 'seed', categories: [category(1), category(2)], pets: Array.from({ length: 1_040 }, (_, i) => pet(i + 1)) },
  setKey(0),
  setKey(1),
  use('k1'),
  placeOrder(1),
  placeOrder(2),
  addPet(1_041, 'k1'),
];
const IN_LOG: Operation[] = [
  setKey(2),
  setKey(0, { revokedAt: AT }),
  use('k3'),
  addPet(1_042, 'k3'),
  placeOrder(3),
  { op: 'closeOrder', id: 1, status: 'delivered' },
  { op: 'setCategory', category: category(3) },
];

async function compacted(after: Operation[]): Promise<SimDisk> {
  const disk = new SimDisk();
  const store = await openSim(disk);
  for (const operation of IN_SNAPSHOT) await store.write(() => operation);
  await store.compact();
  for (const operation of after) await store.write(() => operation);
  await store.close();
  return disk;
}

/** What cannot be read may have given some, and they are left out. */
const SPARE_IDS_MAX = 4_096;

/** Nothing that could be read anywhere is given again, and what is lost is told. */
function wrongIn({ lost }: Repaired, whole: State, state: State): string | undefined {
  state.check();
  const { nextPetId, nextOrderId } = state.counters;
  const [spareIds, spareOrders] = [nextPetId - whole.counters.nextPetId, nextOrderId - whole.counters.nextOrderId];
  if (spareIds < 0 || spareIds > SPARE_IDS_MAX) return `the next animal is ${nextPetId}`;
  if (spareOrders < 0 || spareOrders > SPARE_IDS_MAX) return `the next order is ${nextOrderId}`;
  if ([...state.keyTable.keys()].join() !== [...whole.keyTable.keys()].join()) return 'ids of keys are free again';
  const isBack = (key: ApiKey) => key.revokedAt !== undefined && !state.keyTable.get(key.id)?.revokedAt;
  if ([...whole.keyTable.values()].some(isBack)) return 'a key that was revoked works again';
  const dead = [...state.keyTable.values()].filter(({ secrets }) => secrets.length === 0);
  if (dead.some(({ revokedAt }) => revokedAt === undefined)) return 'a key without secrets is not revoked';
  const kept = { ...state.counts(), keys: state.keyTable.size - dead.length };
  for (const [kind, count] of Object.entries(whole.counts())) {
    const gone = count - kept[kind as keyof typeof kept];
    const told = lost[kind as keyof typeof kept];
    if (told !== gone) return `${gone} ${kind} are lost, ${told} told`;
  }
  return undefined;
}

/** Lines of the snapshot are no JSON any more: each in turn, all but the one that tells counts, the first and that. */
async function trySnapshots(report: Report, random: Random, after: Operation[]): Promise<void> {
  const disk = await compacted(after);
  const { state: whole } = await recover(disk, DIR);
  const bytes = disk.bytes(COMPACTED_SNAPSHOT);
  const lines: number[] = [];
  for (let at = bytes.indexOf(10) + 1; at < bytes.length; at = bytes.indexOf(10, at) + 1) lines.push(at);
  const end = lines.length - 1;
  for (const some of [...lines.map((at) => [at]), lines.slice(0, end), [lines[0], lines[end]]]) {
    const broken = Buffer.from(bytes);
    for (const at of some) broken[at] = 1;
    const one = damaged(disk, COMPACTED_SNAPSHOT, broken);
    await tryCase(report, `a snapshot broken at ${some}`, async () => {
      const repaired = await tryRepair(report, random, one, [COMPACTED_SNAPSHOT, COMPACTED_LOG]);
      return wrongIn(repaired, whole, (await recover(one, DIR)).state);
    });
  }
}

export async function tryRepairs(report: Report, random: Random): Promise<void> {
  await tryLogs(report, random);
  await trySnapshots(report, random, []);
  await trySnapshots(report, random, IN_LOG);
}
