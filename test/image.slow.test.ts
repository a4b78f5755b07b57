/** That what the Dockerfile copies into the build of the image is enough for that build. Docker itself is not tried. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, readFileSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { temporary } from './program.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const COMMIT = '0123456789ab';

test('the build in the image has all that it needs, and knows its commit', async (t) => {
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
  const options = { cwd: dir, encoding: 'utf8' as const, env: { ...process.env, COMMIT } };
  const built = spawnSync(process.execPath, ['--import', 'tsx', 'scripts/build.ts'], options);
  assert.equal(built.status, 0, built.stderr);
  const { stdout } = spawnSync(path.join(dir, 'dist/petstore'), ['version', '--json'], options);
  assert.equal(JSON.parse(stdout).commit, COMMIT);
});
