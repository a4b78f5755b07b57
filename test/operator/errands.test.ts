/** Errands that change something, under faults: none leaves one guessing what was done. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { chmod, cp, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { realDisk } from '../../src/store/file/disk.ts';
import { backup, readStore } from '../../src/store/file/tools.ts';
import type { ApiKey } from '../../src/store/model.ts';
import { command, injected, program, serving, temporary, whyNoStrace } from '../program.ts';

const skip = whyNoStrace() ?? false;
const TEST_MAX_MS = 900_000;
const ANIMALS = 1_200;

interface Found {
  keys: ApiKey[];
  pets: number;
}

/** As it lies on the disk, checked as `verify` does. */
async function look(cwd: string): Promise<Found> {
  const { state } = await readStore(path.join(cwd, 'data'));
  return { keys: [...state.keys.values()], pets: state.counts().pets };
}

/** `told`: what it prints where it was done; `isDone`: seen by others. */
const ERRANDS: [line: string, told: RegExp, isDone: (after: Found) => boolean][] = [
  ['keys create --plan free', /ps_live_\w{36}/, ({ keys }) => keys.length === 2],
  ['keys rotate k1', /ps_live_\w{36}/, ({ keys }) => keys[0].secrets.length === 2],
  ['keys revoke k1', /./, ({ keys }) => keys[0].revokedAt !== undefined],
  ['keys plan k1 pro', /./, ({ keys }) => keys[0].plan === 'pro'],
  ['import in', /./, ({ pets }) => pets === ANIMALS],
  ['compact', /./, () => true],
];

test('the disk fails at each sync: exit 1 and a sentence; what is told as done is done; the errand can be repeated', {
  skip,
  timeout: TEST_MAX_MS,
}, async (t) => {
  const root = await temporary(t);
  const base = path.join(root, 'base');
  await mkdir(base);
  await program(['keys', 'create', '--plan', 'free'], { cwd: base });
  await writeFile(path.join(base, 'in'), '{"name":"Rex","categoryId":1}\n'.repeat(ANIMALS));
  let cases = 0;
  for (const [line, told, isDone] of ERRANDS) {
    for (const call of line === 'compact' ? ['fdatasync', 'fsync'] : ['fdatasync']) {
      for (let n = 1; ; n++) {
        const cwd = path.join(root, `${line}-${call}-${n}`);
        await cp(base, cwd, { recursive: true });
        const ran = await injected(`${call}:error=EIO:when=${n}`, line.split(' '), { cwd });
        const at = `${line}, ${call} ${n}: ${ran.stdout}${ran.stderr}`;
        assert.ok(ran.exit === 0 || (ran.wasHit && ran.exit === 1 && /\S.*\n$/.test(ran.stderr)), at);
        if (!ran.wasHit) break;
        cases++;
        assert.doesNotMatch(ran.stderr, /\n {4}at /, at);
        const after = await look(cwd);
        if (told.test(ran.stdout)) assert.ok(isDone(after), `told as done, and is not: ${at}`);
        else assert.match(ran.stderr, /unknown|nothing was changed|not be|i\/o error/, at);
        if (after.keys[0].revokedAt !== undefined) continue; // that is said when it is repeated
        const again = await program(line.split(' '), { cwd });
        assert.equal(again.exit, 0, again.stderr);
        if (line === 'import in') assert.ok(isDone(await look(cwd)), `nothing twice: ${at}`);
      }
    }
  }
  t.diagnostic(`${cases} failed syncs`);
  assert.ok(cases > 12, String(cases));
});

test('an import that is killed at any write or sync is completed by the same command, and nothing is there twice', {
  skip,
  timeout: TEST_MAX_MS,
}, async (t) => {
  const root = await temporary(t);
  let cases = 0;
  for (const call of ['pwrite64', 'fdatasync', 'rename']) {
    for (let n = 1; ; n++) {
      const cwd = path.join(root, `${call}-${n}`);
      await mkdir(cwd);
      await writeFile(path.join(cwd, 'in'), '{"name":"Rex","categoryId":1}\n'.repeat(ANIMALS));
      const ran = await injected(`${call}:signal=SIGKILL:when=${n}`, ['import', 'in'], { cwd });
      if (!ran.wasHit) break;
      cases++;
      const again = await program(['import', 'in', '--json'], { cwd });
      assert.equal(again.exit, 0, again.stderr);
      const { added, already } = JSON.parse(again.stdout);
      assert.equal(added + already, ANIMALS);
      assert.equal((await look(cwd)).pets, ANIMALS, `${call} ${n}`);
    }
  }
  t.diagnostic(`${cases} kills`);
  assert.ok(cases > 8, String(cases));
});

test('a server that is killed under a command: the command says so, and what to do', { skip }, async (t) => {
  const cwd = await temporary(t);
  const server = await serving(t, [], { cwd });
  server.process.kill('SIGSTOP');
  const asked = program(['keys', 'create', '--plan', 'free'], { cwd });
  const socket = path.join(cwd, 'data/admin.sock');
  while ((await readFile('/proc/net/unix', 'latin1')).split(socket).length <= 2) await wait(20); // none but the server's
  await server.kill();
  const { exit, stdout, stderr } = await asked;
  assert.deepEqual([exit, stdout], [1, '']);
  assert.match(stderr, /^data: the running server|^the server ended before it answered; look with/);
});

test('what only reads works on a read-only mount', async (t) => {
  const cwd = await temporary(t);
  await writeFile(path.join(cwd, 'in'), '{"name":"Rex","categoryId":1}\n');
  await program(['keys', 'create', '--plan', 'free'], { cwd });
  await program(['import', 'in'], { cwd });
  const mount = 'mount --bind data data && mount -o remount,ro,bind data';
  const tried = spawnSync('unshare', ['-m', 'sh', '-c', `${mount} && ! touch data/x 2>&-`], { cwd });
  if (tried.error || tried.status !== 0) return t.skip('no read-only mount can be made here');
  const words = await command();
  for (const line of ['keys list', 'keys show k1', 'export', 'verify', 'backup b']) {
    const args = ['-m', 'sh', '-c', `${mount} && exec "$@"`, 'sh', ...words, ...line.split(' ')];
    const { status, stdout, stderr } = spawnSync('unshare', args, { cwd, encoding: 'utf8' });
    assert.deepEqual([status, stderr], [0, ''], line);
    assert.notEqual(stdout, '');
  }
  const args = ['-m', 'sh', '-c', `${mount} && exec "$@"`, 'sh', ...words, 'keys', 'revoke', 'k1'];
  const refused = spawnSync('unshare', args, { cwd, encoding: 'utf8' });
  assert.equal(refused.status, 1);
  assert.match(refused.stderr, /read-only file system\n$/);
});

test('a directory with other files and no store is left as it is, its mode too, by every command', async (t) => {
  const cwd = await temporary(t);
  const foreign = path.join(cwd, 'foreign');
  await mkdir(foreign);
  await writeFile(path.join(cwd, 'in'), '{"name":"Rex","categoryId":1}\n');
  await program(['import', 'in'], { cwd });
  await program(['backup', 'b'], { cwd });
  await writeFile(path.join(foreign, 'log-of-something'), '');
  await chmod(foreign, 0o1777);
  for (const line of [
    'serve --port 0',
    'keys create --plan free',
    'import in',
    'restore b',
    'verify',
    'keys list',
    'repair',
  ]) {
    const { exit, stdout, stderr } = await program([...line.split(' '), '--data', 'foreign'], { cwd });
    assert.deepEqual([exit, stdout], [1, ''], line);
    assert.match(stderr, /foreign holds other files and no store; it was left as it is|there is no store in foreign/);
    assert.equal((await stat(foreign)).mode & 0o7777, 0o1777);
    assert.deepEqual(await readdir(foreign), ['log-of-something']);
  }
});

test('restore makes a directory and files for their owner alone', async (t) => {
  const cwd = await temporary(t);
  await program(['keys', 'create', '--plan', 'free'], { cwd });
  await program(['backup', 'b'], { cwd });
  await mkdir(path.join(cwd, 'there'), { mode: 0o755 });
  for (const data of ['new', 'there']) {
    assert.equal((await program(['restore', 'b', '--data', data], { cwd })).exit, 0);
    assert.equal((await stat(path.join(cwd, data))).mode & 0o777, 0o700, data);
    for (const name of await readdir(path.join(cwd, data))) {
      assert.equal((await stat(path.join(cwd, data, name))).mode & 0o777, 0o600, `${data}/${name}`);
    }
  }
});

test('the disk fails at each sync of a restore: where the store is there all the same, that is said', {
  skip,
}, async (t) => {
  const cwd = await temporary(t);
  await program(['keys', 'create', '--plan', 'free'], { cwd });
  await program(['backup', 'b'], { cwd });
  const outcomes = new Set<boolean>();
  for (const call of ['fdatasync', 'fsync', 'pwrite64']) {
    for (let n = 1; ; n++) {
      const line = `restore b --data ${call}-${n}`;
      const ran = await injected(`${call}:error=EIO:when=${n}`, line.split(' '), { cwd });
      if (!ran.wasHit) break;
      assert.deepEqual([ran.exit, ran.stdout], [1, ''], line);
      const isThere = (await program(['verify', '--data', `${call}-${n}`], { cwd })).exit === 0;
      assert.equal(
        /; the whole store is there all the same, but .*: remove it, and restore again\n$/.test(ran.stderr),
        isThere,
      );
      outcomes.add(isThere);
    }
  }
  assert.equal(outcomes.size, 2);
});

test('the disk fails at each sync of a repair: what was done is told, and what was not is done by the next', {
  skip,
}, async (t) => {
  const cwd = await temporary(t);
  for (let i = 0; i < 3; i++) await program(['keys', 'create', '--plan', 'free'], { cwd });
  const [name] = (await readdir(path.join(cwd, 'data'))).filter((one) => one.endsWith('.jsonl'));
  const bytes = await readFile(path.join(cwd, 'data', name));
  bytes[bytes.indexOf('"k3"') + 2] ^= 1;
  await writeFile(path.join(cwd, 'data', name), bytes);
  const outcomes = new Set<boolean>();
  for (const call of ['fdatasync', 'fsync', 'pwrite64']) {
    for (let n = 1; ; n++) {
      const dir = `${call}-${n}`;
      await cp(path.join(cwd, 'data'), path.join(cwd, dir), { recursive: true });
      const ran = await injected(`${call}:error=EIO:when=${n}`, ['repair', '--data', dir, '--json'], { cwd });
      if (!ran.wasHit) break;
      const isDone = (await program(['verify', '--data', dir], { cwd })).exit === 0;
      assert.deepEqual([ran.exit, / is repaired all the same, /.test(ran.stderr)], [1, isDone], ran.stderr);
      const told = isDone ? ran.stdout : (await program(['repair', '--data', dir, '--json'], { cwd })).stdout;
      assert.deepEqual(JSON.parse(told).revoked, ['k1', 'k2'], dir);
      outcomes.add(isDone);
    }
  }
  assert.equal(outcomes.size, 2);
  const unread = spawnSync('bash', ['-c', `exec ${(await command()).join(' ')} repair >/dev/full`], { cwd });
  assert.match(String(unread.stderr), /; it may be done: .* keys list shows which keys are revoked/);
});

test('a backup that is refused, fails or is ended by a signal leaves nothing behind', { skip }, async (t) => {
  const cwd = await temporary(t);
  await program(['keys', 'create', '--plan', 'free'], { cwd });
  await mkdir(path.join(cwd, 'data', 'sub'));
  for (const [file, why] of [
    ['data/b', /^data\/b is inside the data directory\n$/],
    ['data/sub/b', /^data\/sub\/b is inside the data directory\n$/],
    ['data', /^data exists\n$/],
    ['none/b', /^\S*none: no such file or directory\n$/],
  ] as const) {
    const { exit, stderr } = await program(['backup', file], { cwd });
    assert.equal(exit, 1);
    assert.match(stderr, why);
  }
  const failures = ['fdatasync', 'fsync', 'link'].map((call) => `${call}:error=EIO:when=1`);
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'].map((signal) => `fdatasync:signal=${signal}:when=1`);
  for (const injection of [...failures, ...signals]) {
    const ran = await injected(injection, ['backup', 'b'], { cwd });
    if (!ran.wasHit && failures.includes(injection)) await rm(path.join(cwd, 'b'));
    else assert.deepEqual([ran.exit, ran.stdout, await readdir(cwd)], [1, '', ['data', 'trace']], injection);
  }
});

test('who has no room is named; and what is no file', async (t) => {
  const cwd = await temporary(t);
  await program(['keys', 'create', '--plan', 'free'], { cwd });
  const words = (await command()).join(' ');
  const run = (line: string) =>
    spawnSync('bash', ['-c', `ulimit -f 0 && exec ${words} ${line}`], { cwd, encoding: 'utf8' }).stderr;
  assert.equal(run('backup b'), 'b: file too large\n');
  assert.equal(run('import data'), 'data is a directory\n');
  assert.equal(run('import - < data'), '- is a directory\n');
});

test('an import that finds no more room says how much it has imported; the same command completes it', async (t) => {
  const cwd = await temporary(t);
  await writeFile(path.join(cwd, 'in'), '{"name":"Rex","categoryId":1}\n'.repeat(ANIMALS));
  const words = (await command()).join(' ');
  const line = `ulimit -f 16 && exec ${words} import in`;
  const { status, stderr } = spawnSync('bash', ['-c', line], { cwd, encoding: 'utf8' });
  assert.deepEqual([status, /nothing was changed/.test(stderr)], [1, false]);
  const told = Number(/; (\d+) animals of this input imported so far;.* run the command again/.exec(stderr)?.[1]);
  const { exit, stdout } = await program(['import', 'in', '--json'], { cwd });
  assert.deepEqual([exit, JSON.parse(stdout).already], [0, told], stderr);
});

test('a file that somebody else gives the name of a backup meanwhile is left as it is', async (t) => {
  const cwd = await temporary(t);
  await program(['keys', 'create', '--plan', 'free'], { cwd });
  const target = path.join(cwd, 'b');
  const link = async (from: string, to: string) => {
    await writeFile(to, 'of somebody else');
    await realDisk.link(from, to);
  };
  await assert.rejects(backup(path.join(cwd, 'data'), target, { disk: { ...realDisk, link } }), /b exists$/);
  assert.equal(await readFile(target, 'utf8'), 'of somebody else');
  assert.deepEqual(await readdir(cwd), ['b', 'data']);
});

test('who cannot lock the store for want of descriptors does not go on without the lock', async (t) => {
  const cwd = await temporary(t);
  await program(['keys', 'create', '--plan', 'free'], { cwd });
  const holder = spawn('flock', ['-x', path.join(cwd, 'data/LOCK'), 'sleep', '600'], { detached: true });
  t.after(() => process.kill(-holder.pid!, 'SIGKILL'));
  while (spawnSync('flock', ['-n', path.join(cwd, 'data/LOCK'), 'true']).status === 0) await wait(20);
  const words = (await command()).join(' ');
  for (let free = 18; free <= 30; free++) {
    const line = `ulimit -n ${free} && exec ${words} keys create --plan free`;
    const { status, stdout } = spawnSync('bash', ['-c', line], { cwd, encoding: 'utf8' });
    assert.deepEqual([status !== 0, stdout], [true, ''], line);
  }
  assert.equal((await look(cwd)).keys.length, 1);
});

test('an input that cannot be read is named, not the store', { skip }, async (t) => {
  const cwd = await temporary(t);
  await writeFile(path.join(cwd, 'in'), '{"name":"Rex","categoryId":1}\n');
  await program(['import', 'in'], { cwd });
  await program(['backup', 'b'], { cwd });
  for (const [call, file, line] of [
    ['read', 'in', 'import in'],
    ['pread64', 'b', 'restore b --data new'],
  ]) {
    const ran = await injected(`${call}:error=EIO:when=1`, line.split(' '), { cwd, only: path.join(cwd, file) });
    assert.deepEqual([ran.wasHit, ran.exit, ran.stderr], [true, 1, `${file}: i/o error\n`]);
  }
});

test('where no file descriptor is left the command says so', async (t) => {
  const cwd = await temporary(t);
  await program(['keys', 'create', '--plan', 'free'], { cwd });
  const words = (await command()).join(' ');
  let said = 0;
  for (let limit = 16; limit < 40; limit++) {
    const line = `ulimit -n ${limit} && exec ${words} keys revoke k1`;
    const { stderr, status } = spawnSync('sh', ['-c', line], { cwd, encoding: 'utf8' });
    if (status === 0) break;
    said += Number(stderr.includes('descriptors'));
    assert.doesNotMatch(stderr, /src\/operator/, 'no stack of ours');
  }
  assert.ok(said > 0);
});
