/**
 * What generators make of the OpenAPI document as it lies in the tree compiles, and calls the service. They come from the
 * registry, so that the project need not install them.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { serviceFor } from '../service.ts';

const run = promisify(execFile);
const IN_TREE = fileURLToPath(new URL('../../src/service/openapi.json', import.meta.url));
const TYPESCRIPT = 'typescript@5.9.3';

interface Generator {
  packages: string[];
  /** Makes the folder or file `out` of DOCUMENT, a file. */
  words: string[];
  /** Four calls: an animal, a list, an order, and one that there is not. It prints what came of each. */
  calls: string;
}

const GENERATORS: Record<string, Generator> = {
  'hey-api, with zod': {
    packages: ['@hey-api/openapi-ts@0.99.0', 'zod@4.6.7'],
    words: 'openapi-ts -i DOCUMENT -o out -p @hey-api/client-fetch @hey-api/sdk @hey-api/typescript zod'.split(' '),
    calls: `
      import { client } from './out/client.gen';
      import { createOrder, createPet, getOrder, listPets } from './out/sdk.gen';
      import { zPetReply } from './out/zod.gen';
      client.setConfig({ auth: () => process.argv[2] ?? '', baseUrl: process.argv[3] ?? '' });
      const pet = await createPet({ body: { name: 'Rex', categoryId: 7 }, throwOnError: true });
      zPetReply.parse(pet.data);
      const pets = await listPets({ query: { limit: 5, status: 'available' }, throwOnError: true });
      const order = await createOrder({ body: { petId: pet.data.id }, throwOnError: true });
      const none = await getOrder({ path: { orderId: 999 } });
      console.log(JSON.stringify([pet.data.status, pets.data.length, order.data.status, none.error?.code]));`,
  },
  'hey-api, with bigint and a serializer that writes it as digits': {
    packages: ['@hey-api/openapi-ts@0.99.0'],
    words: 'openapi-ts -i DOCUMENT -o out -p @hey-api/client-fetch @hey-api/transformers @hey-api/typescript'
      .split(' ')
      .concat('@hey-api/sdk'),
    calls: `
      import { client } from './out/client.gen';
      import { createOrder, createPet, getOrder, listPets } from './out/sdk.gen';
      import { listPetsResponseTransformer } from './out/transformers.gen';
      client.setConfig({ auth: () => process.argv[2] ?? '', baseUrl: process.argv[3] ?? '' });
      const alone = await createPet({ body: { name: 'Rex', categoryId: 7n } });
      if (alone.error?.code !== 'invalid_body') throw new Error('what the document says of bigint is no longer so');
      const marked = (_: string, value: unknown) => (typeof value === 'bigint' ? 'int ' + value : value);
      const bodySerializer = (body: unknown) => JSON.stringify(body, marked).replace(/"int (-?\\d+)"/g, '$1');
      client.setConfig({ bodySerializer });
      const pet = await createPet({ body: { name: 'Rex', categoryId: 7n }, throwOnError: true });
      const pets = await listPets({ query: { limit: 5 }, responseTransformer: listPetsResponseTransformer, throwOnError: true });
      const petId: bigint | undefined = pets.data[0]?.id;
      const order = await createOrder({ body: { petId: petId ?? 0n }, throwOnError: true });
      const none = await getOrder({ path: { orderId: 999n } });
      console.log(JSON.stringify([pet.data.status, pets.data.length, order.data.status, none.error?.code]));`,
  },
  'openapi-typescript, with openapi-fetch': {
    packages: ['openapi-typescript@7.13.0', 'openapi-fetch@0.17.0'],
    words: ['openapi-typescript', 'DOCUMENT', '-o', 'out/types.ts'],
    calls: `
      import createClient from 'openapi-fetch';
      import type { paths } from './out/types';
      const client = createClient<paths>({ baseUrl: process.argv[3] ?? '', headers: { authorization: 'Bearer ' + process.argv[2] } });
      const pet = await client.POST('/pets', { body: { name: 'Rex', categoryId: 7 } });
      const pets = await client.GET('/pets', { params: { query: { limit: 5, status: 'available' } } });
      const order = await client.POST('/store/orders', { body: { petId: pet.data?.id ?? 0 } });
      const none = await client.GET('/store/orders/{orderId}', { params: { path: { orderId: 999 } } });
      console.log(JSON.stringify([pet.data?.status, pets.data?.length, order.data?.status, none.error?.code]));`,
  },
  'openapi-typescript-codegen': {
    packages: ['openapi-typescript-codegen@0.31.0'],
    words: 'openapi --input DOCUMENT --output out --client fetch'.split(' '),
    calls: `
      import { ApiError, OpenAPI, OrdersService, PetsService, PetStatus } from './out';
      OpenAPI.TOKEN = process.argv[2];
      OpenAPI.BASE = process.argv[3] ?? '';
      const pet = await PetsService.createPet({ name: 'Rex', categoryId: 7 });
      const pets = await PetsService.listPets(5, PetStatus.AVAILABLE);
      if (!('id' in pet) || !('length' in pets)) throw new Error('it takes a default reply for a success, which is none here');
      const order = await OrdersService.createOrder({ petId: pet.id });
      const none = await OrdersService.getOrder(999).catch((error: unknown) => error);
      const code = none instanceof ApiError ? none.body.code : undefined;
      console.log(JSON.stringify([pet.status, pets.length, order.status, code]));`,
  },
  oazapfts: {
    packages: ['oazapfts@7.5.0', '@oazapfts/runtime@1.2.0'],
    words: ['oazapfts', 'DOCUMENT', 'out/client.ts'],
    calls: `
      import { HttpError, ok } from '@oazapfts/runtime';
      import { createOrder, createPet, defaults, getOrder, listPets } from './out/client';
      defaults.baseUrl = process.argv[3] ?? '';
      defaults.headers = { authorization: 'Bearer ' + process.argv[2] };
      const pet = await ok(createPet({ name: 'Rex', categoryId: 7 }));
      const pets = await ok(listPets({ limit: 5, status: 'available' }));
      const order = await ok(createOrder({ petId: pet.id }));
      const none = await ok(getOrder(999)).catch((error: unknown) => error);
      const code = none instanceof HttpError ? none.data.code : undefined;
      console.log(JSON.stringify([pet.status, pets.length, order.status, code]));`,
  },
};

const STRICT = {
  ...{ strict: true, noUncheckedIndexedAccess: true, noEmit: true, skipLibCheck: true, target: 'es2022' },
  ...{ module: 'esnext', moduleResolution: 'bundler', lib: ['es2023', 'dom', 'dom.iterable'] },
};

/** Its four calls, as they print what came of them. */
const CAME = ['available', 1, 'placed', 'not_found'];

const home = mkdtempSync(join(tmpdir(), 'petstore-generators-'));
after(() => rmSync(home, { recursive: true }));

before(async () => {
  await writeFile(join(home, 'package.json'), '{"private":true,"type":"module"}');
  const packages = new Set(Object.values(GENERATORS).flatMap((one) => one.packages));
  // Some name each other's versions in ways that npm cannot solve in an hour.
  const install = ['install', '--no-audit', '--no-fund', '--ignore-scripts', '--legacy-peer-deps'];
  await run('npm', [...install, ...packages, '@types/node@20.19.43', TYPESCRIPT], { cwd: home });
});

for (const [index, [name, { words, calls }]] of Object.entries(GENERATORS).entries()) {
  test(`${name}: what it makes of the document compiles strictly, and calls the service`, async (t) => {
    const { url, key } = await serviceFor(t);
    const cwd = join(home, String(index));
    await mkdir(join(cwd, 'out'), { recursive: true });
    const npx = (...command: string[]) => run('npx', ['--no-install', ...command], { cwd });
    await writeFile(join(cwd, 'tsconfig.json'), JSON.stringify({ compilerOptions: STRICT, include: ['out', '*.ts'] }));
    await npx(...words.map((word) => (word === 'DOCUMENT' ? IN_TREE : word)));
    await writeFile(join(cwd, 'calls.ts'), calls);
    const { stdout } = await npx('tsc').catch((error) => error);
    assert.equal(stdout, '');
    assert.notEqual((await readdir(join(cwd, 'out'))).length, 0);
    const [outfile, entry] = [join(cwd, 'calls.mjs'), join(cwd, 'calls.ts')];
    await build({ entryPoints: [entry], outfile, bundle: true, platform: 'node', format: 'esm', logLevel: 'error' });
    const driven = await run(process.execPath, [outfile, key, `${url}/v1`], { cwd });
    assert.deepEqual(JSON.parse(driven.stdout), CAME);
  });
}
