/** A linter of OpenAPI documents, which comes from the registry so that the project need not install it. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const LINTER = '@redocly/cli@2.77.0';

/** It finds nothing in a file. */
export async function assertClean(cwd: string, file: string): Promise<void> {
  const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' };
  const words = ['--yes', LINTER, 'lint', '--extends', 'recommended', '--format', 'json', file];
  const { stdout } = await promisify(execFile)('npx', words, { cwd, env }).catch((error) => error);
  const { totals, problems } = JSON.parse(stdout.slice(stdout.indexOf('{')));
  assert.deepEqual({ ...totals, problems }, { errors: 0, warnings: 0, ignored: 0, problems: [] });
}
