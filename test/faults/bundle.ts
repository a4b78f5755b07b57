import { build } from 'esbuild';

/** One file of plain JavaScript that starts in a moment. Gives it back. */
export async function bundle(entry: string, outfile: string): Promise<string> {
  const options = { bundle: true, platform: 'node', format: 'esm', logLevel: 'error' } as const;
  await build({ entryPoints: [entry], outfile, ...options });
  return outfile;
}
