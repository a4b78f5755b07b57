/** What commands work on, be it in the running server or in a process that has opened the store itself. */
import type { Limiter } from '../access/limits.ts';
import type { Clock } from '../clock.ts';
import type { ApiKey, Environment, Reading, Usage } from '../store/model.ts';
import type { FileStore } from '../store/store.ts';

export interface Context {
  store: FileStore;
  dir: string;
  limiter: Limiter;
  clock: Clock;
  /** Which keys the server lets in; for a store without a server: production. */
  environment: Environment;
  /** What is to be undone if whoever called goes away half-way: an import, a backup. */
  unfinished: Map<string, () => Promise<void>>;
}

export function usageOf(limiter: Limiter, key: ApiKey): Usage {
  return { key: key.id, ...limiter.counted(key) };
}

/** Puts back into a new limiter what was counted before. */
export function restoreUsage(limiter: Limiter, read: Reading): void {
  for (const key of read.keys()) {
    const usage = read.usage(key.id);
    if (usage !== undefined) limiter.restore(key, usage);
  }
}
