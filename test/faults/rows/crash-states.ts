import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import { prove } from '../../../src/store/change-json.ts';
import { DamagedError } from '../../../src/store/file/format.ts';
import { LOCK } from '../../../src/store/file/lock.ts';
import { addPet, pet } from '../../store/opened.ts';
import type { Report, Row } from '../row.ts';
import { type Random, SimDisk, seeded } from '../sim-disk.ts';
import { digestsOf, type Moment, openSim, recovered, work } from '../workload.ts';

const STATES = 100_000;
const ROUNDS = 15;
/** Moments at which all is durable have one state; others have as many as there are fates. */
const STATES_PER_MOMENT = 24;
/** Of how many states one is opened for good, with crashes in the recovery too. */
const OPENED = 20;
/** Without the writes of its first start, there is none: its file, and LOCK. */
const FIRST_WRITE_OF_A_STORE = 3;

/** By what a disk holds. Many crashes leave the same, and a recovery rests on nothing else. */
type Known = Map<string, Promise<string>>;

function digestOn(disk: SimDisk, known: Known): Promise<string> {
  const { fingerprint } = disk;
  const digest = known.get(fingerprint) ?? recovered(disk).then((state) => prove(state).digest);
  known.set(fingerprint, digest);
  return digest;
}

/** The states that may be found: after some change that was sent, with all that were acknowledged. */
const allowedAt = ({ history, acknowledged, sent }: Moment) => digestsOf(history).slice(acknowledged, sent + 1);

async function judge(moment: Moment, disk: SimDisk, known: Known): Promise<string> {
  const digest = await digestOn(disk, known);
  if (allowedAt(moment).includes(digest)) return digest;
  const { acknowledged, sent, history } = moment;
  const found = digestsOf(history).indexOf(digest);
  throw new Error(`recovered the state after ${found}, not after ${acknowledged} to ${sent} changes`);
}

/** Where a write was ever acknowledged, a file that is gone is missed. */
async function judgeWithoutFile(disk: SimDisk, known: Known): Promise<void> {
  const without = disk.copy();
  for (const name of disk.list()) if (name !== LOCK) without.names.delete(name);
  const found = await digestOn(without, known).catch((error) => error);
  if (!(found instanceof DamagedError)) throw new Error('without its file it is an empty store');
}

/**
 * Opens what the crash left, and crashes again at every file call. `before`: what may be found while it opens; when it
 * has opened, somebody may have read it, and it must stay; when a write is acknowledged, that too.
 */
async function openAndCrash(disk: SimDisk, before: string[], digest: string, random: Random, known: Known) {
  const moments: { disk: SimDisk; allowed: string[] }[] = [];
  let allowed = before;
  disk.onCall = () => moments.push({ disk: disk.copy(), allowed });
  const { store } = await openSim(disk);
  const state = await recovered(disk);
  state.apply([{ op: 'addPet', pet: pet(state.counters.nextPetId, 'after') }]);
  const after = prove(state).digest;
  allowed = [digest, after];
  await store.write((ahead) => ({ op: 'addPet', pet: pet(ahead.counters.nextPetId, 'after') }));
  moments.push({ disk: disk.copy(), allowed: [after] });
  for (const moment of moments) {
    const found = await digestOn(moment.disk.afterPowerLoss(random), known);
    if (!moment.allowed.includes(found)) throw new Error('a crash while opening changed what was recovered');
  }
  return moments.length;
}

async function tryMoment(moment: Moment, random: Random, known: Known): Promise<number> {
  const states = moment.disk.undecided === 0 ? 1 : STATES_PER_MOMENT;
  let tried = 0;
  for (let i = 0; i < states; i++) {
    // The process alone was killed, or the power failed.
    const disk = i === 0 ? moment.disk.copy() : moment.disk.afterPowerLoss(random);
    if (i === 0 && random() < 0.5) disk.loseUnsynced(); // its last sync had failed
    const digest = await judge(moment, disk, known);
    tried++;
    if (moment.acknowledged > 0) await judgeWithoutFile(disk, known);
    if (random() * OPENED >= 1) continue;
    tried += await openAndCrash(disk, i === 0 ? allowedAt(moment) : [digest], digest, random, known);
  }
  return tried;
}

/** A life with a compaction and a crash, in which the N-th write to a file finds no room. False where it has no N-th. */
async function tryNoRoom(report: Report, n: number): Promise<boolean> {
  const disk = new SimDisk();
  const acknowledged: number[] = [];
  let writes = 0;
  disk.onCall = (call) => {
    if (call === 'write done' && ++writes === n) throw Object.assign(new Error('no room'), { code: 'ENOSPC' });
  };
  const isFull = ({ failure, code }: Error & { failure?: string; code?: string }) =>
    assert.ok(failure === 'full' || code === 'ENOSPC', `told as ${failure ?? code}`);
  await report.attempt(`no room at write ${n}`, async () => {
    for (const isKilled of [true, false, false]) {
      const { store, journal } = await openSim(disk);
      for (let i = 0; i < 4; i++) {
        if (i === 2) await journal.compact().catch(isFull);
        await addPet(store).then(({ pet }) => acknowledged.push(pet.id), isFull);
      }
      if (!isKilled) await store.close();
    }
    const { items } = (await recovered(disk)).pets.page(0, 100);
    return isDeepStrictEqual(
      items.map(({ id }) => id),
      acknowledged,
    )
      ? undefined
      : `${acknowledged} were acknowledged`;
  });
  return writes >= n;
}

export const row: Row = {
  number: 10,
  name: 'simulated disk: every crash state',
  async run(scale, report) {
    for (let n = FIRST_WRITE_OF_A_STORE; await tryNoRoom(report, n); n++);
    for (let seed = report.seed; report.cases < STATES * scale; seed++) {
      const random = seeded(seed);
      const known: Known = new Map();
      for (const moment of await work(random, ROUNDS)) {
        try {
          report.cases += await tryMoment(moment, random, known);
        } catch (error) {
          report.cases++;
          report.fail(`seed ${seed}, at '${moment.call}': ${(error as Error).message}`);
        }
        if (report.isOver() || report.cases >= STATES * scale) return;
      }
    }
  },
};
