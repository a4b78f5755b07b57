/** Opens what a place names: the engine on a file, or the one on a database, which is loaded only then. */
import { setTimeout as wait } from 'node:timers/promises';
import { systemClock as clock } from '../clock.ts';
import type { Engine, EngineOptions } from '../engine.ts';
import { LOW_PRIORITY, runAgain } from './compacting.ts';
import { isInUse } from './exit.ts';
import { openFileEngine, openReadOnly } from './file-engine.ts';
import type { Place } from './options.ts';
import { told, withProgress } from './output.ts';

/** Another command has the store for a moment only. */
const MAX_IN_USE_WAIT_MS = 3_000;
const IN_USE_RETRY_MS = 100;

export const postgres = () => import('../postgres/engine.ts');

/** For a server: it hears by `onFatal` of what it cannot go on from. */
export async function openEngine({ data, store }: Place, options: EngineOptions): Promise<Engine> {
  if (store === undefined) return openFileEngine(data, options);
  const env = { ...process.env, PETSTORE_STORE: store };
  return (await postgres()).openPostgres(store, options, () => runAgain(['compact'], { env, priority: LOW_PRIORITY }));
}

/** For a command, in its own process. What it should know of the opening is told on stderr. */
export function openHere(
  { data, store }: Place,
  { reads, makes }: { reads?: boolean; makes?: boolean },
): Promise<Engine> {
  const notice = (message: string) => void told(`petstore: ${message}\n`);
  return withProgress('reading the store', async (onProgress) => {
    const options = { clock, log: { info: () => {}, warn: notice, error: notice }, onProgress, mustExist: !makes };
    if (store !== undefined) return (await postgres()).openPostgres(store, options);
    return reads ? openReadOnly(data, options) : openFileEngine(data, options);
  });
}

/** Tries again for a while where another process has the store. `isInVain`: that is a server, which keeps it. */
export async function triedWhileInUse<R>(work: () => Promise<R>, isInVain = async () => false): Promise<R> {
  for (const end = performance.now() + MAX_IN_USE_WAIT_MS; ; await wait(IN_USE_RETRY_MS)) {
    try {
      return await work();
    } catch (error) {
      if (!isInUse(error) || performance.now() > end || (await isInVain())) throw error;
    }
  }
}
