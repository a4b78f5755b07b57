/** Text files that the program needs while it runs, such as the OpenAPI document. */
import { readFileSync } from 'node:fs';

/** By path, put in by the bundler: the bundled program needs no files beside it. */
declare const EMBEDDED_ASSETS: Record<string, string> | undefined;

/** `path`: from the root of the source tree. `readAssets` in `scripts/bundle.ts` names those that a bundle has. */
export function asset(path: string): string {
  return typeof EMBEDDED_ASSETS === 'undefined'
    ? readFileSync(new URL(`../${path}`, import.meta.url), 'utf8')
    : EMBEDDED_ASSETS[path];
}
