/** The OpenAPI document in the hands of a linter, which comes from the registry so that the project need not install it. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { temporary } from '../../extras/program.ts';
import { asset } from '../../src/assets.ts';
import { openapiDocument } from '../../src/web/openapi.ts';

const LINTER = '@redocly/cli@2.77.0';

const LAB = asset('src/lab/openapi.json');
const URLS = { baseUrl: 'https://pets.test/v1', stagingBaseUrl: 'https://staging.pets.test/v1' };

for (const lab of [false, true]) {
  test(`the linter finds nothing in the OpenAPI document ${lab ? 'with' : 'without'} the lab`, async (t) => {
    const cwd = await temporary(t);
    const document = openapiDocument({ ...URLS, environment: lab ? 'staging' : 'production' }, lab ? [LAB] : []);
    await writeFile(join(cwd, 'openapi.json'), JSON.stringify(document, null, 2));
    const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' };
    const words = ['--yes', LINTER, 'lint', '--extends', 'recommended', '--format', 'json', 'openapi.json'];
    const { stdout } = await promisify(execFile)('npx', words, { cwd, env }).catch((error) => error);
    const { totals, problems } = JSON.parse(stdout.slice(stdout.indexOf('{')));
    assert.deepEqual({ ...totals, problems }, { errors: 0, warnings: 0, ignored: 0, problems: [] });
  });
}
