import { readFileSync } from 'node:fs';

/** What the page is made of, scripts in the order in which they are joined: each after those it imports. */
export const SCRIPTS = [
  'dom.js',
  'json.js',
  'wire.js',
  'panel.js',
  'exchanges.js',
  'list.js',
  'form.js',
  'shop.js',
  'orders.js',
  'animals.js',
  'categories.js',
  'reference.js',
  'main.js',
] as const;
export const STYLES = ['base.css', 'frame.css', 'panel.css', 'lists.css', 'reading.css'] as const;
const ASSETS = ['page.html', ...STYLES, ...SCRIPTS] as const;

type AssetName = (typeof ASSETS)[number];

/** Put in place by what bundles the program, which then needs no files beside it: what `readAssets` returns. */
declare const EMBEDDED_ASSETS: Record<string, string> | undefined;

export function asset(name: AssetName): string {
  return typeof EMBEDDED_ASSETS === 'undefined' ? readAsset(name) : EMBEDDED_ASSETS[name];
}

export function readAssets(): Record<string, string> {
  return Object.fromEntries(ASSETS.map((name) => [name, readAsset(name)]));
}

function readAsset(name: AssetName): string {
  return readFileSync(new URL(`./page/${name}`, import.meta.url), 'utf8');
}
