/** What a server prints when it is ready, and the first key, which is printed there or written into a file. */
import { closeSync, openSync, rmSync, writeSync } from 'node:fs';
import { shellWord } from '../quoting.ts';
import type { Context } from './command.ts';
import { createFirstKey } from './keys.ts';
import type { Logger } from './logging.ts';
import type { ServeSettings } from './options.ts';
import { isDiscarded, print } from './output.ts';
import { PROGRAM } from './version.ts';

interface FirstKey {
  id: string;
  key: string;
  /** Where it was written, and so is not printed: standard output may be a log that many read. */
  file?: string;
}

/** What is printed below the first line. */
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

/** Creates a key if there is no active one. The file is made first: no key is made that nobody could be told. */
export async function giveFirstKey(context: Context, settings: ServeSettings): Promise<FirstKey | undefined> {
  const { firstKey: plan, firstKeyFile: file } = settings;
  if (plan === undefined || file === undefined) return plan && createFirstKey(context, plan);
  const fd = openSync(file, 'wx', 0o600);
  try {
    const made = await createFirstKey(context, plan);
    if (made === undefined) rmSync(file);
    else writeSync(fd, `${made.key}\n`);
    return made && { ...made, file };
  } finally {
    closeSync(fd);
  }
}

/** The first line is for programs. */
export async function tellFirstSteps(steps: string[], origin: string, first: FirstKey | undefined, log: Logger) {
  const lines = [`petstore listening on ${origin}/v1`, ...steps];
  const wasPrinted = await print(lines.join('\n')).then(
    () => !isDiscarded(),
    () => false,
  );
  if (wasPrinted || first === undefined || first.file !== undefined) return;
  log.warn(`nobody read the first key: give it a new secret with ${PROGRAM} keys rotate ${first.id} --grace 0s`);
}
