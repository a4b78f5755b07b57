/** Both journals that need nothing else: the file, and a list in memory that three stores collide on. */
import { join } from 'node:path';
import { openStore } from '../../src/store/file/open.ts';
import { MemoryStore } from '../../src/store/memory.ts';
import { SetClock } from '../clock.ts';
import { folder } from '../faults/folder.ts';
import { testJournal } from './journal-contract.ts';
import { SharedList } from './shared-journal.ts';

const clock = new SetClock();

testJournal({
  name: 'file',
  stores: 1,
  async keep() {
    const { dir, remove } = folder();
    const opened: MemoryStore[] = [];
    return {
      async open() {
        const { store } = await openStore(join(dir, 'data'), { clock });
        opened.push(store);
        return store;
      },
      async remove() {
        await Promise.allSettled(opened.map((store) => store.close()));
        remove();
      },
    };
  },
});

testJournal({
  name: 'shared list',
  stores: 3,
  async keep() {
    const list = new SharedList();
    return { open: () => MemoryStore.open(list.journal(), { clock }), remove: async () => {} };
  },
});
