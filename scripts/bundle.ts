/** The program as one file, for Node, the binary and the tests. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type BuildOptions, build } from 'esbuild';

export const ROOT = fileURLToPath(new URL('..', import.meta.url));

export interface Wanted {
  /** The file that it begins with, from the root; by default that of the program with its extras. */
  entry?: string;
  outfile: string;
  commit: string;
  minify?: boolean;
}

export function packageVersion(): string {
  return JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8')).version;
}

/** The built-in example, the OpenAPI document, and what stands in the folders `assets` of extras. */
function assetPaths(): string[] {
  const filesIn = (folder: string) => readdirSync(ROOT + folder).map((name) => `${folder}/${name}`);
  const folders = filesIn('extras').map((folder) => `${folder}/assets`);
  const ofExtras = folders.filter((folder) => existsSync(ROOT + folder)).flatMap(filesIn);
  return ['data/seed.json', 'src/service/openapi.json', ...ofExtras];
}

const readAssets = () => Object.fromEntries(assetPaths().map((path) => [path, readFileSync(ROOT + path, 'utf8')]));

/** The console's page, where there is a console. */
async function builtPage(): Promise<string> {
  const builder = `${ROOT}src/web/build.ts`;
  return existsSync(builder) ? (await import(builder)).buildPage() : '';
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
      EMBEDDED_ASSETS: JSON.stringify(readAssets()),
      EMBEDDED_PAGE: JSON.stringify(await builtPage()),
    },
  };
}
