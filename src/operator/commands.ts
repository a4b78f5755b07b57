/** All commands, in the order of `--help`. */
import { openapiDocument } from '../web/openapi.ts';
import { EXPORT } from './animal-commands.ts';
import { command } from './command.ts';
import { DATA_COMMANDS } from './data-commands.ts';
import { GRADE } from './grading.ts';
import { IMPORT } from './import.ts';
import { KEY_COMMANDS } from './keys.ts';
import { labCommand } from './lab-command.ts';
import { baseUrls, json } from './options.ts';
import { print } from './output.ts';
import { READY } from './ready.ts';
import { serveCommand } from './serve.ts';
import { COMMIT, RUNTIME, VERSION } from './version.ts';

const ON_THE_STORE = [...KEY_COMMANDS, ...DATA_COMMANDS, EXPORT, IMPORT, GRADE];

export const COMMANDS = [
  serveCommand(ON_THE_STORE),
  labCommand(ON_THE_STORE),
  ...ON_THE_STORE,
  command({
    name: 'openapi',
    does: 'print the OpenAPI document',
    options: baseUrls,
    run: (urls) => print(JSON.stringify(openapiDocument(urls), null, 2)),
  }),
  READY,
  command({
    name: 'version',
    does: 'print version, commit and runtime',
    options: { json },
    run: () => ({ version: VERSION, commit: COMMIT, runtime: RUNTIME }),
  }),
];
