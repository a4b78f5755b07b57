import assert from 'node:assert/strict';
import { setTimeout as wait } from 'node:timers/promises';

/** As long as a busy machine may need, and no longer than one wants to wait for a failure. */
const MAX_MS = 30_000;

/** For what tells nobody that it has happened: looks again and again. */
export async function until(isSo: () => unknown): Promise<void> {
  for (const end = performance.now() + MAX_MS; !(await isSo()); await wait(5)) {
    assert.ok(performance.now() < end, `not in ${MAX_MS} ms: ${isSo}`);
  }
}
