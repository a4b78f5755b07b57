/**
 * A store in a process that has run out of descriptors, as the program opens it: `few-descriptors.ts DIR`. Says `done`
 * when a compaction was refused at each step that needs one, with nothing lost, and came about when there were some.
 */
import assert from 'node:assert/strict';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { openStore } from '../../src/operator/opening.ts';
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

const store = await openStore(process.argv[2], {
  onFatal: (error) => {
    throw error;
  },
});
await addPet(store);
// None for the new log, none for its directory, none for the child.
for (const free of [0, 1, 2]) {
  const taken = takeAll(free);
  await assert.rejects(store.compact(), /EMFILE/).finally(() => {
    for (const fd of taken) closeSync(fd);
  });
  await addPet(store);
}
process.argv[1] = join(import.meta.dirname, '../../src/main.ts');
await store.compact();
await store.close();
console.log('done');
