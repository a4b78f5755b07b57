/** The work of `petstore verify`, `compact`, `backup`, `restore` and `export`. */
import { randomBytes } from 'node:crypto';
import { createReadStream, existsSync, rmSync } from 'node:fs';
import { type FileHandle, link, open, stat, unlink } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { petJson } from '../shop/pets.ts';
import type { Proof } from '../store/engine.ts';
import { realDisk } from '../store/file/disk.ts';
import { restoreInto } from '../store/file/store.ts';
import type { PetStatus } from '../store/model.ts';
import { visible } from '../text.ts';
import type { Context, Program, Sink, Streaming } from './command.ts';
import { CommandError, EXIT } from './failures.ts';
import { storageOf } from './opening.ts';
import { type Location, storeName } from './options.ts';
import { inWords, note, printRaw, withProgress } from './output.ts';

/** The file that stands for standard input and standard output. */
export const STANDARD = '-';
const PAGE_ANIMALS = 500;

/** The proof of a store as it is printed. */
const printed = ({ counts, digest }: Proof) => ({ ...counts, digest });

export const verify = async ({ engine }: Context) => printed(await engine.verify());

export const compact = async ({ engine }: Context) => ({ compacted: await engine.compact() });

export async function* exportAnimals({ engine }: Context, { status }: { status?: PetStatus }): Streaming<void> {
  for (let after = 0, isMore = true; isMore; ) {
    const { items, more } = engine.store.read.pets.page({ after, limit: PAGE_ANIMALS, status });
    if (items.length > 0) yield visible(`${items.map(petJson).join('\n')}\n`);
    isMore = more;
    after = items.at(-1)?.id ?? after;
  }
}

export async function* backup(context: Context): Streaming<Proof> {
  const proof = yield* context.engine.backup();
  context.lastBackupAt = context.clock.wall();
  return proof;
}

type Called = (values: object, sink: Sink) => Promise<Proof>;

export async function writeBackup({ file, json }: { file: string; json: boolean }, call: Called) {
  if (file !== STANDARD) return { ...printed(await writeNew(file, (sink) => call({}, sink))), writtenTo: file };
  const proof = await call({}, async (chunk) => {
    if (await printRaw(chunk)) return true;
    throw new Error('the backup is not complete: its reader went away');
  });
  const result = { ...printed(proof), writtenTo: 'standard output' };
  await note(json ? JSON.stringify(result, null, 2) : inWords(result));
  return undefined;
}

/** Writes a new file, which gets its name only when it is complete and durable. */
async function writeNew<R>(file: string, write: (sink: Sink) => Promise<R>): Promise<R> {
  if (await stat(file).catch(() => undefined)) throw new Error(`${file} exists`);
  const path = resolve(file);
  if (existsSync(join(dirname(path), 'LOCK'))) throw new Error(`${file} is in a data directory: name another place`);
  // Others may be able to write in this directory, so the temporary name is one that they cannot guess.
  const temporary = `${path}.${randomBytes(8).toString('hex')}.tmp`;
  const remove = () => rmSync(temporary, { force: true });
  process.once('exit', remove);
  const writeAll = async (output: FileHandle) => {
    const result = await write(async (chunk) => {
      await output.writeFile(chunk);
      return true;
    });
    await output.sync();
    return result;
  };
  try {
    const output = await open(temporary, 'wx', 0o600);
    const result = await writeAll(output).finally(() => output.close());
    await link(temporary, path); // fails if another process has taken the name meanwhile
    await realDisk.syncDirectory(dirname(path)).catch(async (error) => {
      await unlink(path).catch(() => {}); // its name may not be durable
      throw error;
    });
    return result;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') throw new Error(`${file} exists`);
    throw code === undefined ? error : Object.assign(error as Error, { path: file });
  } finally {
    remove();
    process.off('exit', remove);
  }
}

export async function restore({ file, ...at }: Location & { file: string }, _: unknown, { extras }: Program) {
  const { data, store } = at;
  const proof = await withProgress('restoring', async (progress) => {
    const bytes = readBackup(file, progress);
    return store === undefined ? restoreInto(data, bytes) : storageOf(store, extras).restore(store, bytes);
  });
  return { ...printed(proof), restoredTo: storeName(at) };
}

/** A file, or standard input. An error names it: where it is read is not where the store is. */
export function inputFrom(file: string) {
  const stream = file === STANDARD ? process.stdin : createReadStream(file);
  return stream.on('error', (error: Error) =>
    Object.assign(error, { path: file === STANDARD ? 'standard input' : file }),
  );
}

/** The beginning of every line of a backup. */
const FIRST_BYTES = '{"crc":"';

async function* readBackup(file: string, progress: (done: number, total: number) => void): AsyncGenerator<Uint8Array> {
  const isStandard = file === STANDARD;
  const size = isStandard ? 0 : (await stat(file)).size;
  let bytes = 0;
  for await (const chunk of inputFrom(file)) {
    if (bytes === 0 && !FIRST_BYTES.startsWith(chunk.toString('latin1', 0, FIRST_BYTES.length))) break;
    yield chunk;
    progress((bytes += chunk.length), size);
  }
  if (bytes > 0) return;
  const name = isStandard ? 'standard input' : file;
  throw new CommandError(EXIT.failed, `${name} is no backup of a store; nothing was restored`);
}
