/** For tests of extras: the program with them, in place of the service alone. */
import { runInstead } from '../test/program.ts';

runInstead('extras/main.ts');

export * from '../test/program.ts';
