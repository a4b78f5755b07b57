import { join } from 'node:path';
import { type Disk, realDisk } from '../../../src/store/file/disk.ts';
import { openStore } from '../../../src/store/file/open.ts';
import { StoreError } from '../../../src/store/model.ts';
import { folder } from '../folder.ts';
import type { Row } from '../row.ts';

/** As the store has it. */
const MAX_BATCH_WRITES = 4096;
const WRITERS = 500;

export const row: Row = {
  number: 7,
  name: 'fdatasync is slow',
  async run(_scale, report) {
    const { dir, remove } = folder();
    const batches: number[] = [];
    /** While there is one, each sync waits for it. */
    let gate: Promise<void> | undefined;
    let waits = () => {};
    const sync = async (fd: number) => {
      waits();
      await gate;
      await realDisk.sync(fd);
    };
    /** From now on no sync ends; gives what lets them, once one has begun. */
    const hold = async (first: () => void): Promise<() => void> => {
      let release = () => {};
      gate = new Promise((resolve) => (release = resolve));
      const begun = new Promise<void>((resolve) => (waits = resolve));
      first();
      await begun;
      return release;
    };
    const write: Disk['write'] = (fd, bytes, position) => {
      batches.push(Buffer.from(bytes).toString().split('\n').length - 1);
      return realDisk.write(fd, bytes, position);
    };
    const disk: Disk = { ...realDisk, sync, write };
    const { store } = await openStore(join(dir, 'data'), { disk });
    batches.length = 0; // what the beginning has written
    const add = () =>
      store.write((ahead) => ({
        op: 'addPet',
        pet: { id: ahead.counters.nextPetId, name: 'slow', categoryId: 1, status: 'available' },
      }));
    const check = report.check.bind(report);
    try {
      await add();
      let writes: Promise<unknown>[] = [];
      const release = await hold(() => (writes = Array.from({ length: WRITERS }, add)));
      const more = Array.from({ length: WRITERS }, add);
      check('a read showed what is not durable', store.read.pets.page(0, 100).items.length === 1);
      release();
      await Promise.all([...writes, ...more]);
      check(`${batches} are not three batches`, batches.join() === `1,${WRITERS},${WRITERS}`);

      // One batch on its way, the next full: whoever comes now is refused, and costs no memory.
      let first: Promise<unknown> | undefined;
      const releaseAll = await hold(() => (first = add()));
      const queued = Array.from({ length: MAX_BATCH_WRITES }, add);
      const beyond = await Promise.allSettled(Array.from({ length: 100 }, add));
      const isBusy = (result: PromiseSettledResult<unknown>) =>
        result.status === 'rejected' && result.reason instanceof StoreError && result.reason.failure === 'busy';
      check('a full queue did not refuse', beyond.every(isBusy));
      releaseAll();
      await Promise.all([first, ...queued]);
      check('what was queued is not there', store.read.counts().pets === 2 + 2 * WRITERS + MAX_BATCH_WRITES);
    } finally {
      await store.close();
      remove();
    }
  },
};
