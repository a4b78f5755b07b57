/** For tests of extras: the program with them, in place of the service alone. */
import { existsSync } from 'node:fs';
import { runInstead } from '../test/program.ts';

runInstead('extras/main.ts');

export * from '../test/program.ts';

/** Why a test of two extras together is skipped; false: the other one is here. */
export function without(extra: string): string | false {
  return existsSync(new URL(extra, import.meta.url)) ? false : `extras/${extra} is not here`;
}
