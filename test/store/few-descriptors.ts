/**
 * A store in a process that has run out of descriptors, as the program opens it: `few-descriptors.ts DIR`. Says `done`
 * when a compaction was refused at each step that needs one, with nothing lost, and came about when there were some.
 */
import assert from 'node:assert/strict';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { compactElsewhere } from '../../src/operator/compacting.ts';
import { realDisk } from '../../src/store/file/disk.ts';
import { openStore } from '../../src/store/file/open.ts';
import { compactFile } from '../../src/store/file/rewrite.ts';
import { addPet } from './opened.ts';

/** All but `free` of the descriptors that can be had. */
function takeAll(free: number): number[] {
  const taken: number[] = [];
  try {
    for (;;) taken.push(openSync('/dev/null', 'r'));
  } catch (error) {
    assert.equal((error as NodeJS.ErrnoException).code, 'EMFILE');
  }
  for (const fd of taken.splice(0, free)) closeSync(fd);
  return taken;
}

let isChild = true;
const { store, journal } = await openStore(process.argv[2], {
  compact: (dir, extent, signal) =>
    isChild ? compactElsewhere(dir, extent, signal) : compactFile(realDisk, dir, extent),
  onFatal: (error) => {
    throw error;
  },
});

/** Whether it could be done with so few. */
async function compactsWith(free: number): Promise<boolean> {
  const taken = takeAll(free);
  try {
    await journal.compact();
    return true;
  } catch (error) {
    assert.match((error as Error).message, /EMFILE/);
    return false;
  } finally {
    for (const fd of taken) closeSync(fd);
    await addPet(store);
  }
}

await addPet(store);
assert.equal(await compactsWith(0), false, 'no child can be started');
isChild = false;
let free = 0;
while (!(await compactsWith(free))) free++;
// A new file and its directory take two; but the loader of this source, in its own thread, may just have let one go.
assert.ok(free >= 1, 'none is needed');
isChild = true;
process.argv[1] = join(import.meta.dirname, '../../src/main.ts');
await journal.compact();
await store.close();
console.log('done');
