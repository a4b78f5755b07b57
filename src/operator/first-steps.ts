/** The lines that a server prints when it is ready, and the first key. */
import type { Context } from './command.ts';
import { createFirstKey, hasActiveKey } from './keys.ts';
import type { Logger } from './logging.ts';
import { type Place, placeWords, type ServeSettings } from './options.ts';
import { isDiscarded, print } from './output.ts';
import { PROGRAM } from './version.ts';

interface FirstKey {
  id: string;
  key: string;
}

/** The lines below the first one. */
export type FirstSteps = (origin: string, first: FirstKey | undefined) => string[];

/** A new key stands alone on its line, and then in a line to paste. */
export const firstSteps: FirstSteps = (origin, first) => {
  const lines = [`The console: ${origin}/`];
  if (first === undefined) return lines;
  const { id, key } = first;
  const curl = `curl -s -H 'Authorization: Bearer ${key}' ${origin}/v1/pets`;
  return [...lines, `The key ${id}, which is shown only once:`, key, curl];
};

/** Creates a key if there is no active one. */
export async function giveFirstKey(context: Context, { firstKey: plan }: ServeSettings): Promise<FirstKey | undefined> {
  return plan === undefined || hasActiveKey(context) ? undefined : createFirstKey(context, plan);
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
  if (wasPrinted || first === undefined) return;
  log.warn(`nobody read the first key: ${newSecret(first, at)}`);
}
