/** A store with a log of several batches, to be damaged in every way. */

import { DamagedError } from '../../src/store/damage.ts';
import { recover } from '../../src/store/recovery.ts';
import { prove } from '../../src/store/snapshot.ts';
import type { Report } from './row.ts';
import { SimDisk } from './sim-disk.ts';
import { DIR, openSim } from './workload.ts';

export const LOG = 'log-000001.jsonl';
export const SNAPSHOT = 'snapshot-000001.jsonl';
const BATCHES = 4;

export interface Written {
  disk: SimDisk;
  /** The log's length after each batch, and the digest of the state then. */
  batches: { end: number; count: number; digest: string }[];
  /** The digest after each operation. */
  digests: string[];
  bytes: Buffer;
}

export async function writtenLog(isClosed: boolean): Promise<Written> {
  const disk = new SimDisk();
  const store = await openSim(disk);
  const digests = [prove((await recover(disk, DIR)).state).digest];
  const batches: Written['batches'] = [{ end: disk.bytes(LOG).length, count: 0, digest: digests[0] }];
  for (let batch = 0; batch < BATCHES; batch++) {
    const name = `animal ${'@ '.repeat(100 * (batch % 2))}`;
    const add = () =>
      store.write((ahead) => ({
        op: 'addPet' as const,
        pet: { id: ahead.nextPetId(), name, categoryId: 3, status: 'available' as const },
        once: { caller: 'k1', key: `once-${ahead.nextPetId()}`, at: 1_767_225_600_000 },
      }));
    const order = () =>
      store.write((ahead) => ({
        op: 'placeOrder' as const,
        order: { id: ahead.nextOrderId(), petId: ahead.nextOrderId(), status: 'placed' as const, placedAt: 1 },
      }));
    await Promise.all([add(), add(), order(), add()]);
    const digest = prove((await recover(disk, DIR)).state).digest;
    batches.push({ end: disk.bytes(LOG).length, count: (batch + 1) * 4, digest });
  }
  const bytes = disk.bytes(LOG);
  for (let end = batches[0].end; end < bytes.length; ) {
    end = bytes.indexOf(10, end) + 1;
    digests.push(prove((await recover(damaged(disk, LOG, bytes.subarray(0, end)), DIR)).state).digest);
  }
  if (isClosed) await store.close();
  return { disk, batches, digests, bytes: disk.bytes(LOG) };
}

export function damaged(disk: SimDisk, name: string, bytes: Buffer): SimDisk {
  const copy = disk.copy();
  copy.replace(name, bytes);
  return copy;
}

export type Outcome = { refused: DamagedError } | { count: number };

/** What recovery makes of it: refused as damaged, or the state after that many operations; or it throws. */
export async function outcome(disk: SimDisk, digests: string[]): Promise<Outcome> {
  try {
    const { state } = await recover(disk, DIR);
    state.check();
    const count = digests.indexOf(prove(state).digest);
    if (count === -1) throw new Error('recovered a state that never was');
    return { count };
  } catch (error) {
    if (error instanceof DamagedError) return { refused: error };
    throw error;
  }
}

/** Counts one case; `judge` says what is wrong with the outcome, if anything. */
export async function tryCase(report: Report, what: string, run: () => Promise<string | undefined>): Promise<void> {
  report.cases++;
  try {
    const wrong = await run();
    if (wrong !== undefined) report.fail(`${what}: ${wrong}`);
  } catch (error) {
    report.fail(`${what}: ${(error as Error).message}`);
  }
}
