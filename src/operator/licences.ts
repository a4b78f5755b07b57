/** `petstore licences`: the licences of bundled packages. */
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import path from 'node:path';
import { getAsset, isSea } from 'node:sea';
import { command } from './command.ts';
import { flag } from './options.ts';
import { print } from './output.ts';

/** Made by the build: within the binary, and beside the bundled program. */
const LICENCES_FILE = 'THIRD-PARTY-NOTICES';
const BILL_FILE = 'petstore.cdx.json';

export const LICENCES = command({
  name: 'licences',
  does: 'print the licences of the bundled packages',
  options: { json: flag('print the bill of materials (CycloneDX), for programs') },
  run: ({ json }) => {
    const file = json ? BILL_FILE : LICENCES_FILE;
    return print((isSea() ? getAsset(file, 'utf8') : beside(process.argv[1], file)).trimEnd());
  },
});

function beside(script: string, name: string): string {
  const folder = path.dirname(realpathSync(script));
  const file = [folder, path.join(folder, '../dist')].map((one) => path.join(one, name)).find(existsSync);
  if (file !== undefined) return readFileSync(file, 'utf8');
  throw new Error('nothing is bundled here: packages are in node_modules, and npm run build collects their licences');
}
