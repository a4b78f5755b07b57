/**
 * That what the Dockerfile copies into the build of the image is enough for that build, on this machine for itself and
 * for another one; and that it builds what lies in dist/, byte for byte. Docker itself is not tried.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { temporary } from './program.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** Of which the four files in dist/ were built, if nothing has changed since then. */
const built = commitBuilt();
const COMMIT = built ?? '0123456789ab';
/** Runs programs for Linux on arm64, with libraries of theirs; as Debian has both. */
const QEMU = 'qemu-aarch64-static';
const LIBRARIES = '/usr/aarch64-linux-gnu';
const canRunArm = existsSync(LIBRARIES) && !spawnSync(QEMU, ['--version']).error;

function commitBuilt(): string | undefined {
  const binary = path.join(ROOT, 'dist/petstore');
  if (!existsSync(binary)) return undefined;
  const git = (...words: string[]) => execFileSync('git', words, { cwd: ROOT, encoding: 'utf8' }).trim();
  const { commit } = JSON.parse(execFileSync(binary, ['version', '--json'], { encoding: 'utf8' }));
  return commit === git('rev-parse', '--short=12', 'HEAD') && git('status', '--porcelain') === '' ? commit : undefined;
}

/**
 * Builds with what the Dockerfile copies and nothing else. Resolves with the place, and what `before` and the binary say of
 * its version.
 */
async function build(t: TestContext, words: string[], before: string[]) {
  const [build] = readFileSync(path.join(ROOT, 'Dockerfile'), 'utf8').split(/^FROM scratch$/m);
  const copied = [...build.matchAll(/^COPY (.+) (\S+)$/gm)];
  assert.ok(copied.length > 2);
  const dir = await temporary(t);
  for (const [, names, to] of copied) {
    for (const name of names.split(' ')) {
      cpSync(path.join(ROOT, name), path.join(dir, to.endsWith('/') ? path.join(to, name) : to), { recursive: true });
    }
  }
  // No link: what is built must not tell where it was built.
  execFileSync('cp', ['-r', path.join(ROOT, 'node_modules'), dir]);
  const options = { cwd: dir, encoding: 'utf8' as const, env: { ...process.env, COMMIT, QEMU_LD_PREFIX: LIBRARIES } };
  const ran = spawnSync(process.execPath, ['--import', 'tsx', 'scripts/build.ts', ...words], options);
  assert.equal(ran.status, 0, ran.stderr);
  const binary = path.join(dir, /^(\S+): \d+ MB, for .*\n$/.exec(ran.stdout)![1]);
  const [file, ...args] = [...before, binary, 'version', '--json'];
  const { stdout, stderr } = spawnSync(file, args, options);
  assert.ok(stdout, stderr);
  return { dir, ...JSON.parse(stdout) };
}

test('the build in the image has all that it needs, and knows its commit', async (t) => {
  const { dir, commit } = await build(t, [], []);
  assert.equal(commit, COMMIT);
  const skip = built === undefined && 'dist/ is missing, or was not built from what lies here';
  await t.test('and makes what is in dist/, byte for byte', { skip }, () => {
    for (const name of ['petstore', 'petstore.cjs', 'THIRD-PARTY-NOTICES', 'petstore.cdx.json']) {
      const [here, there] = [ROOT, dir].map((root) => readFileSync(path.join(root, 'dist', name)));
      assert.ok(here.equals(there), `${name} is another`);
    }
  });
});

test('a binary for Linux on arm64, built here', {
  skip: !canRunArm && `${QEMU} with ${LIBRARIES} (libc6-, libstdc++6-, libatomic1-arm64-cross) is missing`,
}, async (t) => {
  const { commit, runtime } = await build(t, ['--target', 'linux-arm64'], [QEMU]);
  assert.deepEqual([commit, runtime.replace(/v[\d.]+/, 'v…')], [COMMIT, 'Node v…, linux arm64']);
});
