/**
 * For a Node that does not read TypeScript: `--import` it. Each file is made JavaScript once for all processes of a run of
 * the tests, which start in half of the time that tsx takes.
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { register } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { isMainThread } from 'node:worker_threads';

if (isMainThread) register(import.meta.url); // Node calls `load` in a thread of its own

export async function load(url, context, next) {
  if (!url.endsWith('.ts')) return next(url, context);
  const file = fileURLToPath(url);
  const made = path.join(process.env.TEST_BUNDLES, `${file.replaceAll(path.sep, '-')}.mjs`);
  if (!existsSync(made)) {
    const { transform } = await import('esbuild');
    const options = { loader: 'ts', sourcefile: file, sourcemap: 'inline' };
    const { code } = await transform(readFileSync(file, 'utf8'), options);
    writeFileSync(`${made}.${process.pid}`, code);
    renameSync(`${made}.${process.pid}`, made);
  }
  return { format: 'module', source: readFileSync(made), shortCircuit: true };
}
