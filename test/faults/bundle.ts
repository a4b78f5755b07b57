import { join } from 'node:path';
import { build, type Plugin } from 'esbuild';
import { folder } from './folder.ts';

/** One file of plain JavaScript that starts in a moment. */
export async function bundle(entry: string, into: string, plugins: Plugin[] = []): Promise<string> {
  const outfile = join(into, 'bundle.mjs');
  const options = { bundle: true, platform: 'node', format: 'esm', logLevel: 'error', plugins } as const;
  await build({ entryPoints: [entry], outfile, ...options });
  return outfile;
}

/** Gives the driver as one file, in a folder of its own. */
export async function withDriver(work: (driver: string, dir: string) => Promise<void>): Promise<void> {
  const { dir, remove } = folder();
  await bundle(join(import.meta.dirname, 'driver.ts'), dir)
    .then((driver) => work(driver, dir))
    .finally(remove);
}
