import { readFileSync } from 'node:fs';
import { json } from '../config.ts';
import { command } from './arguments.ts';
import { facts } from './output.ts';

/** Put in by the build; from the source tree there is neither. */
declare const PETSTORE_VERSION: string | undefined;
declare const PETSTORE_COMMIT: string | undefined;

export const VERSION = typeof PETSTORE_VERSION === 'string' ? PETSTORE_VERSION : versionOfTree();
const COMMIT = typeof PETSTORE_COMMIT === 'string' ? PETSTORE_COMMIT : 'source tree';

function versionOfTree(): string {
  return JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')).version;
}

export const SHOW_VERSION = command({
  name: 'version',
  does: 'print version, commit and runtime',
  options: { json },
  run: () => ({
    version: VERSION,
    commit: COMMIT,
    runtime: `Node ${process.version}, ${process.platform} ${process.arch}`,
  }),
  words: ({ version, ...rest }) => facts(Object.entries({ petstore: version, ...rest })),
});
