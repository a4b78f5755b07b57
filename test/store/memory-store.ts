/** A store in memory alone, for tests of what stands on it: the same transactions, and nothing on a disk. */
import { type Clock, systemClock } from '../../src/clock.ts';
import type { Log } from '../../src/store/engine.ts';
import { GroupCommitStore, storeTime } from '../../src/store/group-commit.ts';
import { type Changes, Tables } from '../../src/store/tables.ts';

export interface MemoryStoreOptions {
  readonly clock?: Clock;
  readonly maxBytes?: number;
  readonly log?: Log;
  /** Called with each batch before it is applied: it may take its time, or throw a StoreError. */
  readonly onBatch?: (changes: Changes) => void | Promise<void>;
}

export function memoryStore({
  clock = systemClock,
  maxBytes,
  log,
  onBatch,
}: MemoryStoreOptions = {}): GroupCommitStore {
  const tables = new Tables();
  tables.now = storeTime(clock);
  return new GroupCommitStore({
    tables,
    maxBytes,
    log,
    async commit(decide) {
      const changes = decide();
      if (changes.length === 0) return;
      await onBatch?.(changes);
      tables.apply(changes);
    },
  });
}
