/**
 * A replica in a process of its own, without HTTP: `node child.ts URL WRITERS KEY`. Each writer makes an animal
 * under one name after the other, as a client does with an Idempotency-Key: again and again until it is acknowledged.
 * Prints a line for each acknowledgement.
 */
import { systemClock as clock } from '../../../src/clock.ts';
import { StoreError } from '../../../src/store/model.ts';
import { openPostgres } from '../open.ts';
import { once } from './replicas.ts';

const [url, writers, keyId] = process.argv.slice(2);
const log = { info: () => {}, warn: (text: string) => console.log(`warned ${text}`), error: () => {} };
const onFatal = (error: Error) => {
  console.log(`fatal ${error.message}`);
  process.exit(1);
};
const { store, limiter } = await openPostgres(url, { clock, log, isServing: true, onFatal });
const key = store.read.keys.get(Number(keyId))!;

async function again<T>(work: () => T | Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      console.log(`refused ${error.failure}`);
      await new Promise((resolve) => setTimeout(resolve, 50 * Math.random()));
    }
  }
}

const write = async (writer: number) => {
  for (let n = 0; ; n++) {
    const name = `${process.pid}-${writer}-${n}`;
    const { verdict } = await again(() => limiter.take(key));
    if (verdict === 'admitted') console.log('admitted');
    const id = await again(() => once(store, key, name));
    console.log(`kept ${name} ${id}`);
  }
};
for (let n = 0; n < Number(writers); n++) void write(n);
