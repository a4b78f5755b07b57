/** Opens the store at a place: the engine on a file, or the one on a database, which is loaded only then. */
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

/** Longest wait for the store while another command has it. */
const MAX_IN_USE_WAIT_MS = 3_000;
const IN_USE_RETRY_MS = 100;

/** Heap for the program and for young objects, of which newer Nodes keep more; it does not grow with the store. */
const OF_PROGRAM_MB = 96;
/** Shares of the remaining heap for the stored data. The rest is for requests, and for the garbage that they leave. */
const KEPT_BY_DEFAULT = 1 / 2;
const KEPT_AT_MOST = 3 / 4;
const MEGABYTE = 2 ** 20;

const heapMb = () => Math.floor(getHeapStatistics().heap_size_limit / MEGABYTE);
const megabytesOf = (share: number) => Math.max(1, Math.floor(share * (heapMb() - OF_PROGRAM_MB)));

/** The most bytes of the heap that the stored data may take. */
export const maxBytesOf = (maxStoreMb = megabytesOf(KEPT_BY_DEFAULT)): number => maxStoreMb * MEGABYTE;

/** The reason why a store of that size might not be readable at the next start; undefined if it is small enough. */
export function whyTooLarge(maxStoreMb: number | undefined, name: string): string | undefined {
  const most = megabytesOf(KEPT_AT_MOST);
  if (maxStoreMb === undefined || maxStoreMb <= most) return undefined;
  return `${name} can be ${count(most)} at most: the heap of this process has ${count(heapMb())} MB`;
}

export const postgres = () => import('../postgres/engine.ts');

/** For a server. `onFatal` is called for a failure after which it cannot go on. */
export async function openEngine({ data, store }: Place, options: EngineOptions): Promise<Engine> {
  if (store === undefined) return openFileEngine(data, options);
  const env = { ...process.env, PETSTORE_STORE: store };
  return (await postgres()).openPostgres(store, options, () => runAgain(['compact'], { env, priority: LOW_PRIORITY }));
}

/**
 * For a command, in its own process. Notices about the opening go to stderr. Only a command that adds something
 * (`makes`) has a bound: the others work on any store that a server could open.
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

/** Tries again for a while if another process has the store. `isInVain`: it is a server, which will keep it. */
export async function triedWhileInUse<R>(work: () => Promise<R>, isInVain = async () => false): Promise<R> {
  for (const end = performance.now() + MAX_IN_USE_WAIT_MS; ; await wait(IN_USE_RETRY_MS)) {
    try {
      return await work();
    } catch (error) {
      if (!isInUse(error) || performance.now() > end || (await isInVain())) throw error;
    }
  }
}
