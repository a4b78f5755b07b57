/**
 * A small program around the store, to be killed and failed from outside. Says on stdout what is acknowledged, the
 * moment it is. `driver.mjs DIR work` goes through a whole life: writes, a compaction, a crash, recovery, a clean
 * close, another start. `driver.mjs DIR hold` opens the store and waits to be killed.
 */
import { writeSync } from 'node:fs';
import { realDisk } from '../../src/store/file/disk.ts';
import type { FileJournal } from '../../src/store/file/journal.ts';
import { openStore } from '../../src/store/file/open.ts';
import type { MemoryStore } from '../../src/store/memory.ts';
import { StoreError } from '../../src/store/model.ts';
import { unlocked } from './sim-disk.ts';

const BATCHES = 3;
const BATCH_WRITES = 4;
const [dir, what] = process.argv.slice(2);

function say(line: string): void {
  writeSync(1, `${line}\n`);
}

function end(error: Error): never {
  say(`failed ${error.message}`);
  process.exit(1);
}

function open(disk = realDisk): ReturnType<typeof openStore> {
  return openStore(dir, { disk, onFatal: end, onNotice: (text) => say(`notice ${text}`) });
}

async function add(store: MemoryStore): Promise<void> {
  let id = 0;
  const name = 'n'.repeat(300);
  try {
    await store.write((ahead) => {
      id = ahead.counters.nextPetId;
      say(`sent ${id}`);
      return {
        op: 'addPet',
        pet: { id, name, categoryId: 1, status: 'available' },
        once: { caller: 'k1', key: `once-${id}`, at: Date.now() },
      };
    });
    say(`acknowledged ${id}`);
  } catch (error) {
    if (!(error instanceof StoreError && error.failure === 'full')) throw error;
    say(`full ${id}`);
    // Reads go on: what was acknowledged before is there.
    if (id > 1 && store.read.counts().pets !== store.read.pets.page(0, id).items.length) throw new Error('reads fail');
  }
}

async function batches(store: MemoryStore): Promise<void> {
  for (let i = 0; i < BATCHES; i++) await Promise.all(Array.from({ length: BATCH_WRITES }, () => add(store)));
}

async function compact(journal: FileJournal): Promise<void> {
  try {
    await journal.compact();
    say('compacted');
  } catch (error) {
    const isFull = (error as { failure?: string }).failure === 'full';
    if (!isFull && (error as { code?: string }).code !== 'ENOSPC') throw error;
    say('compaction: full');
  }
}

async function work(): Promise<void> {
  const first = await open();
  await batches(first.store);
  await compact(first.journal);
  await batches(first.store);
  // As if killed: nothing is closed. The lock is ours.
  const second = await open(unlocked());
  await batches(second.store);
  await second.store.close();
  const third = await open(unlocked());
  await batches(third.store);
  await third.store.close();
  say('done');
}

if (what === 'hold') {
  await open();
  say('open');
  setInterval(() => {}, 1_000);
} else {
  await work().catch(end);
  process.exit(0);
}
