/** Which program this is, and how it is called. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { isSea } from 'node:sea';

/** Put in by the build; from the source tree there is neither. */
declare const PETSTORE_VERSION: string | undefined;
declare const PETSTORE_COMMIT: string | undefined;

export const VERSION = typeof PETSTORE_VERSION === 'string' ? PETSTORE_VERSION : versionOfTree();
export const COMMIT = typeof PETSTORE_COMMIT === 'string' ? PETSTORE_COMMIT : 'source tree';
export const RUNTIME = `Node ${process.version}, ${process.platform} ${process.arch}`;

function versionOfTree(): string {
  return JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')).version;
}

/** What to type to run this program again: in front of every command that is printed. */
export const PROGRAM = isSea() ? process.argv0 : fromScript(process.argv[1] ?? 'petstore');

function fromScript(script: string): string {
  const here = path.relative('', script);
  const shown = here.startsWith('..') ? script : here;
  if (script.endsWith('.ts')) return `npx tsx ${shown}`;
  return /\.[cm]?js$/.test(script) ? `node ${shown}` : path.basename(script);
}
