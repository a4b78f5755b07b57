/**
 * The OpenAPI document in the hands of others: a linter, and a client whose types are generated from it. Both come
 * from the registry at the versions named here, so that the project need not install them.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { openapiDocument } from '../../src/web/openapi.ts';
import { type Live, startLive } from './server.ts';

const LINTER = '@redocly/cli@2.77.0';
const GENERATOR = 'openapi-typescript@7.13.0';
const FETCHER = 'openapi-fetch@0.17.0';
/** npm alone may take a minute. */
const TEST_MAX_MS = 600_000;

const MODULES = fileURLToPath(new URL('../../node_modules/', import.meta.url));

/** Right uses compile and work; wrong ones, each of which TypeScript must find, are told by `@ts-expect-error`. */
const CLIENT = `
import assert from 'node:assert/strict';
import createClient from 'openapi-fetch';
import type { components, paths } from './api.ts';

const [baseUrl, key] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl, headers: { Authorization: 'Bearer ' + key } });

const pet: components['schemas']['Pet'] | undefined =
  (await client.POST('/pets', { body: { name: 'Typed', categoryId: 3 } })).data;
const list = await client.GET('/pets', { params: { query: { limit: 5, status: 'available' } } });
assert.deepEqual(list.data?.map(({ name }) => name), ['Typed']);
const order = await client.POST('/store/orders', { body: { petId: pet!.id } });
const path = { orderId: order.data!.id };
const done = await client.PATCH('/store/orders/{orderId}', { params: { path }, body: { status: 'delivered' } });
assert.equal(done.data?.status, 'delivered');
const missing = await client.GET('/pets/{petId}', { params: { path: { petId: 4711 } } });
assert.equal(missing.error?.code, 'not_found');

export const wrong = () => [
  // @ts-expect-error the name is missing
  client.POST('/pets', { body: { categoryId: 3 } }),
  // @ts-expect-error no such status
  client.GET('/pets', { params: { query: { status: 'lost' } } }),
  // @ts-expect-error no such code
  missing.error?.code === 'lost',
];
console.log('done');
`;

const TSCONFIG = {
  compilerOptions: {
    target: 'es2023',
    lib: ['es2023', 'dom'],
    module: 'nodenext',
    types: ['node'],
    typeRoots: [join(MODULES, '@types')],
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    allowImportingTsExtensions: true,
  },
  files: ['client.ts'],
};

describe('the OpenAPI document in the hands of others', { timeout: TEST_MAX_MS }, () => {
  let dir: string;
  let live: Live;
  const run = async (command: string, ...args: string[]) => {
    const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' };
    const ran = promisify(execFile)(command, args, { cwd: dir, env });
    return ran.catch((error) => assert.fail(`${command} ${args.join(' ')}\n${error.stdout}\n${error.stderr}`));
  };

  before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'petstore-document-'));
    live = await startLive();
    const urls = { baseUrl: `${live.origin}/v1`, stagingBaseUrl: 'https://staging.pets.test/v1' };
    await writeFile(join(dir, 'openapi.json'), JSON.stringify(openapiDocument(urls), null, 2));
    await writeFile(join(dir, 'package.json'), '{"private":true,"type":"module"}');
    await writeFile(join(dir, 'tsconfig.json'), JSON.stringify(TSCONFIG));
    await writeFile(join(dir, 'client.ts'), CLIENT);
  });
  after(async () => {
    await live?.stop();
    await rm(dir, { recursive: true });
  });

  it('has nothing that the linter finds', async () => {
    const words = ['lint', '--extends', 'recommended', '--format', 'json', 'openapi.json'];
    const { stdout } = await run('npx', '--yes', LINTER, ...words);
    const { totals, problems } = JSON.parse(stdout.slice(stdout.indexOf('{')));
    assert.deepEqual({ ...totals, problems }, { errors: 0, warnings: 0, ignored: 0, problems: [] });
  });

  it('makes a typed client that works', async () => {
    await run('npx', '--yes', GENERATOR, 'openapi.json', '-o', 'api.ts');
    await run('npm', 'install', '--no-save', '--no-package-lock', '--ignore-scripts', FETCHER);
    for (const name of ['typescript', '@types']) await symlink(join(MODULES, name), join(dir, 'node_modules', name));
    await run(process.execPath, join(MODULES, 'typescript/bin/tsc'), '-p', 'tsconfig.json');
    const tsx = new URL('../../node_modules/tsx/dist/loader.mjs', import.meta.url).href;
    const { stdout } = await run(process.execPath, '--import', tsx, 'client.ts', `${live.origin}/v1`, live.key);
    assert.equal(stdout, 'done\n');
  });
});
