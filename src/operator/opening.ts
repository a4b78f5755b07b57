/** Opens the store: in a directory, or where an extra keeps it. */
import { setTimeout as wait } from 'node:timers/promises';
import { getHeapStatistics } from 'node:v8';
import { systemClock } from '../clock.ts';
import type { Extra, Storage } from '../extra.ts';
import { type Engine, type EngineOptions, InUseError } from '../store/engine.ts';
import { openFileStore } from '../store/file/store.ts';
import { CommandError, EXIT } from './failures.ts';
import type { Location } from './options.ts';
import { note } from './output.ts';

/** How long a command or a start waits for another process that has the store. */
const MAX_IN_USE_MS = 3_000;
const RETRY_EVERY_MS = 100;

const MEGABYTE = 2 ** 20;
/** A start takes up to 1.3 bytes of heap for a byte of the compacted file, and 50 MB; a server takes more in its life. */
const HEAP_PER_BYTE = 4;
/** So many of the smallest rows, 27 bytes each, fit into a `Map`, which holds 2^24. */
const MAX_DEFAULT_MB = 384;

/** The most bytes that the compacted store may have. By default so many that a start always finds room in the heap. */
export function maxBytesOf(maxStoreMb?: number): number {
  const heapMb = getHeapStatistics().heap_size_limit / MEGABYTE;
  return (maxStoreMb ?? Math.min(Math.floor(heapMb / HEAP_PER_BYTE), MAX_DEFAULT_MB)) * MEGABYTE;
}

/** The storage that takes the URL of `--store`. */
export function storageOf(url: string, extras: readonly Extra[]): Storage {
  const scheme = url.slice(0, url.indexOf(':'));
  const found = extras.find(({ storage }) => storage?.schemes.test(scheme))?.storage;
  if (found !== undefined) return found;
  const forms = extras.flatMap(({ storage }) => storage?.form ?? []);
  const known = forms.length > 0 ? `give ${forms.join(' or ')}` : 'this program keeps a store in a directory alone';
  throw new Error(`--store cannot be this value: ${known}`);
}

export async function openEngine(
  { data, store }: Location,
  options: EngineOptions,
  extras: readonly Extra[],
): Promise<Engine> {
  return store === undefined ? openFileStore(data, options) : storageOf(store, extras).open(store, options);
}

/** For a command, in its own process. What the engine logs goes to stderr as text. */
export function openForCommand(
  { maxStoreMb, ...location }: Location & { maxStoreMb?: number },
  access: 'read' | 'write' | 'create',
  extras: readonly Extra[],
): Promise<Engine> {
  const print = (message: string) => void note(`petstore: ${message}`);
  const log = { info: () => {}, warn: print, error: print };
  const options = {
    clock: systemClock,
    log,
    readOnly: access === 'read',
    mustExist: access !== 'create',
    maxBytes: access === 'create' ? maxBytesOf(maxStoreMb) : undefined,
  };
  return openEngine(location, options, extras);
}

/** Tries again for a while if another process has the store: a command that ends soon, or a server that starts. */
export async function retryWhileInUse<R>(work: () => Promise<R>): Promise<R> {
  for (const end = performance.now() + MAX_IN_USE_MS; ; await wait(RETRY_EVERY_MS)) {
    try {
      return await work();
    } catch (error) {
      const isInUse = error instanceof InUseError || (error instanceof CommandError && error.exit === EXIT.inUse);
      if (!isInUse || performance.now() > end) throw error;
    }
  }
}
