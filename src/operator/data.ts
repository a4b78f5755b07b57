/** The store as a whole: how it is opened, and the work of `petstore verify`, `compact`, `backup` and `restore`. */
import { randomBytes } from 'node:crypto';
import { createReadStream, existsSync, lstatSync, renameSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { constants, PerformanceObserver } from 'node:perf_hooks';
import { setTimeout as wait } from 'node:timers/promises';
import { getHeapStatistics } from 'node:v8';
import { systemClock } from '../clock.ts';
import type { Extra, Storage } from '../extra.ts';
import { type Engine, type EngineOptions, InUseError, type Proof } from '../store/engine.ts';
import { realDisk } from '../store/file/disk.ts';
import { openFileStore, restoreInto } from '../store/file/store.ts';
import type { Command, Context, Place, Tools } from './commands.ts';
import * as o from './options.ts';
import { type Body, inText, note, print, usage } from './program.ts';
import { refuseSecond } from './socket.ts';

const MEGABYTE = 2 ** 20;

/** Where the store is. With `store`, `data` means nothing. */
export const PLACE = {
  data: o.withDefault(o.path, 'data', 'DIR', 'directory of the store'),
  store: {
    ...o.optional(o.text('a URL', /^\w[\w+.-]*:\/\/\S+$/), 'URL', 'store at a URL, in place of --data'),
    isSecret: true,
  },
};

const HEAP_MB = Math.floor(getHeapStatistics().heap_size_limit / MEGABYTE);
/** Rows take up to two bytes of heap for a byte of the compacted file; a server takes more in its life. */
const MOST_MB = Math.floor(HEAP_MB / 3);
/** 384: so many of the smallest rows, 27 bytes each, fit into a `Map`, which holds 2^24. */
const DEFAULT_MB = Math.min(Math.floor(HEAP_MB / 4), 384);
const megabytes = o.integer(1, MOST_MB, `: the heap of this process, ${HEAP_MB} MB, holds no more`);
/** Of commands that add to the store. */
export const BOUND = { maxStoreMb: o.withDefault(megabytes, String(DEFAULT_MB), 'MB', 'limit of the compacted store') };

type Location = o.Values<typeof PLACE> & Partial<o.Values<typeof BOUND>>;

/** The store as messages name it: nothing of `--store`, since any part of it may belong to a password. */
export const storeName = ({ data, store }: o.Values<typeof PLACE>): string =>
  store === undefined ? data : 'the database';

/** The storage that takes the URL of `--store`. */
export function storageOf(url: string, extras: readonly Extra[]): Storage {
  const scheme = url.slice(0, url.indexOf(':'));
  const found = extras.find(({ storage }) => storage?.schemes.test(scheme))?.storage;
  if (found !== undefined) return found;
  const forms = extras.flatMap(({ storage }) => storage?.form ?? []);
  const known = forms.length > 0 ? `give ${forms.join(' or ')}` : 'this program keeps a store in a directory alone';
  throw usage(`--store cannot be this value: ${known}`);
}

/** The store in a directory, or where an extra keeps it. */
export function openEngine(location: Location, options: EngineOptions, extras: readonly Extra[]): Promise<Engine> {
  const { data, store, maxStoreMb } = location;
  return unlessTooLarge(storeName(location), (stop) => {
    const bounded = { maxBytes: maxStoreMb && maxStoreMb * MEGABYTE, stop, ...options };
    return store === undefined ? openFileStore(data, bounded) : storageOf(store, extras).open(store, bounded);
  });
}

/** The share of the heap that rows may fill while a store is read. The rest is for what comes and goes. */
const FULL_HEAP = 0.75;
/** What V8 keeps of the limit for new objects: three halves of 16 MB, or of 32 MB in newer versions. */
const YOUNG_BYTES = (Number.parseInt(process.versions.node, 10) < 24 ? 48 : 96) * MEGABYTE;

/**
 * Rejects in words where Node would end the process: all rows are read into memory. The process must then end soon.
 * `read` must stop at the signal, or it would fill the heap before the process has ended.
 */
async function unlessTooLarge<T>(name: string, read: (stop: AbortSignal) => Promise<T>): Promise<T> {
  const full = new AbortController();
  const observer = new PerformanceObserver((list) => {
    // What a major collection has left is counted, and no garbage.
    const isMajor = list.getEntries().some((one) => Object(one).detail?.kind === constants.NODE_PERFORMANCE_GC_MAJOR);
    const { heap_size_limit: limit, used_heap_size: used } = getHeapStatistics();
    if (!isMajor || used <= FULL_HEAP * (limit - YOUNG_BYTES)) return;
    const heap = `its heap of ${HEAP_MB} MB cannot hold it`;
    const advice = 'run it on a machine with more memory, or by node --max-old-space-size=MB dist/petstore.cjs';
    full.abort(new Error(`the store in ${name} is too large for this process: ${heap}; ${advice}`));
  });
  observer.observe({ entryTypes: ['gc'] });
  const isFull = new Promise<never>((_, reject) => {
    full.signal.addEventListener('abort', () => reject(full.signal.reason));
  });
  return Promise.race([read(full.signal), isFull]).finally(() => observer.disconnect());
}

/** Opens the store in the process of a command. What the engine logs goes to stderr as text. Only what adds rows has a bound. */
export function openForCommand(
  location: Location,
  access: Command['access'],
  extras: readonly Extra[],
): Promise<Engine> {
  const tell = (message: string) => void note(`petstore: ${message}`);
  const options = { clock: systemClock, log: { info() {}, warn: tell, error: tell } };
  if (access === 'create') return openEngine(location, options, extras);
  const unbound = { ...options, mustExist: true, readOnly: access === 'read', maxBytes: undefined };
  return openEngine(location, unbound, extras);
}

/** How long a command or a start waits for another process that has the store. */
const MAX_IN_USE_MS = 3_000;
const RETRY_EVERY_MS = 100;

/** Tries again for a while if another process has the store: a command that ends soon, or a server that starts. */
export async function retryWhileInUse<R>(work: () => Promise<R>): Promise<R> {
  for (const end = performance.now() + MAX_IN_USE_MS; ; await wait(RETRY_EVERY_MS)) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof InUseError) || performance.now() > end) throw error;
    }
  }
}

/** The proof of a store as it is printed. */
function printed({ counts: { replays, ...counts }, digest }: Proof) {
  return { ...counts, idempotencyRecords: replays, digest };
}

/** By this process, also beside a running server. */
export async function verify(place: Place, { extras }: Tools) {
  const engine = await openForCommand(place, 'read', extras);
  const proof = unlessTooLarge(storeName(place), () => engine.verify());
  return proof.then(printed).finally(() => engine.close());
}

/** The file that stands for standard input and standard output. */
const STANDARD = '-';

export const compact = async ({ engine }: Context) => ({ compacted: await engine.compact() });

/** The bytes of a backup. */
export async function* backup(context: Context): Body {
  yield* context.engine.backup();
  context.lastBackupAt = context.clock.wall();
}

export async function writeBackup({ file, json }: { file: string; json: boolean }, { ask }: Pick<Tools, 'ask'>) {
  const begin = async () => (await ask({})) as AsyncIterable<Uint8Array>;
  if (file !== STANDARD) return { ...(await writeNew(file, begin)), writtenTo: file };
  const proof = await copy(await begin(), print);
  const result = { ...proof, writtenTo: 'standard output' };
  await note(inText(result, json));
  return undefined;
}

/** No shorter than the last line of a backup, which is the proof of all lines before it. */
const MAX_PROOF_BYTES = 1_024;

async function copy(bytes: AsyncIterable<Uint8Array>, write: (chunk: Uint8Array) => Promise<void>) {
  let end = Buffer.alloc(0);
  for await (const chunk of bytes) {
    await write(chunk);
    end = Buffer.concat([end, chunk]).subarray(-MAX_PROOF_BYTES);
  }
  return printed(JSON.parse(end.toString().trimEnd().split('\n').at(-1)!));
}

/** Writes a new file, which gets its name only when it is complete and durable. */
async function writeNew(file: string, begin: () => Promise<AsyncIterable<Uint8Array>>) {
  const path = resolve(file);
  const mustBeNew = () => {
    if (lstatSync(path, { throwIfNoEntry: false })) throw new Error(`${file} exists already: name another file`);
  };
  mustBeNew();
  if (existsSync(join(dirname(path), 'LOCK'))) throw new Error(`${file} is in a data directory: name another place`);
  // Others may be able to write in this directory, so the temporary name is one that they cannot guess.
  let unfinished = `${path}.${randomBytes(8).toString('hex')}.tmp`;
  const remove = () => rmSync(unfinished, { force: true });
  process.once('exit', remove);
  try {
    const bytes = await begin();
    const output = await open(unfinished, 'wx', 0o600);
    try {
      const proof = await copy(bytes, (chunk) => output.writeFile(chunk));
      await output.sync();
      mustBeNew(); // still
      renameSync(unfinished, path);
      unfinished = path; // the name may not be durable
      await realDisk.syncDirectory(dirname(path));
      return proof;
    } finally {
      await output.close();
    }
  } catch (error) {
    remove();
    throw Object.assign(error as Error, { path: file });
  } finally {
    process.off('exit', remove);
  }
}

export async function restore(values: { file: string } & Place, { extras }: Tools) {
  const { file, data, store } = values;
  if (store === undefined) await refuseSecond(data);
  const bytes = readBackup(file);
  const proof = await (store === undefined ? restoreInto(data, bytes) : storageOf(store, extras).restore(store, bytes));
  return { ...printed(proof), restoredTo: storeName(values) };
}

/** The beginning of every line of a backup. */
const FIRST_BYTES = '{"crc":"';

async function* readBackup(file: string): AsyncGenerator<Uint8Array> {
  const { stream, name } = inputFrom(file);
  let isBackup = false;
  for await (const chunk of stream) {
    isBackup ||= FIRST_BYTES.startsWith(chunk.toString('latin1', 0, FIRST_BYTES.length));
    if (!isBackup) break;
    yield chunk;
  }
  if (!isBackup) throw new Error(`${name} is no backup of a store; nothing was restored`);
}

/** A file, or standard input. An error names it: where it is read is not where the store is. */
export function inputFrom(file: string) {
  const [stream, name] = file === STANDARD ? [process.stdin, 'standard input'] : [createReadStream(file), file];
  stream.on('error', (error: Error) => Object.assign(error, { path: name }));
  return { stream, name };
}
