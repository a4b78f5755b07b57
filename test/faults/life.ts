/** Random lives of a store on a simulated disk, with each moment at which it could crash. */
import { createHash } from 'node:crypto';
import type { MemoryLimiter } from '../../src/access/memory-limiter.ts';
import { NoStoreError } from '../../src/store/engine.ts';
import { Directory } from '../../src/store/file/directory.ts';
import { openFileStore, readStore } from '../../src/store/file/store.ts';
import { snapshotLines } from '../../src/store/log-format.ts';
import { Tables } from '../../src/store/tables.ts';
import { SetClock } from '../clock.ts';
import { below, choose, type Random } from '../random.ts';
import { randomWork } from '../store/plain-model.ts';
import { DIR, type SimDisk } from './sim-disk.ts';

export const quiet = { info: () => {}, warn: () => {}, error: () => {} };
/** Small, so that lives are full of compactions. */
const MIN_COMPACTION_BYTES = 6_000;
const WRITERS = 3;
const WORKS = 5;
const COMPACTIONS = 0.5;
const NO_ROOM = 0.3;

export interface Moment {
  readonly call: string;
  readonly disk: SimDisk;
  /** The contents that may be found after a crash at this moment. Known once the life is over. */
  allowed(): string[];
  /** True once something was acknowledged. */
  readonly holdsWrites: boolean;
}

/** All rows and counters, as a short text. */
export function contentOf(tables: Tables): string {
  const hash = createHash('sha1');
  for (const line of snapshotLines({ store: '', batch: 0, at: 0 }, tables.snapshot())) hash.update(line);
  return hash.digest('hex');
}

/** What a start finds. Changes nothing. */
export async function contentOn(disk: SimDisk): Promise<string> {
  const tables = new Tables();
  const slow = disk.slowness;
  disk.slowness = undefined;
  const directory = await Directory.open(disk, DIR, { readOnly: true }).catch((error) => {
    if (!(error instanceof NoStoreError)) throw error;
  });
  if (directory) await readStore(directory, tables);
  disk.slowness = slow;
  return contentOf(tables);
}

/** From a start to a crash. `allowed`: what this disk may hold as it begins. */
export async function live(disk: SimDisk, allowed: string[], random: Random, moments: Moment[]): Promise<void> {
  /** The content after each batch. */
  const history: string[] = [];
  const note = (call: string) => {
    const [from, end] = [history.length - 1, history.length + 1];
    const holdsWrites = history.length > 1;
    moments.push({
      call,
      disk: disk.copy(),
      holdsWrites,
      allowed: () => (from < 0 ? allowed : history.slice(from, end)),
    });
  };
  disk.slowness = random;
  disk.onCall = note;
  const options = { clock: new SetClock(), log: quiet, onBatch: () => void history.push(contentOf(tables)) };
  const engine = await openFileStore(DIR, options, { disk, minCompactionBytes: MIN_COMPACTION_BYTES });
  const tables = engine.store.read as Tables;
  history.push(contentOf(tables));
  note('opened');
  const writer = async () => {
    for (let n = 0; n < WORKS; n++) {
      await engine.store.write(randomWork(below(random, 2 ** 31), engine.store.now())).catch(() => {});
      disk.room = random() < NO_ROOM ? below(random, 900) : Number.POSITIVE_INFINITY;
    }
  };
  const compactor = random() < COMPACTIONS ? engine.compact().catch(() => {}) : undefined;
  await Promise.all([...Array.from({ length: WRITERS }, writer), compactor]);
  disk.room = Number.POSITIVE_INFINITY;
  if (random() < 0.5) await engine.close();
  else await (engine.limiter as MemoryLimiter).close(); // its timer
  note('ended');
}

/** Some runs, each on what a crash of the one before has left. */
export async function lives(disk: SimDisk, runs: number, random: Random): Promise<Moment[]> {
  const all: Moment[] = [];
  let allowed = [await contentOn(disk)];
  for (let run = 0; run < runs; run++) {
    const moments: Moment[] = [];
    await live(disk, allowed, random, moments);
    all.push(...moments);
    const crash = choose(random, moments);
    disk = crashed(crash, random);
    allowed = disk.isSettled ? [await contentOn(disk)] : crash.allowed();
  }
  return all;
}

/** The process alone was killed, perhaps after a sync that failed; or the power failed. */
export function crashed({ disk }: Moment, random: Random): SimDisk {
  if (random() < 0.7) return disk.afterPowerFailure(random);
  const left = disk.copy();
  if (random() < 0.5) left.loseUnsynced();
  return left;
}
