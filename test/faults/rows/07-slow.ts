import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Disk, realDisk } from '../../../src/store/file/disk.ts';
import { openStore } from '../../../src/store/file/open.ts';
import { StoreError } from '../../../src/store/model.ts';
import { folder } from '../folder.ts';
import type { Row } from '../row.ts';

/** As the store has it. */
const MAX_BATCH_WRITES = 4096;
const SYNC_MS = 300;
const WRITERS = 500;
const READ_MAX_MS = 100;

export const row: Row = {
  number: 7,
  name: 'fdatasync takes 300 ms',
  async run(_scale, report) {
    const { dir, remove } = folder();
    const batches: number[] = [];
    let isSlow = false;
    const sync = async (fd: number) => {
      if (isSlow) await sleep(SYNC_MS);
      await realDisk.sync(fd);
    };
    const disk: Disk = { ...realDisk, sync };
    const { store } = await openStore(join(dir, 'data'), {
      disk,
      observe: { batch: (records) => batches.push(records) },
    });
    const add = () =>
      store.write((ahead) => ({
        op: 'addPet',
        pet: { id: ahead.nextPetId(), name: 'slow', categoryId: 1, status: 'available' },
      }));
    const check = report.check.bind(report);
    try {
      await add();
      isSlow = true;
      const writes = Array.from({ length: WRITERS }, add);
      await sleep(SYNC_MS / 3);
      const more = Array.from({ length: WRITERS }, add);
      const began = performance.now();
      const seen = store.read.pets(0, 100).items.length;
      check('a read showed what is not durable', seen === 1);
      check('a read waited', performance.now() - began < READ_MAX_MS);
      await Promise.all([...writes, ...more]);
      check(`${batches} are not three batches`, batches.join() === `1,${WRITERS},${WRITERS}`);

      // One batch on its way, the next full: whoever comes now is refused, and costs no memory.
      const first = add();
      await sleep(SYNC_MS / 3);
      const queued = Array.from({ length: MAX_BATCH_WRITES }, add);
      const beyond = await Promise.allSettled(Array.from({ length: 100 }, add));
      const isBusy = (result: PromiseSettledResult<unknown>) =>
        result.status === 'rejected' && result.reason instanceof StoreError && result.reason.failure === 'busy';
      check('a full queue did not refuse', beyond.every(isBusy));
      await Promise.all([first, ...queued]);
      check('what was queued is not there', store.read.counts().pets === 2 + 2 * WRITERS + MAX_BATCH_WRITES);
    } finally {
      isSlow = false;
      await store.close();
      remove();
    }
  },
};
