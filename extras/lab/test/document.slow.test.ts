/** The lab's part of the OpenAPI document in the hands of a linter, and the whole in those of generators. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { asset } from '../../../src/assets.ts';
import { openapiDocument } from '../../../src/service/openapi.ts';
import { GENERATORS, generates } from '../../../test/service/generators.ts';
import { assertClean } from '../../../test/service/linter.ts';
import { temporary } from '../../program.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const PART = 'extras/lab/assets/openapi.json';
const SETTINGS = { version: '1.0.0', stagingBaseUrl: 'https://staging.pets.test/v1', environment: 'staging' as const };
const WHOLE = JSON.stringify(openapiDocument(SETTINGS, [asset(PART)]));

test('the linter finds nothing in the part as it lies in the tree', () => assertClean(ROOT, PART));

test('nor in the document that a server with the lab has', async (t) => {
  const cwd = await temporary(t);
  await writeFile(join(cwd, 'openapi.json'), WHOLE);
  await assertClean(cwd, 'openapi.json');
});

for (const [name, generator] of Object.entries(GENERATORS)) {
  test(`${name}: what it makes of the document with the lab compiles strictly`, async (t) => {
    const file = join(await temporary(t), 'openapi.json');
    await writeFile(file, WHOLE);
    await generates(t, generator, file);
  });
}
