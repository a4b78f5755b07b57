/** The typed client as the package has it: two bundles with their declarations. */
import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { build as esbuild } from 'esbuild';
import { packageVersion, ROOT } from './bundle.ts';

/** It needs nothing but `fetch`, so one bundle serves Node, Deno, Bun and bundlers, and a second one `require`. */
export async function buildClient(target: string): Promise<void> {
  rmSync(target, { recursive: true, force: true });
  for (const format of ['esm', 'cjs'] as const) {
    const dir = path.join(target, format);
    await esbuild({
      entryPoints: [path.join(ROOT, 'src/client/client.ts')],
      outfile: path.join(dir, 'client.js'),
      bundle: true,
      platform: 'neutral',
      target: 'es2022',
      format,
      define: { PETSTORE_VERSION: JSON.stringify(packageVersion()) },
      logLevel: 'warning',
    });
    declareClient(dir);
    const type = format === 'esm' ? 'module' : 'commonjs';
    writeFileSync(path.join(dir, 'package.json'), `${JSON.stringify({ type })}\n`);
  }
}

/** The declarations keep the tree of `src/`, since the client shares types with other rooms. */
function declareClient(dir: string): void {
  const project = path.join(dir, 'tsconfig.json');
  const settings = {
    extends: path.join(ROOT, 'tsconfig.json'),
    compilerOptions: {
      rootDir: path.join(ROOT, 'src'),
      outDir: path.join(dir, 'types'),
      typeRoots: [path.join(ROOT, 'node_modules/@types')],
      noEmit: false,
      declaration: true,
      emitDeclarationOnly: true,
      rewriteRelativeImportExtensions: true,
    },
    files: [path.join(ROOT, 'src/client/client.ts')],
    include: [],
  };
  writeFileSync(project, JSON.stringify(settings));
  execFileSync(process.execPath, [path.join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', project], {
    stdio: 'inherit',
  });
  rmSync(project);
}
