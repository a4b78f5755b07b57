/** The files of the console, the OpenAPI document and the built-in example, as text. */
import { readFileSync } from 'node:fs';

/** The page's scripts in the order in which they are joined: each after those it imports. */
export const SCRIPTS = [
  ...['page/dom.js', 'page/json.js', 'page/wire.js', 'page/panel.js', 'page/requests.js', 'page/form.js'],
  ...['page/list.js', 'page/categories.js', 'page/shop.js', 'page/trial.js'],
  ...['page/reference.js', 'page/lab.js', 'page/main.js'],
] as const;
export const STYLES = ['page/base.css', 'page/parts.css'] as const;
/** The built-in example, with which `--seed demo` fills a store. */
export const DEMO = '../../data/seed.json';
const ASSETS = ['openapi.json', 'page/page.html', ...STYLES, ...SCRIPTS, DEMO] as const;

type AssetName = (typeof ASSETS)[number];

/** The result of `readAssets`, put in by the bundler: the bundled program needs no files beside it. */
declare const EMBEDDED_ASSETS: Record<string, string> | undefined;

export function asset(name: AssetName): string {
  return typeof EMBEDDED_ASSETS === 'undefined' ? readAsset(name) : EMBEDDED_ASSETS[name];
}

export function readAssets(): Record<string, string> {
  return Object.fromEntries(ASSETS.map((name) => [name, readAsset(name)]));
}

function readAsset(name: AssetName): string {
  return readFileSync(new URL(`./${name}`, import.meta.url), 'utf8');
}
