/** The OpenAPI document in the hands of a linter, which comes from the registry so that the project need not install it. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { asset } from '../../src/assets.ts';
import { openapiDocument } from '../../src/service/openapi.ts';
import { temporary } from '../program.ts';

const LINTER = '@redocly/cli@2.77.0';
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SERVICE = 'src/service/openapi.json';
const LAB = 'extras/lab/assets/openapi.json';

const SETTINGS = { version: '1.0.0', baseUrl: 'https://pets.test/v1', stagingBaseUrl: 'https://staging.pets.test/v1' };

async function assertClean(cwd: string, file: string): Promise<void> {
  const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' };
  const words = ['--yes', LINTER, 'lint', '--extends', 'recommended', '--format', 'json', file];
  const { stdout } = await promisify(execFile)('npx', words, { cwd, env }).catch((error) => error);
  const { totals, problems } = JSON.parse(stdout.slice(stdout.indexOf('{')));
  assert.deepEqual({ ...totals, problems }, { errors: 0, warnings: 0, ignored: 0, problems: [] });
}

for (const file of [SERVICE, LAB]) {
  test(`the linter finds nothing in ${file} as it lies in the tree`, () => assertClean(ROOT, file));
}

for (const parts of [[], [asset(LAB)]]) {
  test(`the linter finds nothing in the document that is served ${parts.length ? 'with' : 'without'} the lab`, async (t) => {
    const cwd = await temporary(t);
    const environment = parts.length ? 'staging' : 'production';
    await writeFile(join(cwd, 'openapi.json'), JSON.stringify(openapiDocument({ ...SETTINGS, environment }, parts)));
    await assertClean(cwd, 'openapi.json');
  });
}
