import { LOCK } from '../../../src/store/file/directory.ts';
import { DamagedError } from '../../../src/store/file/format.ts';
import type { Pet } from '../../../src/store/model.ts';
import { prove } from '../../../src/store/record.ts';
import type { State } from '../../../src/store/state.ts';
import { tryRepairs } from '../repairs.ts';
import type { Row } from '../row.ts';
import { type Random, type SimDisk, seeded } from '../sim-disk.ts';
import { digestsOf, type Moment, openSim, recovered, work } from '../workload.ts';

const STATES = 100_000;
const ROUNDS = 25;
/** Moments at which all is durable have one state; others have as many as there are fates. */
const STATES_PER_MOMENT = 24;
/** Of how many states one is opened for good, with crashes in the recovery too. */
const OPENED = 40;

/** By what a disk holds. Many crashes leave the same, and a recovery rests on nothing else. */
type Known = Map<string, Promise<string>>;

async function checkedDigest(disk: SimDisk): Promise<string> {
  const state = await recovered(disk);
  state.check();
  return prove(state).digest;
}

function digestOn(disk: SimDisk, known: Known): Promise<string> {
  const { fingerprint } = disk;
  const digest = known.get(fingerprint) ?? checkedDigest(disk);
  known.set(fingerprint, digest);
  return digest;
}

/** The recovered state must be the one after some operation that was sent, with all that were acknowledged. */
async function judge(moment: Moment, disk: SimDisk, known: Known): Promise<string> {
  const digest = await digestOn(disk, known);
  const { acknowledged, sent, history } = moment;
  if (
    !digestsOf(history)
      .slice(acknowledged, sent + 1)
      .includes(digest)
  ) {
    const found = digestsOf(history).indexOf(digest);
    throw new Error(`recovered the state after ${found}, not after ${acknowledged} to ${sent} operations`);
  }
  return digest;
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
async function openAndCrash(
  disk: SimDisk,
  before: string[],
  digest: string,
  random: Random,
  known: Known,
): Promise<number> {
  const moments: { disk: SimDisk; allowed: string[] }[] = [];
  let allowed = before;
  disk.onCall = () => moments.push({ disk: disk.copy(), allowed });
  const { store } = await openSim(disk);
  const pet: Pet = { id: 0, name: 'after', categoryId: 1, status: 'sold' };
  const after = digestWith(await recovered(disk), pet);
  allowed = [digest, after];
  await store.write((ahead) => ({ op: 'addPet', pet: { ...pet, id: ahead.counters.nextPetId } }));
  moments.push({ disk: disk.copy(), allowed: [after] });
  for (const moment of moments) {
    const found = await digestOn(moment.disk.afterPowerLoss(random), known);
    if (!moment.allowed.includes(found)) throw new Error('a crash while opening changed what was recovered');
  }
  return moments.length;
}

function digestWith(state: State, pet: Pet): string {
  state.apply([{ op: 'addPet', pet: { ...pet, id: state.counters.nextPetId } }]);
  return prove(state).digest;
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
    const { acknowledged, sent, history } = moment;
    const before = i === 0 ? digestsOf(history).slice(acknowledged, sent + 1) : [digest];
    tried += await openAndCrash(disk, before, digest, random, known);
  }
  return tried;
}

export const row: Row = {
  number: 10,
  name: 'simulated disk: every crash state',
  async run(scale, report) {
    const states = STATES * scale;
    await tryRepairs(report, seeded(report.seed));
    if (report.isOver()) return;
    for (let seed = report.seed; report.cases < states; seed++) {
      const random = seeded(seed);
      const { moments } = await work(random, ROUNDS);
      const known: Known = new Map();
      for (const moment of moments) {
        try {
          report.cases += await tryMoment(moment, random, known);
        } catch (error) {
          report.cases++;
          report.fail(`seed ${seed}, at '${moment.call}': ${(error as Error).message}`);
          if (report.isOver()) return;
        }
        if (report.cases >= states) return;
      }
    }
  },
};
