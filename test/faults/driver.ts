/**
 * A small program around the store, to be killed and failed from outside: `driver.mjs DIR` goes through a whole life:
 * writes, a compaction, a crash, recovery, a clean close, another start. Says on stdout what is acknowledged, the moment
 * it is.
 */
import { writeSync } from 'node:fs';
import { realDisk } from '../../src/store/file/disk.ts';
import { openStore } from '../../src/store/file/open.ts';
import type { MemoryStore } from '../../src/store/memory.ts';
import { pet } from '../store/opened.ts';
import { unlocked } from './sim-disk.ts';

const BATCHES = 3;
const BATCH_WRITES = 4;
const [dir] = process.argv.slice(2);

/** A line of its own, also where strace has begun one, of a call that another thread is in. */
const say = (line: string): void => void writeSync(1, `\n${line}\n`);

function end(error: Error): never {
  say(`failed ${error.message}`);
  process.exit(1);
}

const open = (disk = realDisk) => openStore(dir, { disk, onFatal: end, onNotice: (text) => say(`notice ${text}`) });

/** For want of room: the caller is told, and all goes on. */
const orFull = (what: string) => (error: Error & { failure?: string; code?: string }) => {
  if (error.failure !== 'full' && error.code !== 'ENOSPC') throw error;
  say(`full ${what}`);
};

async function add(store: MemoryStore): Promise<void> {
  let id = 0;
  const written = store.write((ahead) => {
    id = ahead.counters.nextPetId;
    say(`sent ${id}`);
    return {
      op: 'addPet',
      pet: pet(id, 'n'.repeat(300)),
      once: { caller: 'k1', key: `once-${id}`, at: Date.now() },
    };
  });
  await written.then(
    () => say(`acknowledged ${id}`),
    (error) => {
      orFull(`${id}`)(error);
      // Reads go on: what was acknowledged before is there.
      if (store.read.counts().pets !== store.read.pets.page(0, id).items.length) throw new Error('reads fail');
    },
  );
}

async function batches(store: MemoryStore): Promise<void> {
  for (let i = 0; i < BATCHES; i++) await Promise.all(Array.from({ length: BATCH_WRITES }, () => add(store)));
}

async function live(): Promise<void> {
  const first = await open();
  await batches(first.store);
  await first.journal.compact().catch(orFull('compaction'));
  await batches(first.store);
  // As if killed: nothing is closed. The lock is ours.
  for (const _ of ['after the crash', 'after the close']) {
    const { store } = await open(unlocked());
    await batches(store);
    await store.close();
  }
  say('done');
}

await live().catch(end);
process.exit(0);
