/** The typed client as the package has it: one module with its declarations. */
import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { build as esbuild } from 'esbuild';
import { packageVersion, ROOT } from '../../scripts/bundle.ts';

/** It needs nothing but `fetch`: one ES module serves Node (also by `require`), Deno, Bun and bundlers. */
export async function buildClient(target: string): Promise<void> {
  rmSync(target, { recursive: true, force: true });
  await esbuild({
    entryPoints: [path.join(ROOT, 'extras/client/client.ts')],
    outfile: path.join(target, 'client.js'),
    bundle: true,
    platform: 'neutral',
    target: 'es2022',
    format: 'esm',
    define: { PETSTORE_VERSION: JSON.stringify(packageVersion()) },
    logLevel: 'warning',
  });
  declareClient(target);
}

/** The declarations keep the tree of the source, since the client shares types with other rooms. */
function declareClient(dir: string): void {
  const project = path.join(dir, 'tsconfig.json');
  const settings = {
    extends: path.join(ROOT, 'tsconfig.json'),
    compilerOptions: {
      rootDir: ROOT,
      outDir: path.join(dir, 'types'),
      typeRoots: [path.join(ROOT, 'node_modules/@types')],
      noEmit: false,
      declaration: true,
      emitDeclarationOnly: true,
      rewriteRelativeImportExtensions: true,
    },
    files: [path.join(ROOT, 'extras/client/client.ts')],
    include: [],
  };
  writeFileSync(project, JSON.stringify(settings));
  const tsc = path.join(ROOT, 'node_modules/typescript/bin/tsc');
  execFileSync(process.execPath, [tsc, '-p', project], { stdio: 'inherit' });
  rmSync(project);
}
