/** One file out of `src/`, for the package, the binary and the tests. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { readAssets } from '../src/web/assets.ts';

export const ROOT = fileURLToPath(new URL('..', import.meta.url));

export interface Wanted {
  outfile: string;
  /** A single executable takes CommonJS. */
  format: 'esm' | 'cjs';
  commit: string;
  minify?: boolean;
}

export function packageVersion(): string {
  return JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8')).version;
}

export async function bundle({ outfile, format, commit, minify = false }: Wanted): Promise<void> {
  await build({
    entryPoints: [`${ROOT}src/main.ts`],
    outfile,
    bundle: true,
    platform: 'node',
    target: 'node20.19',
    format,
    minify,
    legalComments: 'none',
    logLevel: 'warning',
    logOverride: { 'empty-import-meta': 'silent' }, // guarded by what is defined below
    define: {
      PETSTORE_VERSION: JSON.stringify(packageVersion()),
      PETSTORE_COMMIT: JSON.stringify(commit),
      EMBEDDED_ASSETS: JSON.stringify(readAssets()),
    },
  });
}
