import { build, type Plugin } from 'esbuild';

/** One file of plain JavaScript that starts in a moment. Gives it back. */
export async function bundle(entry: string, outfile: string, plugins: Plugin[] = []): Promise<string> {
  const options = { bundle: true, platform: 'node', format: 'esm', logLevel: 'error', plugins } as const;
  await build({ entryPoints: [entry], outfile, ...options });
  return outfile;
}
