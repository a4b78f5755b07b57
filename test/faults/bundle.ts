import { join } from 'node:path';
import { build } from 'esbuild';

/** One file of plain JavaScript that starts in a moment. */
export async function bundle(entry: string, into: string): Promise<string> {
  const outfile = join(into, 'bundle.mjs');
  await build({ entryPoints: [entry], outfile, bundle: true, platform: 'node', format: 'esm', logLevel: 'error' });
  return outfile;
}

export function driverSource(): string {
  return join(import.meta.dirname, 'driver.ts');
}
