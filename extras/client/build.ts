/** Makes `dist/`, what the package has: the client as one module, and its declarations. `npm pack` runs it first. */
import { execFileSync } from 'node:child_process';
import { cpSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { packageVersion, ROOT } from '../../scripts/bundle.ts';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const DIST = path.join(HERE, 'dist');
const ENTRY = path.join(HERE, 'client.ts');

rmSync(DIST, { recursive: true, force: true });
// It needs nothing but `fetch`: one ES module serves Node (also by `require`), Deno, Bun and bundlers.
await build({
  entryPoints: [ENTRY],
  outfile: path.join(DIST, 'client.js'),
  bundle: true,
  platform: 'neutral',
  target: 'es2022',
  format: 'esm',
  define: { PETSTORE_VERSION: JSON.stringify(packageVersion()) },
  logLevel: 'warning',
});
cpSync(path.join(ROOT, 'LICENSE'), path.join(DIST, 'LICENSE'));

// The declarations keep the tree of the source, since the client shares types with the service.
const project = path.join(DIST, 'tsconfig.json');
const settings = {
  extends: path.join(ROOT, 'tsconfig.json'),
  compilerOptions: {
    rootDir: ROOT,
    outDir: path.join(DIST, 'types'),
    typeRoots: [path.join(ROOT, 'node_modules/@types')],
    noEmit: false,
    declaration: true,
    emitDeclarationOnly: true,
    rewriteRelativeImportExtensions: true,
  },
  files: [ENTRY],
  include: [],
};
writeFileSync(project, JSON.stringify(settings));
const tsc = path.join(ROOT, 'node_modules/typescript/bin/tsc');
execFileSync(process.execPath, [tsc, '-p', project], { stdio: 'inherit' });
rmSync(project);
