/** Commands as the page prints them: such that they work where this program runs. */
import path from 'node:path';
import { isSea } from 'node:sea';
import { shellWord } from '../shell.ts';

export interface Running {
  /** Where clients reach the service; ends in `/v1`. */
  url: string;
  /** The value of `--data`; undefined where the store is a database. */
  data: string | undefined;
  /** Whether strangers may see the page: then it does not tell where the store is. */
  isPublic: boolean;
  /** Whether the server was started with `--lab`. */
  lab: boolean;
}

const DEFAULT_DATA = 'data';

/** As this process was started: the single binary, the bundle, or the source tree. */
function program(): string {
  if (isSea()) return shellWord(process.argv0);
  const script = shellWord(path.relative('', process.argv[1]));
  return script.endsWith('.ts') ? `npx tsx ${script}` : `node ${script}`;
}

function storeOption({ data, isPublic }: Running): string {
  if (data === undefined) return ' --store URL';
  if (data === DEFAULT_DATA) return '';
  return ` --data ${isPublic ? 'DIR' : shellWord(data)}`;
}

/** `words`: such as `keys create --plan free`. */
export function commandLine(words: string, running: Running): string {
  return `${program()} ${words}${storeOption(running)}`;
}
