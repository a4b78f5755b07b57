/**
 * That what the Dockerfile copies into the build of the image is enough for that build, on this machine for itself and
 * for another one. Docker itself is not tried.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, readFileSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { temporary } from './program.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const COMMIT = '0123456789ab';
/** Runs programs for Linux on arm64, with libraries of theirs; as Debian has both. */
const QEMU = 'qemu-aarch64-static';
const LIBRARIES = '/usr/aarch64-linux-gnu';
const canRunArm = existsSync(LIBRARIES) && !spawnSync(QEMU, ['--version']).error;

/** Builds with what the Dockerfile copies and nothing else. Resolves with what `before` and the binary say of its version. */
async function versionOfBuild(t: TestContext, words: string[], before: string[]) {
  const [build] = readFileSync(path.join(ROOT, 'Dockerfile'), 'utf8').split(/^FROM scratch$/m);
  const copied = [...build.matchAll(/^COPY (.+) (\S+)$/gm)];
  assert.ok(copied.length > 2);
  const dir = await temporary(t);
  for (const [, names, to] of copied) {
    for (const name of names.split(' ')) {
      cpSync(path.join(ROOT, name), path.join(dir, to.endsWith('/') ? path.join(to, name) : to), { recursive: true });
    }
  }
  symlinkSync(path.join(ROOT, 'node_modules'), path.join(dir, 'node_modules'));
  const options = { cwd: dir, encoding: 'utf8' as const, env: { ...process.env, COMMIT, QEMU_LD_PREFIX: LIBRARIES } };
  const built = spawnSync(process.execPath, ['--import', 'tsx', 'scripts/build.ts', ...words], options);
  assert.equal(built.status, 0, built.stderr);
  const binary = path.join(dir, /^(\S+): \d+ MB, for .*\n$/.exec(built.stdout)![1]);
  const [file, ...args] = [...before, binary, 'version', '--json'];
  const { stdout, stderr } = spawnSync(file, args, options);
  assert.ok(stdout, stderr);
  return JSON.parse(stdout);
}

test('the build in the image has all that it needs, and knows its commit', async (t) => {
  assert.equal((await versionOfBuild(t, [], [])).commit, COMMIT);
});

test('a binary for Linux on arm64, built here', {
  skip: !canRunArm && `${QEMU} with ${LIBRARIES} (libc6-, libstdc++6-, libatomic1-arm64-cross) is missing`,
}, async (t) => {
  const { commit, runtime } = await versionOfBuild(t, ['--target', 'linux-arm64'], [QEMU]);
  assert.deepEqual([commit, runtime.replace(/v[\d.]+/, 'v…')], [COMMIT, 'Node v…, linux arm64']);
});
