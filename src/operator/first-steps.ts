/** The lines that a server prints when it is ready, and the first key: printed with them, or written into a file. */
import { closeSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { shellWord } from '../quoting.ts';
import type { Context } from './command.ts';
import { reasonOf } from './exit.ts';
import { createFirstKey, hasActiveKey } from './keys.ts';
import type { Logger } from './logging.ts';
import { type Place, placeWords, type ServeSettings } from './options.ts';
import { isDiscarded, print } from './output.ts';
import { PROGRAM } from './version.ts';

interface FirstKey {
  id: string;
  key: string;
  /** The file that it was written into. It is then not printed: standard output may be a log that many read. */
  file?: string;
}

/** The lines below the first one. */
export type FirstSteps = (origin: string, first: FirstKey | undefined) => string[];

/** A new key stands alone on its line, and then in a line to paste. */
export const firstSteps: FirstSteps = (origin, first) => {
  const lines = [`The console: ${origin}/`];
  if (first === undefined) return lines;
  const { id, key, file } = first;
  if (file === undefined) {
    const curl = `curl -s -H 'Authorization: Bearer ${key}' ${origin}/v1/pets`;
    return [...lines, `The key ${id}, which is shown only once:`, key, curl];
  }
  const curl = `curl -s -H "Authorization: Bearer $(cat ${shellWord(file)})" ${origin}/v1/pets`;
  return [...lines, `The key ${id} is in ${file}, which its owner alone can read.`, curl];
};

/** Creates a key if there is no active one. The file is made first, so that the key cannot be made and then be lost. */
export async function giveFirstKey(context: Context, settings: ServeSettings): Promise<FirstKey | undefined> {
  const { firstKey: plan, firstKeyFile: file } = settings;
  if (plan === undefined || hasActiveKey(context)) return undefined; // the file is there since the first start
  if (file === undefined) return createFirstKey(context, plan);
  const fd = openNew(file);
  try {
    const made = await createFirstKey(context, plan).catch((error) => {
      rmSync(file); // else the next start would find it, and be refused
      throw error;
    });
    if (made === undefined) rmSync(file);
    else write(fd, file, made, newSecret(made, settings));
    return made && { ...made, file };
  } finally {
    closeSync(fd);
  }
}

/** Creates the file: follows no link, overwrites nothing. */
function openNew(file: string): number {
  try {
    return openSync(file, 'wx', 0o600);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    throw new Error(`${file} exists, and there is no active key: remove it, or name another --first-key-file`);
  }
}

function write(fd: number, file: string, { id, key }: FirstKey, advice: string): void {
  try {
    writeFileSync(fd, `${key}\n`);
  } catch (error) {
    throw new Error(`${file}: ${reasonOf(error as Error)}; the key ${id} is lost: ${advice}`);
  }
}

const newSecret = ({ id }: FirstKey, at: Place) =>
  `give it a new secret with ${PROGRAM} keys rotate ${id}${placeWords(at)} --grace 0s`;

/** The first line is for programs. */
export async function tellFirstSteps(
  steps: string[],
  origin: string,
  first: FirstKey | undefined,
  { log, at }: { log: Logger; at: Place },
) {
  const lines = [`petstore listening on ${origin}/v1`, ...steps];
  const wasPrinted = await print(lines.join('\n')).then(
    () => !isDiscarded(),
    () => false,
  );
  if (wasPrinted || first === undefined || first.file !== undefined) return;
  log.warn(`nobody read the first key: ${newSecret(first, at)}`);
}
