/** A store with a file of several batches, to be damaged in every way. */
import { DamagedError } from '../../src/store/file/format.ts';
import { prove } from '../../src/store/record.ts';
import { SimDisk } from './sim-disk.ts';
import { openSim, recovered } from './workload.ts';

/** The one that `writtenFile` leaves. */
export const FILE = 'store-000001.jsonl';
const BATCHES = 4;

export interface Written {
  disk: SimDisk;
  /** The file's length after each batch (the first is the state it began with), how many operations, and the digest. */
  batches: { end: number; count: number; digest: string }[];
  /** The digest after each operation. */
  digests: string[];
  bytes: Buffer;
}

export async function writtenFile(isClosed: boolean): Promise<Written> {
  const disk = new SimDisk();
  const { store } = await openSim(disk);
  const digests = [prove(await recovered(disk)).digest];
  const batches: Written['batches'] = [{ end: disk.bytes(FILE).length, count: 0, digest: digests[0] }];
  for (let batch = 0; batch < BATCHES; batch++) {
    const name = `animal ${'@ '.repeat(100 * (batch % 2))}`;
    const add = () =>
      store.write((ahead) => ({
        op: 'addPet' as const,
        pet: { id: ahead.counters.nextPetId, name, categoryId: 3, status: 'available' as const },
        once: { caller: 'k1', key: `once-${ahead.counters.nextPetId}`, at: 1_767_225_600_000 },
      }));
    const order = () =>
      store.write((ahead) => ({
        op: 'placeOrder' as const,
        order: {
          id: ahead.counters.nextOrderId,
          petId: ahead.counters.nextOrderId,
          status: 'placed' as const,
          placedAt: 1,
        },
      }));
    const noted = (work: Promise<unknown>) => work.then(() => digests.push(prove(store.read as never).digest));
    await noted(Promise.all([add(), add(), order(), add()]));
    batches.push({ end: disk.bytes(FILE).length, count: batch + 1, digest: digests[batch + 1] });
  }
  if (isClosed) await store.close();
  return { disk, batches, digests, bytes: disk.bytes(FILE) };
}

export function damaged(disk: SimDisk, name: string, bytes: Buffer): SimDisk {
  const copy = disk.copy();
  copy.replace(name, bytes);
  return copy;
}

export type Outcome = { refused: DamagedError } | { count: number };

/** What recovery makes of it: refused as damaged, or the state after that many batches; or it throws. */
export async function outcome(disk: SimDisk, digests: string[]): Promise<Outcome> {
  try {
    const state = await recovered(disk);
    state.check();
    const count = digests.indexOf(prove(state).digest);
    if (count === -1) throw new Error('recovered a state that never was');
    return { count };
  } catch (error) {
    if (error instanceof DamagedError) return { refused: error };
    throw error;
  }
}
