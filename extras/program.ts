/** For tests of extras: the program with them, in place of the service alone. */
import { existsSync } from 'node:fs';
import { runInstead } from '../test/program.ts';

runInstead('extras/main.ts');

export * from '../test/program.ts';

/** What another extra has, for tests of two together. Undefined: that extra is not here. `file`: from `extras/`. */
export async function beside<T>(file: string): Promise<T | undefined> {
  const url = new URL(file, import.meta.url);
  return existsSync(url) ? import(url.href) : undefined;
}
