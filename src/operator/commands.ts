/** Every command, in the order in which they are told. */
import { baseUrls, SERVE } from '../config.ts';
import { EXPORT, IMPORT } from './animal-commands.ts';
import { type Command, command } from './arguments.ts';
import { DATA_COMMANDS } from './data-commands.ts';
import { KEY_COMMANDS } from './key-commands.ts';
import { openapi } from './pages.ts';
import { serve } from './serve.ts';
import { SHOW_VERSION } from './version.ts';

export const COMMANDS: readonly Command[] = [
  command({ ...SERVE, run: serve }),
  ...KEY_COMMANDS,
  ...DATA_COMMANDS,
  EXPORT,
  IMPORT,
  command({ name: 'openapi', does: 'print the OpenAPI document', options: baseUrls, run: openapi }),
  SHOW_VERSION,
];
