/** The store as a whole: how it is opened, and the work of `petstore verify`, `compact`, `backup` and `restore`. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import fs from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { constants, PerformanceObserver } from 'node:perf_hooks';
import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises';
import { getHeapStatistics } from 'node:v8';
import { systemClock } from '../clock.ts';
import type { Extra, Storage } from '../extra.ts';
import { type Engine, type EngineOptions, InUseError, type Proof } from '../store/engine.ts';
import { LOCK, STORE_FILE } from '../store/file/directory.ts';
import { realDisk } from '../store/file/disk.ts';
import { openFileStore, restoreInto } from '../store/file/store.ts';
import { shellWord } from '../text.ts';
import type { Context, Place, Tools } from './commands.ts';
import * as o from './options.ts';
import { type Body, inText, note, PROGRAM, print, reasonOf, usage } from './program.ts';
import { refuseSecond } from './socket.ts';

const MEGABYTE = 2 ** 20;

const url = o.text('a URL', /^\w[\w+.-]*:\/\/\S+$/);
/** Where the store is. With `store`, `data` means nothing. */
export const PLACE = {
  data: o.withDefault(o.path, 'data', 'DIR', 'directory of the store'),
  store: { ...o.optional(url, 'URL', 'store at a URL, in place of --data'), isSecret: true },
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

/** The share of the heap that rows may fill while a store is opened. The rest is for what comes and goes. */
const FULL_HEAP = 0.75;
/** What V8 keeps of the limit for new objects, by the version of Node; of later ones, as of 26. */
const YOUNG_MB: Partial<Record<string, number>> = { 20: 48, 22: 48, 24: 192 };
const YOUNG_BYTES = (YOUNG_MB[process.versions.node.split('.')[0]] ?? 96) * MEGABYTE;

/**
 * The store in a directory, or where an extra keeps it: all rows are read into memory. Rejects in words where Node would
 * end the process. The process must then end soon; the reading stops, or it would fill the heap before that.
 */
export function openEngine(location: Location, extras: readonly Extra[], options: EngineOptions): Promise<Engine> {
  const { data, store, maxStoreMb } = location;
  const full = new AbortController();
  const observer = new PerformanceObserver((list) => {
    // What a major collection has left is counted, and no garbage.
    const isMajor = list.getEntries().some((one) => Object(one).detail?.kind === constants.NODE_PERFORMANCE_GC_MAJOR);
    const { heap_size_limit: limit, used_heap_size: used } = getHeapStatistics();
    if (!isMajor || used <= FULL_HEAP * (limit - YOUNG_BYTES)) return;
    const heap = `its heap of ${HEAP_MB} MB cannot hold it`;
    const advice = 'run it on a machine with more memory, or by node --max-old-space-size=MB dist/petstore.cjs';
    full.abort(new Error(`the store in ${storeName(location)} is too large for this process: ${heap}; ${advice}`));
  });
  observer.observe({ entryTypes: ['gc'] });
  const isFull = once(full.signal, 'abort').then(() => Promise.reject<never>(full.signal.reason));
  const bounded = { maxBytes: maxStoreMb && maxStoreMb * MEGABYTE, stop: full.signal, ...options };
  const opened = store === undefined ? openFileStore(data, bounded) : storageOf(store, extras).open(store, bounded);
  return Promise.race([opened, isFull]).finally(() => observer.disconnect());
}

/** Opens the store in the process of a command. What the engine logs goes to stderr as text. */
export function openForCommand(location: Location, extras: readonly Extra[], how: Partial<EngineOptions>) {
  const tell = (message: string) => note(`petstore: ${message}`);
  const log = { info() {}, warn: tell, error: tell };
  return openEngine(location, extras, { clock: systemClock, log, ...how });
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

/** By this process, also beside a running server. Who opens a store and reads it as a backup has checked all of it. */
export async function verify(place: Place, { extras }: Tools) {
  const engine = await openForCommand(place, extras, { readOnly: true });
  return copy(engine.backup(), async () => {}).finally(() => engine.close());
}

/** The file that stands for standard input and standard output. */
const STANDARD = '-';

export const compact = async ({ engine }: Context) => ({ compacted: await engine.compact() });

/** The bytes of a backup. */
export async function* backup(context: Context): Body {
  for await (const chunk of context.engine.backup()) {
    yield chunk;
    await nextTurn(); // the server answers requests meanwhile
  }
  context.lastBackupAt = context.clock.wall();
}

export async function writeBackup({ file, json }: { file: string; json: boolean }, { ask }: Pick<Tools, 'ask'>) {
  if (file !== STANDARD) mustBeNew(file);
  const bytes = (await ask({})) as AsyncIterable<Uint8Array>;
  if (file !== STANDARD) return { ...(await writeNew(file, bytes)), writtenTo: file };
  const proof = await copy(bytes, print);
  note(inText({ ...proof, writtenTo: 'standard output' }, json));
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

function mustBeNew(file: string): void {
  if (fs.lstatSync(file, { throwIfNoEntry: false })) throw new Error(`${file} exists already: name another file`);
  if (!fs.existsSync(join(dirname(file), LOCK))) return;
  throw new Error(`${file} is in a data directory: name another place`);
}

/** Writes a new file, which gets its name only when it is complete, and keeps it only if that is durable. */
async function writeNew(file: string, bytes: AsyncIterable<Uint8Array>) {
  // Others may be able to write in this directory, so the temporary name is one that they cannot guess.
  let unfinished: string | undefined = `${file}.${randomBytes(8).toString('hex')}.tmp`;
  process.once('exit', () => unfinished && fs.rmSync(unfinished, { force: true })); // also after a signal
  let output: FileHandle | undefined;
  try {
    output = await open(unfinished, 'wx', 0o600);
    const proof = await copy(bytes, output.writeFile.bind(output));
    await output.sync();
    mustBeNew(file); // still
    fs.renameSync(unfinished, file);
    unfinished = file; // its name may not be durable
    await realDisk.syncDirectory(dirname(resolve(file)));
    unfinished = undefined;
    return proof;
  } catch (error) {
    throw Object.assign(error as Error, { path: file });
  } finally {
    await output?.close();
  }
}

export async function restore(values: { file: string } & Place, { extras }: Tools) {
  const { file, data, store } = values;
  if (store === undefined) await refuseSecond(data);
  const input = inputFrom(file);
  const bytes = readBackup(input);
  const restored = store === undefined ? restoreInto(data, bytes) : storageOf(store, extras).restore(store, bytes);
  const proof = await restored.catch((error: NodeJS.ErrnoException) => {
    // The file gets its name when it is complete; what fails after that is an error of the system, and not of the input.
    const isOfDisk = store === undefined && error.syscall !== undefined && error.path !== input.name;
    if (!isOfDisk || !fs.existsSync(join(data, STORE_FILE))) throw error;
    const advice = `look with ${PROGRAM} verify --data ${shellWord(data)} before you repeat it`;
    throw new Error(`${data}: ${reasonOf(error)}; it is unknown whether the store is restored: ${advice}`);
  });
  return { ...printed(proof), restoredTo: storeName(values) };
}

/** The beginning of every line of a backup. */
const FIRST_BYTES = '{"crc":"';

async function* readBackup({ stream, name }: ReturnType<typeof inputFrom>): AsyncGenerator<Uint8Array> {
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
  const [stream, name] = file === STANDARD ? [process.stdin, 'standard input'] : [fs.createReadStream(file), file];
  stream.on('error', (error: Error) => Object.assign(error, { path: name }));
  return { stream, name };
}
