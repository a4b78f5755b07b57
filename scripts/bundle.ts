/** The program as one file, for Node, the binary and the tests. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type BuildOptions, build } from 'esbuild';

export const ROOT = fileURLToPath(new URL('..', import.meta.url));

interface Wanted {
  /** The file that it begins with, from the root; by default that of the program with its extras. */
  entry?: string;
  outfile: string;
  commit: string;
  minify?: boolean;
}

export function packageVersion(): string {
  return JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8')).version;
}

/**
 * The texts that the program needs, by path: the built-in example, the OpenAPI document, and of each extra what its
 * `assets.ts` makes.
 */
async function readAssets(): Promise<Record<string, string>> {
  const paths = ['data/seed.json', 'src/service/openapi.json'];
  const texts = Object.fromEntries(paths.map((path) => [path, readFileSync(ROOT + path, 'utf8')]));
  const makers = readdirSync(`${ROOT}extras`).map((name) => `${ROOT}extras/${name}/assets.ts`);
  for (const maker of makers.filter((path) => existsSync(path))) Object.assign(texts, (await import(maker)).assets());
  return texts;
}

/** Gives the files that went into it, from the root. */
export async function bundle(wanted: Wanted): Promise<string[]> {
  const { metafile } = await build({ ...(await optionsOf(wanted)), absWorkingDir: ROOT, metafile: true });
  return Object.keys(metafile.inputs);
}

async function optionsOf(wanted: Wanted): Promise<BuildOptions> {
  const { entry = 'extras/main.ts', outfile, commit, minify = false } = wanted;
  return {
    entryPoints: [ROOT + entry],
    outfile,
    bundle: true,
    platform: 'node',
    target: 'node20.19',
    format: 'cjs', // a single executable takes no other, and this one starts sooner
    minify,
    legalComments: 'none',
    banner: { js: `"use strict";\n${readFileSync(`${ROOT}scripts/needs-node.mjs`, 'utf8')}` },
    external: ['pg-native'], // which pg would take if it were there
    logLevel: 'warning',
    logOverride: { 'empty-import-meta': 'silent' }, // guarded by what is defined below
    define: {
      PETSTORE_VERSION: JSON.stringify(packageVersion()),
      PETSTORE_COMMIT: JSON.stringify(commit),
      EMBEDDED_ASSETS: JSON.stringify(await readAssets()),
    },
  };
}
