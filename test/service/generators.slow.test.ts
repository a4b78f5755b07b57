/** What generators make of the OpenAPI document as it lies in the tree compiles, and calls the service. */
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { serviceFor } from '../service.ts';
import { GENERATORS, generates } from './generators.ts';

const IN_TREE = fileURLToPath(new URL('../../src/service/openapi.json', import.meta.url));

for (const [name, generator] of Object.entries(GENERATORS)) {
  test(`${name}: what it makes of the document compiles strictly, and calls the service`, async (t) =>
    generates(t, generator, IN_TREE, await serviceFor(t)));
}
