/** Every command, in the order in which they are told. */
import { EXPORT, GRADE } from './animal-commands.ts';
import { type Command, command } from './command.ts';
import type { Call } from './context.ts';
import { DATA_COMMANDS } from './data-commands.ts';
import { IMPORT } from './import.ts';
import { KEY_COMMANDS } from './keys.ts';
import { printDocument } from './pages.ts';
import { serveCommand } from './serve.ts';
import { baseUrls, json } from './settings.ts';
import { COMMIT, RUNTIME, VERSION } from './version.ts';

const ON_THE_STORE: readonly Command[] = [...KEY_COMMANDS, ...DATA_COMMANDS, EXPORT, IMPORT, GRADE];

const calls = new Map(
  ON_THE_STORE.flatMap(({ spec, call }): [string, Call][] => (call === undefined ? [] : [[spec.name, call]])),
);

export const COMMANDS: readonly Command[] = [
  serveCommand(calls),
  ...ON_THE_STORE,
  command({ name: 'openapi', does: 'print the OpenAPI document', options: baseUrls, run: printDocument }),
  command({
    name: 'version',
    does: 'print version, commit and runtime',
    options: { json },
    run: () => ({ version: VERSION, commit: COMMIT, runtime: RUNTIME }),
  }),
];
