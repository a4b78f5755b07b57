/** The work of `petstore verify`, `compact`, `backup` and `restore`. */
import { randomBytes } from 'node:crypto';
import { createReadStream, existsSync, fstatSync, linkSync, lstatSync, rmSync } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { Proof } from '../store/engine.ts';
import { realDisk } from '../store/file/disk.ts';
import { restoreInto } from '../store/file/store.ts';
import { type Context, type Here, storageOf } from './command.ts';
import { storeName } from './options.ts';
import { type Body, inWords, note, type Progress, print, withProgress } from './output.ts';
import { refuseSecond } from './socket.ts';

/** The file that stands for standard input and standard output. */
const STANDARD = '-';

/** The proof of a store as it is printed. */
function printed({ counts: { replays, ...counts }, digest }: Proof) {
  return { ...counts, idempotencyRecords: replays, digest };
}

export const verify = async ({ engine }: Context) => printed(await engine.verify());

export const compact = async ({ engine }: Context) => ({ compacted: await engine.compact() });

/** The bytes of a backup. */
export async function* backup(context: Context): Body {
  yield* context.engine.backup();
  context.lastBackupAt = context.clock.wall();
}

export async function writeBackup({ file }: { file: string }, { ask, json }: Pick<Here, 'ask' | 'json'>) {
  const begin = async () => (await ask({})) as AsyncIterable<Uint8Array>;
  if (file !== STANDARD) return { ...(await writeNew(file, begin)), writtenTo: file };
  const proof = await copy(await begin(), async (chunk) => {
    if (!(await print(chunk))) throw new Error('the backup is not complete: its reader went away');
  });
  const result = { ...proof, writtenTo: 'standard output' };
  await note(json ? JSON.stringify(result, null, 2) : inWords(result));
  return undefined;
}

/** No shorter than the last line of a backup, which is the proof of all lines before it. */
const MAX_PROOF_BYTES = 1_024;

async function copy(bytes: AsyncIterable<Uint8Array>, write: (chunk: Uint8Array) => Promise<void>) {
  let end = Buffer.alloc(0);
  for await (const chunk of bytes) {
    await write(chunk);
    end = Buffer.concat([end, chunk.subarray(-MAX_PROOF_BYTES)]).subarray(-MAX_PROOF_BYTES);
  }
  return printed(JSON.parse(end.toString().trimEnd().split('\n').at(-1)!));
}

/** Writes a new file, which gets its name only when it is complete and durable. */
async function writeNew(file: string, begin: () => Promise<AsyncIterable<Uint8Array>>) {
  if (lstatSync(file, { throwIfNoEntry: false })) throw new Error(`${file} exists already: name another file`);
  const path = resolve(file);
  if (existsSync(join(dirname(path), 'LOCK'))) throw new Error(`${file} is in a data directory: name another place`);
  // Others may be able to write in this directory, so the temporary name is one that they cannot guess.
  const temporary = `${path}.${randomBytes(8).toString('hex')}.tmp`;
  let incomplete = [temporary];
  const remove = () => {
    for (const name of incomplete) rmSync(name, { force: true });
  };
  process.once('exit', remove);
  try {
    const bytes = await begin();
    const output = await open(temporary, 'wx', 0o600);
    try {
      const proof = await copy(bytes, (chunk) => output.writeFile(chunk));
      await output.sync();
      link(temporary, path);
      incomplete = [temporary, path]; // the name may not be durable
      await realDisk.syncDirectory(dirname(path));
      incomplete = [temporary];
      return proof;
    } finally {
      await output.close();
    }
  } catch (error) {
    throw Object.assign(error as Error, { path: file });
  } finally {
    remove();
    process.off('exit', remove);
  }
}

/** Fails if another process has taken the name meanwhile. */
function link(temporary: string, path: string): void {
  try {
    linkSync(temporary, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') throw error;
    throw new Error(`the file system of ${path} has no hard links: write to standard output, as in backup - > ${path}`);
  }
}

export async function restore({ file }: { file: string }, { program, ...location }: Here) {
  const { data, store } = location;
  if (store === undefined) await refuseSecond(data);
  const proof = await withProgress('restoring', async (progress) => {
    const bytes = readBackup(file, progress);
    return store === undefined ? restoreInto(data, bytes) : storageOf(store, program).restore(store, bytes);
  });
  return { ...printed(proof), restoredTo: storeName(location) };
}

/** The beginning of every line of a backup. */
const FIRST_BYTES = '{"crc":"';

async function* readBackup(file: string, progress: Progress): AsyncGenerator<Uint8Array> {
  const { stream, name, size } = await inputFrom(file);
  let bytes = 0;
  for await (const chunk of stream) {
    if (bytes === 0 && !FIRST_BYTES.startsWith(chunk.toString('latin1', 0, FIRST_BYTES.length))) break;
    yield chunk;
    progress((bytes += chunk.length), size);
  }
  if (bytes === 0) throw new Error(`${name} is no backup of a store; nothing was restored`);
}

/** A file, or standard input. An error names it: where it is read is not where the store is. `size`: 0 if unknown. */
export async function inputFrom(file: string) {
  const isStandard = file === STANDARD;
  const name = isStandard ? 'standard input' : file;
  const found = isStandard ? fstatSync(0) : await stat(file);
  if (found.isDirectory()) throw new Error(`${name} is a directory`);
  const stream = isStandard ? process.stdin : createReadStream(file);
  stream.on('error', (error: Error) => Object.assign(error, { path: name }));
  return { stream, name, size: found.size };
}
