/** Makes the console's page from its sources: when it is first asked for, or as part of a build of the program. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { asset } from '../../src/assets.ts';

const sourceOf = (name: string): string => fileURLToPath(new URL(`./page/${name}`, import.meta.url));
/** Browsers of three years. */
const TARGET = ['chrome119', 'firefox120', 'safari17'];

const PAGE = 'extras/console/page.html';

/** Put in by the bundler; missing where the program runs from source. */
declare const PETSTORE_VERSION: string | undefined;

/** What a bundle of the program has of the console: it needs no files beside it, and no esbuild. */
export const assets = (): Record<string, string> => ({ [PAGE]: builtPage() });

export const page = (): string => (typeof PETSTORE_VERSION === 'undefined' ? builtPage() : asset(PAGE));

/** Style and script are within it, and the policy under which nothing else may run. */
function builtPage(): string {
  const [style, script] = [bundle('page.css'), bundle('main.ts')];
  return readFileSync(sourceOf('page.html'), 'utf8')
    .replace('{{policy}}', () => policy(script, style))
    .replace('/*STYLE*/', () => style)
    .replace('/*SCRIPT*/', () => script);
}

/** esbuild is loaded here, so that only who builds a page needs it. */
function bundle(entry: string): string {
  const { buildSync }: typeof import('esbuild') = createRequire(import.meta.url)('esbuild');
  const { outputFiles } = buildSync({
    entryPoints: [sourceOf(entry)],
    bundle: true,
    write: false,
    minify: true,
    format: 'esm',
    target: TARGET,
    charset: 'utf8',
    legalComments: 'none',
    logLevel: 'warning',
  });
  return outputFiles[0].text.trim();
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
