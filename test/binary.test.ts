/**
 * The single file: nothing beside it, nothing in the environment, another user, no Node on the machine's path. And the
 * container as far as a machine without Docker can try it: what scripts/image.sh lays out is run by chroot, as the
 * Dockerfile says: its user, its environment, its command. That Docker builds it is not tried here.
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { variableOf } from '../src/operator/options.ts';
import { SERVE } from '../src/operator/serve.ts';
import { freePort, program, serving, temporary } from './program.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const BUILT = path.join(ROOT, 'dist/petstore');
const NOBODY = 65_534;
const START_MAX_MS = 120_000;
const read = (name: string) => fs.readFileSync(path.join(ROOT, name), 'utf8');
const isRoot = process.getuid?.() === 0;
const skip = !fs.existsSync(BUILT) && 'there is no dist/petstore; npm run build makes it';

test('the binary serves, compacts, backs up and shows the console, with nothing but itself', { skip }, async (t) => {
  const home = await temporary(t);
  fs.chmodSync(home, 0o755);
  const cwd = path.join(home, 'alone');
  fs.mkdirSync(cwd);
  process.env.TEST_PROGRAM = path.join(home, 'petstore');
  fs.copyFileSync(BUILT, process.env.TEST_PROGRAM);
  // Whoever runs the test as root runs the program as nobody.
  const asNobody = isRoot ? ['setpriv', `--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups'] : [];
  if (isRoot) fs.chownSync(cwd, NOBODY, NOBODY);
  const options = { cwd, before: ['env', '-i', ...asNobody] };
  const run = (line: string) => program(line.split(' '), options);

  const { version, commit, runtime } = JSON.parse((await run('version --json')).stdout);
  assert.match(version, /^\d+\.\d+\.\d+$/);
  assert.match(commit, /^(?:[0-9a-f]{12}( with changes)?|unknown)$/, 'the commit it was built from');
  assert.match(runtime, /^Node v26\./, 'the Node it carries');

  const server = await serving(t, ['--first-key', 'pro'], options);
  const headers = { authorization: `Bearer ${server.key}`, 'content-type': 'application/json' };
  const body = '{"name":"Rex","categoryId":1}';
  assert.equal((await fetch(`${server.url}/pets`, { method: 'POST', headers, body })).status, 201);
  if (fs.existsSync(path.join(ROOT, 'extras/console'))) {
    const page = await (await fetch(new URL('/', server.url))).text();
    assert.match(page, /<script[^>]*>[\s\S]{1000,}<\/script>/, 'the console is whole: its script is in it');
  }
  assert.equal((await fetch(new URL('/openapi.json', server.url))).status, 200);

  assert.match((await run('keys create --plan free')).stdout, /\nps_live_[0-9A-Za-z]{36}\n$/);
  assert.equal((await run('serve --port 0')).exit, 4);
  const compacted = await run('compact');
  assert.equal(compacted.exit, 0, compacted.stderr);
  assert.equal((await run('backup b')).exit, 0);
  assert.equal((await server.stop()).exit, 0);
  assert.match((await run('restore b --data other')).stdout, /^pets +1$/m);
  const exported = '{"id":1,"name":"Rex","categoryId":1,"status":"available"}\n';
  assert.equal((await run('export --data other')).stdout, exported);
});

test('nobody gets into the binary by its environment or its arguments', { skip }, async (t) => {
  const cwd = await temporary(t);
  const evil = path.join(cwd, 'evil.cjs');
  fs.writeFileSync(evil, `require('node:fs').writeFileSync(${JSON.stringify(path.join(cwd, 'ran'))}, '')`);
  const options = { env: { NODE_OPTIONS: `--require ${evil} --inspect=0` }, cwd };
  for (const words of [['version'], ['--require', evil, 'version'], [`--node-options=--require ${evil}`, 'version']]) {
    const { status, stdout, stderr } = spawnSync(BUILT, words, { ...options, encoding: 'utf8' });
    assert.equal(status, words.length === 1 ? 0 : 2, stdout + stderr);
    assert.doesNotMatch(stderr, /[Dd]ebugger/);
    assert.ok(!fs.existsSync(path.join(cwd, 'ran')), words.join(' '));
  }
});

test('the licences of all that is bundled are in the notices of the package and in the bill of materials', {
  skip,
}, () => {
  const notices = read('dist/THIRD-PARTY-NOTICES');
  const bill = JSON.parse(read('dist/petstore.cdx.json'));
  const names = bill.components.map(({ name }: { name: string }) => name);
  for (const name of ['valibot', 'pg', 'node']) assert.ok(names.includes(name), name);
  for (const { name, version, hashes } of bill.components) {
    assert.ok(notices.includes(`${name} ${version} (`), name);
    assert.match(
      JSON.stringify(hashes),
      /^\[\{"alg":"SHA-(?:256|512)","content":"(?:[0-9a-f]{64}|[0-9a-f]{128})"\}\]$/,
      name,
    );
  }
  assert.doesNotMatch(JSON.stringify(bill), /timestamp|serialNumber/, 'two builds say the same');
});

test('the drill of docs/operating.md, with the binary', { skip }, () => {
  const drill = fileURLToPath(new URL('operator/data.test.ts', import.meta.url));
  const words = process.execArgv.filter((word) => !word.startsWith('--test'));
  const env = { ...process.env, TEST_PROGRAM: BUILT, NODE_TEST_CONTEXT: undefined };
  const args = [...words, '--test', '--test-reporter=tap', '--test-name-pattern=^the drill', drill];
  const { status, stdout } = spawnSync(process.execPath, args, { env, encoding: 'utf8' });
  assert.equal(status, 0, stdout);
  assert.match(stdout, /^ok 1 - the drill/m);
});

/** The last stage of the Dockerfile, by instruction. */
const [, stage] = read('Dockerfile').split(/^FROM scratch$/m);
const instruction = (name: string): string => new RegExp(`^${name} (.*)$`, 'm').exec(stage)?.[1] ?? '';
const words = (name: string): string[] => JSON.parse(instruction(name).replace(/^.*?(?=\[)/, ''));
const env = Object.fromEntries(new URLSearchParams(instruction('ENV').replaceAll(' ', '&')));

test('Dockerfile and compose.yaml set variables that are options of serve; the proxy takes what docs/ has for it', () => {
  const compose = read('compose.yaml');
  const known = Object.keys(SERVE).map(variableOf);
  const set = (stage + compose).match(/\bPETSTORE_[A-Z_]+\b/g) ?? [];
  assert.ok(set.length >= 4);
  for (const name of set) assert.ok(known.includes(name), name);
  const [, from] = /sed 's\/([\d.:]+)\/petstore:8080\/'/.exec(compose) ?? [];
  assert.ok(from !== undefined && read('docs/Caddyfile').includes(`reverse_proxy ${from} {`));
});

test('the image: an unprivileged user, and nothing to write to but the volume', {
  skip: skip || (!isRoot && 'only root may chroot'),
}, async (t) => {
  const image = await temporary(t);
  const laid = spawnSync(path.join(ROOT, 'scripts/image.sh'), [BUILT, image], { encoding: 'utf8' });
  assert.deepEqual([laid.status, laid.stderr], [0, '']);
  // Of Debian's packages: where none brought them, nothing tells their licences.
  const isDebian = !spawnSync('dpkg', ['--version']).error;
  const licences = fs.readdirSync(path.join(image, 'usr/share/doc'));
  for (const name of isDebian ? ['petstore', 'libc6', 'util-linux'] : ['petstore']) {
    assert.ok(licences.includes(name), `the licence of ${name} is in the image`);
  }
  fs.chmodSync(image, 0o755);
  fs.mkdirSync(path.join(image, 'dev')); // a container has it; a plain file does here
  fs.writeFileSync(path.join(image, 'dev/null'), '');
  fs.chmodSync(path.join(image, 'dev/null'), 0o666);
  const [user, group] = instruction('USER').split(':').map(Number);
  assert.ok(user > 0 && group > 0);
  fs.chownSync(path.join(image, instruction('VOLUME')), user, group);

  // By its own path: PATH is that of the image.
  const chroot = spawnSync('sh', ['-c', 'command -v chroot'], { encoding: 'utf8' }).stdout.trim();
  const inside = [`--userspec=${user}:${group}`, image];
  const run = (...command: string[]) =>
    spawnSync(chroot, [...inside, ...command], { env, encoding: 'utf8', timeout: START_MAX_MS });
  const port = await freePort();
  Object.assign(env, { PETSTORE_PORT: String(port) });
  const isReady = () => fetch(`http://127.0.0.1:${port}/readyz`).then(({ ok }) => ok, () => false); // biome-ignore format: one call
  const serving = spawn(chroot, [...inside, ...words('ENTRYPOINT'), ...words('CMD')], { env });
  t.after(() => serving.kill('SIGKILL'));
  let stderr = '';
  serving.stderr.on('data', (chunk) => (stderr += chunk));
  for (let ms = 0; !(await isReady()); ms += 100) {
    assert.ok(serving.exitCode === null && ms < START_MAX_MS, stderr);
    await wait(100);
  }
  assert.equal(run(...words('HEALTHCHECK')).status, 0, 'what the image says of its health');
  const made = run(...words('ENTRYPOINT'), 'keys', 'create', '--plan', 'free');
  assert.match(made.stdout, /^ps_live_\w+$/m, made.stderr);
  const second = run(...words('ENTRYPOINT'), ...words('CMD'), '--port', '0');
  assert.deepEqual([second.status, /in use/.test(second.stderr)], [4, true], second.stderr);
  assert.doesNotMatch(stderr, /flock does not work/, 'flock is there');
  serving.kill('SIGTERM');
  const [exit] = await once(serving, 'exit');
  assert.equal(exit, 0, stderr);
  assert.equal(run(...words('HEALTHCHECK')).status, 1);
});
