/**
 * A small program around the store, to be killed and failed from outside. `driver.mjs DIR`: writes, a compaction, a close,
 * another start, and so on. It says on stdout what is sent and what is acknowledged, the moment it is.
 */
import { writeSync } from 'node:fs';
import { systemClock } from '../../src/clock.ts';
import type { Engine } from '../../src/store/engine.ts';
import { openFileStore } from '../../src/store/file/store.ts';
import { StoreError } from '../../src/store/model.ts';

const BATCHES = 3;
const WRITERS = 4;
const MIN_COMPACTION_BYTES = 20_000;
const [dir] = process.argv.slice(2);

/** A line of its own, also where strace has begun one. */
const say = (line: string): void => void writeSync(1, `\n${line}\n`);

function end(error: Error): never {
  say(`failed ${error.message}`);
  process.exit(1);
}

/** For want of room: the caller is told, and all goes on. */
function orFull(error: Error & { code?: string }): void {
  if (!(error instanceof StoreError && error.failure === 'full') && error.code !== 'ENOSPC') throw error;
  say('full');
}

const tell = (message: string) => say(`notice ${message}`);
const open = () =>
  openFileStore(
    dir,
    { clock: systemClock, log: { info: () => {}, warn: tell, error: tell }, onFatal: end },
    { minCompactionBytes: MIN_COMPACTION_BYTES },
  );

async function add({ store }: Engine): Promise<void> {
  let id = 0;
  const written = store.write((tx) => {
    id = tx.pets.add({ name: 'n'.repeat(300), categoryId: 1, status: 'available' }).id;
    const replay = {
      id: `addPet k1 ${id}`,
      keyId: 1,
      digest: '',
      status: 201,
      body: '',
      location: '',
      at: store.now(),
    };
    tx.replays.put(replay);
    say(`sent ${id}`);
  });
  await written.then(() => say(`acknowledged ${id}`), orFull);
  if (store.read.pets.page({ limit: 1e6 }).items.length !== store.read.pets.size) throw new Error('reads fail');
}

async function batches(engine: Engine): Promise<void> {
  for (let n = 0; n < BATCHES; n++) await Promise.all(Array.from({ length: WRITERS }, () => add(engine)));
}

async function main(): Promise<void> {
  for (let run = 0; run < 3; run++) {
    const engine = await open();
    await batches(engine);
    await engine.compact().then(() => {}, orFull);
    await batches(engine);
    await engine.close();
  }
  say('done');
}

main().catch(end);
