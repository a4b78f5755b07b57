/** Commands that change something, and the server, under faults: nobody is left guessing what was done. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmod, cp, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { realDisk } from '../../src/store/file/disk.ts';
import { backup, readStore } from '../../src/store/file/tools.ts';
import { command, injected, program, temporary, whyNoStrace } from '../program.ts';
import { workplace } from './workplace.ts';

const options = { skip: whyNoStrace() ?? false, timeout: 900_000 };
/** Two batches. */
const ANIMALS = 500;
const CREATE = 'keys create --plan free';
const EACH = 'fdatasync fsync pwrite64';

/** As it lies on the disk, checked as `verify` does. */
async function look(cwd: string, data = 'data') {
  const { state } = await readStore(path.join(cwd, data));
  return { keys: [...state.keys.values()], pets: state.counts().pets };
}
type Found = Awaited<ReturnType<typeof look>>;

/** A command with the first such system call failed or killed, with the second …, each time in a copy of a folder. */
async function* atEach(t: TestContext, base: string, calls: string, fault: string, line: string) {
  for (const call of calls.split(' ')) {
    for (let n = 1; ; n++) {
      const cwd = await temporary(t);
      await cp(base, cwd, { recursive: true });
      const ran = await injected(`${call}:${fault}:when=${n}`, line.split(' '), { cwd });
      const at = `${line}, ${call} ${n}: ${ran.stdout}${ran.stderr}`;
      assert.ok(ran.wasHit || ran.exit === 0, at);
      if (!ran.wasHit) break;
      yield { ...ran, cwd, at, again: (more = '') => program(`${line}${more}`.split(' '), { cwd }) };
    }
  }
}

/** `told`: what it says only where it was done; `isDone`: seen by others. The last two may be done, and not for good. */
const ERRANDS: [line: string, calls: string, told: RegExp, isDone: (after: Found) => boolean][] = [
  [CREATE, 'fdatasync', /^ps_live_\w{36}$/m, ({ keys }) => keys.length === 2],
  ['keys rotate k1', 'fdatasync', /^ps_live_\w{36}$/m, ({ keys }) => keys[0].secrets.length === 2],
  ['keys revoke k1', 'fdatasync', /^revoked at /m, ({ keys }) => keys[0].revokedAt !== undefined],
  ['keys plan k1 pro', 'fdatasync', /^plan +pro$/m, ({ keys }) => keys[0].plan === 'pro'],
  ['import in', 'fdatasync', /^\d+ animals imported/m, ({ pets }) => pets === ANIMALS],
  ['compact', 'fdatasync fsync', /^compacted/m, () => true],
  ['restore b --data new', EACH, /whole store is there all the same, .*: remove it, and restore again$/m, () => true],
  ['repair --data broken', EACH, / is repaired all the same, /, () => true],
];

test('the disk fails: exit 1 and a sentence; what is told as done is; the rest can be repeated', options, async (t) => {
  const { cwd: base, at: file, done, animals } = await workplace(t);
  await animals(ANIMALS);
  for (let i = 0; i < 3; i++) await done(`${CREATE} --data broken`);
  const store = file('broken/store-000001.jsonl');
  await writeFile(store, (await readFile(store, 'utf8')).replace('"k3"', '"k2"'));
  await done(CREATE);
  await done('backup b');
  let cases = 0;
  for (const [line, calls, told, isDone] of ERRANDS) {
    const outcomes = new Set<boolean>();
    const data = /--data (\w+)/.exec(line)?.[1];
    for await (const { at, cwd, exit, stdout, stderr, again } of atEach(t, base, calls, 'error=EIO', line)) {
      cases++;
      assert.ok((exit === 0 && !data) || (exit === 1 && /\S.*\n$/.test(stderr)), at);
      assert.doesNotMatch(stderr, /\n {4}at /, at);
      const wasDone = await look(cwd, data).then(isDone, (error) => !data && assert.fail(error));
      const isTold = told.test(stdout + stderr);
      assert.ok(isTold ? wasDone : /unknown|nothing was changed|not be|i\/o error/.test(stderr), at);
      if (data) assert.equal(isTold, wasDone, at);
      outcomes.add(wasDone);
      if (/^(restore|keys revoke)/.test(line) && wasDone) continue; // it says so when it is repeated
      const repeated = await again();
      assert.equal(repeated.exit, 0, repeated.stderr);
      if (line === 'import in') assert.ok(isDone(await look(cwd)), `nothing twice: ${at}`);
      if (data === 'broken') assert.match(wasDone ? stdout : repeated.stdout, /^revoked +k1, k2$/m, at);
    }
    if (data) assert.equal(outcomes.size, 2, line);
  }
  t.diagnostic(`${cases} failures`);
  assert.ok(cases > 20, String(cases));
});

test('an import that is killed at any write or sync is completed by the same command', options, async (t) => {
  const { cwd: base, animals } = await workplace(t);
  await animals(ANIMALS);
  let cases = 0;
  for await (const { at, cwd, again } of atEach(t, base, 'pwrite64 fdatasync rename', 'signal=SIGKILL', 'import in')) {
    cases++;
    const { exit, stdout, stderr } = await again(' --json');
    assert.equal(exit, 0, stderr);
    const { added, already } = JSON.parse(stdout);
    assert.deepEqual([added + already, (await look(cwd)).pets], [ANIMALS, ANIMALS], `nothing twice: ${at}`);
  }
  t.diagnostic(`${cases} kills`);
  assert.ok(cases > 8, String(cases));
});

test('a backup that is refused, fails or is ended by a signal leaves nothing behind', options, async (t) => {
  const { cwd, at, done } = await workplace(t);
  await done(CREATE);
  await mkdir(at('data/sub'));
  for (const [file, why] of [
    ['data/sub/b', /b is inside the data directory$/],
    ['data', /data exists$/],
    ['none/b', /none'?$/],
  ] as const) {
    await assert.rejects(backup(at('data'), at(file)), { message: why });
  }
  const failures = ['fdatasync', 'fsync', 'link'].map((call) => `${call}:error=EIO:when=1`);
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'].map((signal) => `fdatasync:signal=${signal}:when=1`);
  for (const injection of [...failures, ...signals]) {
    const ran = await injected(injection, ['backup', 'b'], { cwd });
    if (!ran.wasHit && failures.includes(injection)) await rm(at('b'));
    else assert.deepEqual([ran.exit, ran.stdout, await readdir(cwd)], [1, '', ['data', 'trace']], injection);
  }
  const link = async (from: string, to: string) => {
    await writeFile(to, 'of somebody else'); // who gives it that name meanwhile
    await realDisk.link(from, to);
  };
  await assert.rejects(backup(at('data'), at('b'), { disk: { ...realDisk, link } }), /b exists$/);
  assert.deepEqual([await readFile(at('b'), 'utf8'), await readdir(cwd)], ['of somebody else', ['b', 'data', 'trace']]);
});

test('a server that is killed under a command: the command says so, and what to do', options, async (t) => {
  const { at, run, serve } = await workplace(t);
  const server = await serve();
  server.process.kill('SIGSTOP');
  const asked = run(CREATE);
  const socket = at('data/admin.sock');
  while ((await readFile('/proc/net/unix', 'latin1')).split(socket).length <= 2) await wait(20); // none but the server's
  await server.kill();
  const { exit, stdout, stderr } = await asked;
  assert.deepEqual([exit, stdout], [1, '']);
  assert.match(stderr, /^data: the running server|^the server ended before it answered; look with/);
});

test('what only reads works on a read-only mount', async (t) => {
  const { cwd, done, animals } = await workplace(t);
  await animals(1);
  await done(CREATE);
  await done('import in');
  const mount = 'mount --bind data data && mount -o remount,ro,bind data';
  const tried = spawnSync('unshare', ['-m', 'sh', '-c', `${mount} && ! touch data/x 2>&-`], { cwd });
  if (tried.error || tried.status !== 0) return t.skip('no read-only mount can be made here');
  const words = await command();
  for (const line of ['keys list', 'keys show k1', 'export', 'verify', 'backup b', 'keys revoke k1']) {
    const args = ['-m', 'sh', '-c', `${mount} && exec "$@"`, 'sh', ...words, ...line.split(' ')];
    const { status, stdout, stderr } = spawnSync('unshare', args, { cwd, encoding: 'utf8' });
    const isRefused = line.startsWith('keys revoke');
    assert.deepEqual([status, stdout === ''], [Number(isRefused), isRefused], stderr);
    assert.match(stderr, isRefused ? /read-only file system\n$/ : /^$/, line);
  }
});

test('a directory of others is left as it is, its mode too; one that is filled is its owner’s alone', async (t) => {
  const { at, run, done } = await workplace(t);
  await done(CREATE);
  await done('backup b');
  await mkdir(at('foreign'));
  await writeFile(at('foreign/log-of-something'), '');
  await chmod(at('foreign'), 0o1777);
  for (const line of ['serve --port 0', CREATE, 'restore b', 'repair']) {
    const { exit, stdout, stderr } = await run(`${line} --data foreign`);
    assert.deepEqual([exit, stdout], [1, ''], line);
    assert.match(stderr, /foreign holds other files and no store; it was left as it is|there is no store in foreign/);
    assert.equal((await stat(at('foreign'))).mode & 0o7777, 0o1777);
    assert.deepEqual(await readdir(at('foreign')), ['log-of-something']);
  }
  await mkdir(at('there'), { mode: 0o755 });
  for (const data of ['new', 'there']) {
    await done(`restore b --data ${data}`);
    for (const name of ['.', ...(await readdir(at(data)))])
      assert.equal((await stat(at(`${data}/${name}`))).mode & 0o777, name === '.' ? 0o700 : 0o600, name);
  }
});

test('who has no room is named; an import says how much it did, and is completed when there is', options, async (t) => {
  const { cwd, done, json, animals, shell } = await workplace(t);
  await done(CREATE);
  assert.equal((await shell('ulimit -f 0', 'backup b')).stderr, 'b: file too large\n');
  const { stderr: told } = await injected('pwrite64:error=ENOSPC:when=1', ['compact'], { cwd });
  const why = 'data: no space left on device; make room there, and try again';
  assert.ok(`\n${told}`.includes(`\nthe compacting process ended with 1: ${why}\n`), told);
  await animals(ANIMALS);
  const { status, stderr } = await shell('ulimit -f 8', 'import in');
  assert.deepEqual([status, /nothing was changed/.test(stderr)], [1, false]);
  const before = /; (\d+) animals of this input imported so far;.* run the command again/.exec(stderr)?.[1];
  assert.equal((await json<{ already: number }>('import in')).already, Number(before), stderr);
});

test('where no file descriptor is left the command says so, and does not go on without the lock', async (t) => {
  const { cwd, at, done, shell } = await workplace(t);
  await done(CREATE);
  const holder = spawn('flock', ['-x', at('data/LOCK'), 'sleep', '600'], { detached: true });
  t.after(() => process.kill(-holder.pid!, 'SIGKILL'));
  while (spawnSync('flock', ['-n', at('data/LOCK'), 'true']).status === 0) await wait(20);
  let said = 0;
  for (let free = 18, isEnough = false; !isEnough; free++) {
    const { status, stdout, stderr } = await shell(`ulimit -n ${free}`, CREATE);
    assert.deepEqual([status !== 0, stdout], [true, ''], `with ${free}`);
    assert.doesNotMatch(stderr, /src\/operator/, 'no stack of ours');
    said += Number(stderr.includes('descriptors'));
    isEnough = status === 4;
  }
  assert.ok(said > 0);
  assert.equal((await look(cwd)).keys.length, 1);
});

test('an input that cannot be read is named, not the store', options, async (t) => {
  const { cwd, at, done, animals } = await workplace(t);
  await animals(1);
  await done(CREATE);
  await done('backup b');
  for (const [call, file, line] of [
    ['read', 'in', 'import in'],
    ['pread64', 'b', 'restore b --data new'],
  ]) {
    const ran = await injected(`${call}:error=EIO:when=1`, line.split(' '), { cwd, only: at(file) });
    assert.deepEqual([ran.wasHit, ran.exit, ran.stderr], [true, 1, `${file}: i/o error\n`]);
  }
});

/** The first of them come with the start; the rest are writes of the test. */
const SYNC_THAT_FAILS = 6;
const WRITE_THAT_FAILS = 4;
/** A server with failing system calls. It is the child, not the tracer; one thread does all file work, and is counted. */
async function failing(t: TestContext, cwd: string, fault: string, ...words: string[]) {
  const inject = ['-e', `trace=${fault.split(':')[0]}`, '-e', `inject=${fault}`];
  const serve = [...(await command()), 'serve', '--port', '0', ...words];
  const env = { ...process.env, UV_THREADPOOL_SIZE: '1' };
  const child = spawn('strace', ['-D', '-f', '-qq', '-o', '/dev/null', ...inject, ...serve], { cwd, env });
  t.after(() => child.kill('SIGKILL'));
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const ended = once(child, 'close');
  const said = once(child.stdout.setEncoding('utf8'), 'data').then(([text]) => text);
  return { child, ended, said, stderr: () => stderr };
}

const LISTENING = /^petstore listening on (\S+)\n(ps_\w+)\n/;

test('fdatasync fails: the write is told as unknown, and the server ends with 1', options, async (t) => {
  const { cwd, done } = await workplace(t);
  const fault = `fdatasync:error=EIO:when=${SYNC_THAT_FAILS}+`;
  const { ended, said, stderr } = await failing(t, cwd, fault, '--first-key', 'pro');
  const [, url, key] = LISTENING.exec(await said)!;
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const names: string[] = [];
  for (let status = 201; status === 201; ) {
    const name = `animal ${names.length}`;
    const reply = await fetch(`${url}/pets`, { method: 'POST', headers, body: `{"name":"${name}","categoryId":1}` });
    status = reply.status;
    if (status === 201) names.push(name);
    else assert.match(`${status} ${await reply.text()}`, /^503 .*outcome_unknown/);
  }
  assert.deepEqual(await ended, [1, null]);
  assert.match(stderr(), /"level":"error","message":"the disk failed; the next start tells what was kept"/);
  assert.ok(names.length > 0 && names.length < SYNC_THAT_FAILS);
  const kept = (await done('export')).match(/animal \d/g) ?? [];
  assert.deepEqual(kept.slice(0, names.length), names);
  assert.ok(kept.length <= names.length + 1, 'only the one that was told as unknown may be there as well');
});

test('a full disk: a start names the directory, an end says what is lost', options, async (t) => {
  const { cwd } = await workplace(t);
  const start = await failing(t, cwd, 'pwrite64:error=ENOSPC');
  assert.deepEqual(await start.ended, [1, null]);
  const { message, error } = JSON.parse(start.stderr());
  assert.deepEqual([message, error], ['data: no space left on device; make room there, and try again', undefined]);
  const fault = `pwrite64:error=ENOSPC:when=${WRITE_THAT_FAILS}+`;
  const { child, ended, said, stderr } = await failing(t, cwd, fault, '--first-key', 'pro');
  const [, url, key] = LISTENING.exec(await said)!;
  assert.equal((await fetch(`${url}/pets`, { headers: { authorization: `Bearer ${key}` } })).status, 200);
  child.kill('SIGTERM');
  assert.deepEqual(await ended, [0, null]);
  assert.match(stderr(), /"message":"the last usage could not be written: the next start counts it as unused"/);
  assert.match(stderr(), /no room for the closing record; all writes that were acknowledged are kept/);
  assert.doesNotMatch(stderr(), /nothing is lost/);
});
