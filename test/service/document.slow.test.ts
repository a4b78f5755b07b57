/** The OpenAPI document in the hands of a linter. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { openapiDocument } from '../../src/service/openapi.ts';
import { temporary } from '../program.ts';
import { assertClean } from './linter.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SETTINGS = { version: '1.0.0', baseUrl: 'https://pets.test/v1', stagingBaseUrl: 'https://staging.pets.test/v1' };

test('the linter finds nothing in the document as it lies in the tree', () =>
  assertClean(ROOT, 'src/service/openapi.json'));

test('nor in the document that is served', async (t) => {
  const cwd = await temporary(t);
  await writeFile(join(cwd, 'openapi.json'), JSON.stringify(openapiDocument(SETTINGS)));
  await assertClean(cwd, 'openapi.json');
});
