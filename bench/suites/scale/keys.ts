/** Makes many keys at once, straight through the store: the command makes them one at a time. */
import { digestOf, makeKey } from '../../../src/access/keys.ts';
import { MAX_REQUESTS_PER_WINDOW } from '../../../src/access/plans.ts';
import type { ApiKey } from '../../../src/store/model.ts';
import { FileStore } from '../../../src/store/store.ts';

/** Fewer than the store lets wait. */
const WRITES_AT_ONCE = 1_000;

/** Returns the keys' texts; nothing may run on that directory meanwhile. */
export async function addKeys(data: string, count: number): Promise<string[]> {
  const store = await FileStore.open(data);
  const keys = Array.from({ length: count }, () => makeKey('production'));
  for (let first = 0; first < count; first += WRITES_AT_ONCE) {
    const some = keys.slice(first, first + WRITES_AT_ONCE);
    await Promise.all(some.map((text, i) => store.write(() => ({ op: 'setKey', key: record(text, first + i) }))));
  }
  await store.close();
  return keys;
}

function record(text: string, slot: number): ApiKey {
  return {
    id: `k${slot + 1}`,
    slot,
    name: 'bench',
    plan: 'enterprise',
    perMinute: MAX_REQUESTS_PER_WINDOW,
    perDay: MAX_REQUESTS_PER_WINDOW,
    environment: 'production',
    createdAt: Date.now(),
    secrets: [{ digest: digestOf(text) }],
  };
}
