import { readFileSync } from 'node:fs';
import type { VERSION as SPEC } from '../config.ts';
import type { Values } from './options.ts';
import { facts, print, printJson } from './output.ts';

/** Put in by the build; from the source tree there is neither. */
declare const PETSTORE_VERSION: string | undefined;
declare const PETSTORE_COMMIT: string | undefined;

export const VERSION = typeof PETSTORE_VERSION === 'string' ? PETSTORE_VERSION : versionOfTree();
const COMMIT = typeof PETSTORE_COMMIT === 'string' ? PETSTORE_COMMIT : 'source tree';

function versionOfTree(): string {
  return JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')).version;
}

export async function version({ json }: Values<typeof SPEC.options>): Promise<void> {
  const said = {
    version: VERSION,
    commit: COMMIT,
    runtime: `Node ${process.version}, ${process.platform} ${process.arch}`,
  };
  if (json) printJson(said);
  else
    print(
      facts([
        ['petstore', said.version],
        ['commit', said.commit],
        ['runtime', said.runtime],
      ]),
    );
}
