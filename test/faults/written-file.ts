/** A store with a file of several batches, to be damaged in every way. */

import { prove } from '../../src/store/change-json.ts';
import { DamagedError } from '../../src/store/file/format.ts';
import { LOCK } from '../../src/store/file/lock.ts';
import { order, pet } from '../store/opened.ts';
import { SimDisk } from './sim-disk.ts';
import { openSim, recovered } from './workload.ts';

/** The one that `writtenFile` leaves. */
export const FILE = 'store-000001.jsonl';
export const BATCHES = 4;

export interface Written {
  disk: SimDisk;
  bytes: Buffer;
  /** Where each batch ends in it; the first is the state it began with. */
  batches: { end: number }[];
  /** After each batch. */
  digests: string[];
}

/** `known`: the batch of which `LOCK` is to know that it was durable; 0 is the state that the file began with. */
export async function writtenFile(isClosed: boolean, known = 0): Promise<Written> {
  const disk = new SimDisk();
  const { store } = await openSim(disk);
  const written: Written = { disk, bytes: disk.bytes(FILE), batches: [], digests: [] };
  const marks: Buffer[] = [];
  const note = async () => {
    await new Promise((resolve) => setImmediate(resolve)); // the mark comes behind the batch
    marks.push(disk.bytes(LOCK));
    written.batches.push({ end: disk.bytes(FILE).length });
    written.digests.push(prove(store.read).digest);
  };
  await note();
  for (let batch = 0; batch < BATCHES; batch++) {
    const name = `animal ${'@ '.repeat(100 * (batch % 2))}`;
    const add = () =>
      store.write(({ counters: { nextPetId: id } }) => {
        return { op: 'addPet', pet: pet(id, name), once: { caller: 'k1', key: `once-${id}`, at: 1_767_225_600_000 } };
      });
    await Promise.all([add(), add(), order(store, batch + 1), add()]);
    await note();
  }
  if (isClosed) await store.close();
  else disk.replace(LOCK, marks[known]);
  return { ...written, bytes: disk.bytes(FILE) };
}

export function damaged(disk: SimDisk, name: string, bytes: Buffer): SimDisk {
  const copy = disk.copy();
  copy.replace(name, bytes);
  return copy;
}

/** What recovery makes of it: refused as damaged, or the state after so many batches; or it throws. */
export async function outcome(disk: SimDisk, digests: string[]): Promise<DamagedError | number> {
  try {
    const count = digests.lastIndexOf(prove(await recovered(disk)).digest);
    if (count === -1) throw new Error('recovered a state that never was');
    return count;
  } catch (error) {
    if (error instanceof DamagedError) return error;
    throw error;
  }
}
