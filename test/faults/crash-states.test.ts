/** Crashes of a simulated disk at every moment; and with something forgotten, some crash must be noticed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DamagedError } from '../../src/store/engine.ts';
import { openFileStore } from '../../src/store/file/store.ts';
import { SetClock } from '../clock.ts';
import { below, type Random, seeded } from '../random.ts';
import { contentOf, contentOn, crashed, lives, type Moment, quiet } from './life.ts';
import { DIR, SimDisk } from './sim-disk.ts';

const STATES = 20_000 * Number(process.env.FAULTS_SCALE ?? 1);
const SEED = Number(process.env.FAULTS_SEED ?? 1);
const RUNS = 5;
const STATES_PER_MOMENT = 20;
/** Of how many states one is opened for good, with crashes in the recovery too. */
const OPENED = 25;
/** Seeds after which a forgotten call counts as unnoticed. */
const MUTANT_SEEDS = 30;

type Known = Map<string, Promise<string>>;

/** Many crashes leave the same bytes, and a recovery rests on nothing else. */
function found(disk: SimDisk, known: Known): Promise<string> {
  const { fingerprint } = disk;
  let content = known.get(fingerprint);
  if (content === undefined) known.set(fingerprint, (content = contentOn(disk)));
  return content;
}

/** Tries crashes at this moment, and returns how many. Throws if one loses or invents something. */
async function tryMoment(moment: Moment, random: Random, known: Known): Promise<number> {
  let tried = 0;
  for (let n = 0; n < (moment.disk.isSettled ? 1 : STATES_PER_MOMENT); n++) {
    const disk = crashed(moment, random);
    const content = await found(disk, known);
    assert.ok(moment.allowed().includes(content), `a crash at '${moment.call}' left another content than any allowed`);
    tried++;
    if (moment.holdsWrites) await mustMissItsFile(disk, known);
    if (below(random, OPENED) === 0) tried += await openAndCrash(disk, moment.allowed(), content, random, known);
  }
  return tried;
}

/** A file that is gone is missed: the directory does not become an empty store by itself. */
async function mustMissItsFile(disk: SimDisk, known: Known): Promise<void> {
  const without = disk.copy();
  for (const name of disk.list()) if (name !== 'LOCK') without.names.delete(name);
  await assert.rejects(found(without, known), DamagedError);
}

/** Recovers, writes, and crashes again at every call of that. */
async function openAndCrash(disk: SimDisk, before: string[], content: string, random: Random, known: Known) {
  const moments: { disk: SimDisk; allowed: () => string[] }[] = [];
  let allowed = () => before;
  let after: string | undefined;
  disk.onCall = () => void moments.push({ disk: disk.copy(), allowed });
  const engine = await openFileStore(DIR, { clock: new SetClock(), log: quiet }, { disk });
  const tables = engine.store.read as never;
  assert.equal(contentOf(tables), content, 'the start found something else than a reader before it');
  allowed = () => [content, after!];
  await engine.store.write((tx) => tx.pets.add({ name: 'after', categoryId: 1, status: 'available' }));
  after = contentOf(tables);
  allowed = () => [after!];
  await engine.close();
  moments.push({ disk, allowed });
  for (const moment of moments) {
    const left = await found(moment.disk.afterPowerFailure(random), known);
    assert.ok(moment.allowed().includes(left), 'a crash while opening changed what was recovered');
  }
  return moments.length;
}

async function trySeed(seed: number, disk = new SimDisk()): Promise<number> {
  const random = seeded(seed);
  const known: Known = new Map();
  let tried = 0;
  for (const moment of await lives(disk, RUNS, random)) tried += await tryMoment(moment, random, known);
  return tried;
}

test('every crash state of a simulated disk', async (t) => {
  let [tried, seed] = [0, SEED];
  for (; tried < STATES; seed++) {
    tried += await trySeed(seed).catch((error) => {
      throw new Error(`FAULTS_SEED=${seed}: ${error.message}`, { cause: error });
    });
  }
  t.diagnostic(`${tried} crash states of the seeds ${SEED} to ${seed - 1}`);
});

/** What a program that has forgotten a call would do on a disk, by call and the one before it. */
const FORGOTTEN: Record<string, (call: string, before: string) => boolean> = {
  'the sync of a batch': (call, before) => call === 'sync store' && before === 'write store',
  'the sync of the first and the next file': (call) => call === 'sync new',
  'the sync of a cut': (call, before) => call === 'sync store' && before === 'truncate',
  'the last line is not written again': (call) => call === 'rewrite store',
  'the sync of the last line': (call, before) => call === 'sync store' && before === 'rewrite store',
  'the cut of a torn line, or after a full disk': (call) => call === 'truncate',
  'the sync of the directory': (call) => call === 'sync directory',
  'LOCK is not written': (call) => call === 'write LOCK',
  'the sync of LOCK': (call) => call === 'sync LOCK',
};

for (const [what, forgets] of Object.entries(FORGOTTEN)) {
  test(`forgotten, and noticed: ${what}`, async (t) => {
    for (let seed = SEED; seed < SEED + MUTANT_SEEDS; seed++) {
      const disk = Object.assign(new SimDisk(), { forgets });
      const noticed = await trySeed(seed, disk).then(
        () => undefined,
        (error: Error) => error.message,
      );
      if (noticed !== undefined) return t.diagnostic(`seed ${seed}: ${noticed}`);
    }
    assert.fail(`${MUTANT_SEEDS} seeds noticed nothing`);
  });
}
