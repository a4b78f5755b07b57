/** Both journals that need nothing else: the file, and a list in memory that three stores collide on. */
import { join } from 'node:path';
import { openStore } from '../../src/store/file/open.ts';
import { MemoryStore } from '../../src/store/memory.ts';
import { SetClock } from '../clock.ts';
import { temporary } from '../program.ts';
import { testJournal } from './journal-contract.ts';
import { SharedList } from './shared-journal.ts';

const clock = new SetClock();

testJournal({
  name: 'file',
  stores: 1,
  async keep(t) {
    const data = join(await temporary(t), 'data');
    return async () => (await openStore(data, { clock })).store;
  },
});

testJournal({
  name: 'shared list',
  stores: 3,
  async keep() {
    const list = new SharedList();
    return () => MemoryStore.open(list.journal(), { clock });
  },
});
