/**
 * What of others is in the program: the licences as a text (THIRD-PARTY-NOTICES), and a bill of materials (CycloneDX).
 * Both follow from what the bundler took in, so that nothing can be forgotten, and hold no time and no path.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { packageVersion, ROOT } from './bundle.ts';

interface Component {
  name: string;
  version: string;
  licence: string;
  text: string;
  /** As npm's lock file tells it: `sha512-…` in base 64; for the runtime `sha256-…`. */
  integrity?: string;
}

/** `inputs`: files that the bundler read, from the root. */
export function componentsOf(inputs: Iterable<string>): Component[] {
  const { packages } = JSON.parse(readFileSync(`${ROOT}package-lock.json`, 'utf8'));
  // The innermost: a package may have others inside.
  const folders = new Set([...inputs].flatMap((file) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? []));
  return [...folders].sort().map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(`${ROOT}${folder}/package.json`, 'utf8'));
    const text = licenceIn(ROOT + folder);
    return { name, version, licence: license, text, integrity: packages[folder]?.integrity };
  });
}

/** A file of that name; or what its page says under that heading. */
function licenceIn(folder: string): string {
  const names = readdirSync(folder);
  const file = names.find((one) => /^licen[cs]e(\.|$)/i.test(one));
  if (file !== undefined) return readFileSync(`${folder}/${file}`, 'utf8');
  const page = names.find((one) => /^readme/i.test(one));
  const text = page && /^#+ *licen[cs]e.*\n([\s\S]+)/im.exec(readFileSync(`${folder}/${page}`, 'utf8'))?.[1];
  if (!text) throw new Error(`${folder} does not tell its licence`);
  return text;
}

export function runtimeComponent({
  version,
  licence,
  sha256,
}: Record<'version' | 'licence' | 'sha256', string>): Component {
  const integrity = `sha256-${Buffer.from(sha256, 'hex').toString('base64')}`;
  return { name: 'node', version, licence: 'MIT', text: readFileSync(licence, 'utf8'), integrity };
}

export const noticesOf = (components: readonly Component[]): string =>
  components
    .map(({ name, version, licence, text }) => `${name} ${version} (${licence})\n\n${text.trim()}\n`)
    .join(RULE);
const RULE = `\n${'-'.repeat(80)}\n\n`;

export function billOf(components: readonly Component[]): string {
  const own = { type: 'application', 'bom-ref': 'petstore', name: 'petstore', version: packageVersion() };
  const bill = {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { component: { ...own, licenses: [{ license: { id: 'MIT' } }] } },
    components: components.map(({ name, version, licence, integrity }) => ({
      type: name === 'node' ? 'platform' : 'library',
      'bom-ref': `${name}@${version}`,
      name,
      version,
      purl: name === 'node' ? `pkg:generic/node@${version}` : `pkg:npm/${name.replace('@', '%40')}@${version}`,
      licenses: [{ license: { id: licence } }],
      ...(integrity && { hashes: [hashOf(integrity)] }),
    })),
    dependencies: [{ ref: 'petstore', dependsOn: components.map(({ name, version }) => `${name}@${version}`) }],
  };
  return `${JSON.stringify(bill, null, 2)}\n`;
}

function hashOf(integrity: string): { alg: string; content: string } {
  const [, bits, base64] = /^sha(\d+)-(.*)$/.exec(integrity) ?? [];
  return { alg: `SHA-${bits}`, content: Buffer.from(base64, 'base64').toString('hex') };
}
