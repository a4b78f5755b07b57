/** Which program this is, and how it is called. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { isSea } from 'node:sea';
import { shellWord } from '../quoting.ts';

/** Put in by the build; from the source tree there is neither. */
declare const PETSTORE_VERSION: string | undefined;
declare const PETSTORE_COMMIT: string | undefined;

const ofTree = () => JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')).version;
export const VERSION: string = typeof PETSTORE_VERSION === 'string' ? PETSTORE_VERSION : ofTree();
export const COMMIT = typeof PETSTORE_COMMIT === 'string' ? PETSTORE_COMMIT : 'source tree';
export const RUNTIME = `Node ${process.version}, ${process.platform} ${process.arch}`;

/** The command line that runs this program again: it begins every command that is printed. */
export const PROGRAM = isSea() ? shellWord(process.argv0) : typed(process.argv[1] ?? 'petstore');

/** A script without an extension is a link that npm made, and in the PATH. */
function typed(script: string): string {
  const name = shellWord(path.relative('', script));
  if (script.endsWith('.ts')) return `npx tsx ${name}`;
  return /\.[cm]?js$/.test(script) ? `node ${name}` : shellWord(path.basename(script));
}
