/** The OpenAPI document of a server with the lab. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asset } from '../../../src/assets.ts';
import { openapiDocument } from '../../../src/service/openapi.ts';
import { checkDocument, checkMethods } from '../../../test/service/document.ts';
import type { Part } from '../../../test/service/schema.ts';
import { program, serving, temporary } from '../../program.ts';

const SETTINGS = {
  version: '1.2.3',
  stagingBaseUrl: 'https://staging.pets.example/v1',
  environment: 'staging' as const,
};
const document = openapiDocument(SETTINGS, [asset('extras/lab/assets/openapi.json')]) as Part;

test('each reply may tell the clock of the key, all examples fit, and all paths begin at the root', () => {
  assert.ok(checkDocument(document, ['X-Lab-Clock']) > 40);
  assert.deepEqual(
    document.servers.map(({ url }: Part) => url),
    ['https://staging.pets.example'],
  );
});

test('a server with --lab has the methods that it names; without, its document says nothing of the lab', async (t) => {
  const { url } = await serving(t, ['--data', await temporary(t), '--lab', '--environment', 'staging']);
  await checkMethods(document, url);
  const served = (await (await fetch(new URL('/openapi.json', url))).json()) as Part;
  assert.ok('/lab/drill' in served.paths);
  assert.doesNotMatch((await program(['openapi'])).stdout, /\blab\b/i);
});
