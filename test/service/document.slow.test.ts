/** The OpenAPI document in the hands of a linter, which comes from the registry so that the project need not install it. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { openapiDocument } from '../../src/service/openapi.ts';
import { temporary } from '../program.ts';

const LINTER = '@redocly/cli@2.77.0';
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SETTINGS = { version: '1.0.0', baseUrl: 'https://pets.test/v1', stagingBaseUrl: 'https://staging.pets.test/v1' };

/** It finds nothing in a file. */
async function assertClean(cwd: string, file: string): Promise<void> {
  const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' };
  const words = ['--yes', LINTER, 'lint', '--extends', 'recommended', '--format', 'json', file];
  const { stdout } = await promisify(execFile)('npx', words, { cwd, env }).catch((error) => error);
  const { totals, problems } = JSON.parse(stdout.slice(stdout.indexOf('{')));
  assert.deepEqual({ ...totals, problems }, { errors: 0, warnings: 0, ignored: 0, problems: [] });
}

test('the linter finds nothing in the document as it lies in the tree', () =>
  assertClean(ROOT, 'src/service/openapi.json'));

test('nor in the document that is served', async (t) => {
  const cwd = await temporary(t);
  await writeFile(join(cwd, 'openapi.json'), JSON.stringify(openapiDocument(SETTINGS)));
  await assertClean(cwd, 'openapi.json');
});
