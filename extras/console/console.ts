/** The console: one page that holds its style and script, and a policy under which nothing else may run. */
import { markup, shellWord } from '../../src/text.ts';
import { page } from './assets.ts';

interface Running {
  /** The address for clients of the service; ends in `/v1`. */
  url: string;
  /** The command line that runs this program again. */
  program: string;
  /** The value of `--data`; undefined if the store is a database. */
  data: string | undefined;
  /** Whether others than the operator may see the page: then it does not name the directory of the store. */
  isPublic: boolean;
}

const DEFAULT_DATA = 'data';

/** What the policy in the page cannot say of itself. Its type is `text/html; charset=utf-8`. */
export const CONSOLE_HEADERS = [
  ...['Content-Security-Policy', "frame-ancestors 'none'"],
  ...['Referrer-Policy', 'no-referrer'],
];

/** The page as HTML. From source it is put together first. */
export function consolePage(running: Running): string {
  return page()
    .replaceAll(/\{\{petstore ([^}]+)\}\}/g, (_, words) => markup(`${running.program} ${words}${storeOption(running)}`))
    .replaceAll('{{url}}', () => markup(running.url))
    .replace('{{lab}}', 'false');
}

function storeOption({ data, isPublic }: Running): string {
  if (data === undefined) return ' --store URL';
  if (data === DEFAULT_DATA) return '';
  return ` --data ${isPublic ? 'DIR' : shellWord(data)}`;
}
