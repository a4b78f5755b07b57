/** The console: one page that holds its style and script, and a policy under which nothing else may run. */
import { createHash } from 'node:crypto';
import { asset } from '../assets.ts';
import { markup, shellWord } from '../text.ts';

interface Running {
  /** The address for clients of the service; ends in `/v1`. */
  url: string;
  /** The command line that runs this program again. */
  program: string;
  /** The value of `--data`; undefined if the store is a database. */
  data: string | undefined;
  /** Whether others than the operator may see the page: then it does not name the directory of the store. */
  isPublic: boolean;
  /** Whether the server was started with `--lab`. */
  lab: boolean;
}

/** The page's scripts in the order in which they are joined: each after those it imports. */
const SCRIPTS = [
  ...['dom.js', 'json.js', 'wire.js', 'panel.js', 'requests.js', 'form.js'],
  ...['list.js', 'categories.js', 'shop.js', 'trial.js'],
  ...['reference.js', 'lab.js', 'main.js'],
];
const STYLES = ['base.css', 'parts.css'];
const part = (name: string): string => asset(`src/web/page/${name}`);

const DEFAULT_DATA = 'data';

/** What the policy in the page cannot say of itself. Its type is `text/html; charset=utf-8`. */
export const CONSOLE_HEADERS = [
  ...['Content-Security-Policy', "frame-ancestors 'none'"],
  ...['Referrer-Policy', 'no-referrer'],
];

/** The page as HTML. */
export function consolePage(running: Running): string {
  const script = SCRIPTS.map(joined).join('\n');
  const style = STYLES.map(part).join('\n');
  return part('page.html')
    .replaceAll(/\{\{petstore ([^}]+)\}\}/g, (_, words) => markup(`${running.program} ${words}${storeOption(running)}`))
    .replaceAll('{{url}}', () => markup(running.url))
    .replace('{{lab}}', String(running.lab))
    .replace('{{policy}}', () => markup(policy(script, style)))
    .replace('/*STYLE*/', () => style)
    .replace('/*SCRIPT*/', () => script);
}

function storeOption({ data, isPublic }: Running): string {
  if (data === undefined) return ' --store URL';
  if (data === DEFAULT_DATA) return '';
  return ` --data ${isPublic ? 'DIR' : shellWord(data)}`;
}

/**
 * The files are modules, so that editors and linters understand them. In the page they are joined to one module, in
 * which each sees the names of the others: `import` and `export` are left out.
 */
function joined(name: string): string {
  return part(name)
    .replaceAll(/^import [^;]+? from '\.\/[^']+';\n/gm, '')
    .replaceAll(/^export (?=async |class |const |function )/gm, '');
}

function policy(script: string, style: string): string {
  return [
    "default-src 'none'",
    `script-src ${hashSource(script)}`,
    `style-src ${hashSource(style)}`,
    "connect-src 'self'",
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ');
}

const hashSource = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
