/** Opens what a place names: the engine on a file, or the one on a database, which is loaded only then. */
import { setTimeout as wait } from 'node:timers/promises';
import { getHeapStatistics } from 'node:v8';
import { systemClock as clock } from '../clock.ts';
import { count } from '../digits.ts';
import type { Engine, EngineOptions } from '../engine.ts';
import { LOW_PRIORITY, runAgain } from './compacting.ts';
import { CommandError, EXIT, isInUse } from './exit.ts';
import { openFileEngine, openReadOnly } from './file-engine.ts';
import type { Place } from './options.ts';
import { told, withProgress } from './output.ts';

/** Another command has the store for a moment only. */
const MAX_IN_USE_WAIT_MS = 3_000;
const IN_USE_RETRY_MS = 100;

/** Of the heap so much is for the program and young objects, of which newer Nodes keep more, whatever is kept. */
const OF_PROGRAM_MB = 96;
/** The rest of what is not kept is for requests, and to collect what they leave behind. */
const KEPT_BY_DEFAULT = 1 / 2;
const KEPT_AT_MOST = 3 / 4;
const MEGABYTE = 2 ** 20;

const heapMb = () => Math.floor(getHeapStatistics().heap_size_limit / MEGABYTE);
const megabytesOf = (share: number) => Math.max(1, Math.floor(share * (heapMb() - OF_PROGRAM_MB)));

/** How much of the heap what is kept may take. */
export const maxBytesOf = (maxStoreMb = megabytesOf(KEPT_BY_DEFAULT)): number => maxStoreMb * MEGABYTE;

/** Why a store of that size might not be read again at the next start. */
export function whyTooLarge(maxStoreMb: number | undefined, name: string): string | undefined {
  const most = megabytesOf(KEPT_AT_MOST);
  if (maxStoreMb === undefined || maxStoreMb <= most) return undefined;
  return `${name} can be ${count(most)} at most: the heap of this process has ${count(heapMb())} MB`;
}

export const postgres = () => import('../postgres/engine.ts');

/** For a server: it hears by `onFatal` of what it cannot go on from. */
export async function openEngine({ data, store }: Place, options: EngineOptions): Promise<Engine> {
  if (store === undefined) return openFileEngine(data, options);
  const env = { ...process.env, PETSTORE_STORE: store };
  return (await postgres()).openPostgres(store, options, () => runAgain(['compact'], { env, priority: LOW_PRIORITY }));
}

/**
 * For a command, in its own process. What it should know of the opening is told on stderr. Only a command that adds
 * something (`makes`) has a bound: the others work on whatever a server has taken.
 */
export async function openHere(
  { data, store, maxStoreMb }: Place & { maxStoreMb?: number },
  { reads, makes }: { reads?: boolean; makes?: boolean },
): Promise<Engine> {
  const wrong = whyTooLarge(maxStoreMb, '--max-store-mb (PETSTORE_MAX_STORE_MB)');
  if (wrong !== undefined) throw new CommandError(EXIT.usage, wrong);
  const notice = (message: string) => void told(`petstore: ${message}\n`);
  return withProgress('reading the store', async (onProgress) => {
    const options = {
      clock,
      log: { info: () => {}, warn: notice, error: notice },
      onProgress,
      mustExist: !makes,
      maxBytes: makes ? maxBytesOf(maxStoreMb) : undefined,
    };
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
