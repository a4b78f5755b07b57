/** Commands that change something, and the server, under faults: nobody is left guessing what was done. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmod, cp, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { realDisk } from '../../src/store/file/disk.ts';
import { backup, readStore } from '../../src/store/file/tools.ts';
import { injected, PATIENT, program, temporary, whyNoStrace } from '../program.ts';
import { requestsOf } from '../raw.ts';
import { workplace } from './workplace.ts';

const options = { skip: whyNoStrace() ?? false, timeout: 900_000 };
/** Two batches. */
const ANIMALS = 500;
const CREATE = 'keys create --plan free';
const NO_ROOM = 'data: no space left on device; make room there, and try again';
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
  for (const [file, message] of [
    ['data/sub/b', /b is inside the data directory$/],
    ['data', /data exists$/],
    ['none/b', /none'?$/],
  ] as const)
    await assert.rejects(backup(at('data'), at(file)), { message });
  const failures = ['fdatasync', 'fsync', 'link'].map((call) => `${call}:error=EIO:when=1`);
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'].map((signal) => `fdatasync:signal=${signal}:when=1`);
  for (const injection of [...failures, ...signals]) {
    const ran = await injected(injection, ['backup', 'b'], { cwd });
    if (!ran.wasHit && failures.includes(injection)) await rm(at('b'));
    else assert.deepEqual([ran.exit, ran.stdout, await readdir(cwd)], [1, '', ['data', 'trace']], injection);
    if (signals.includes(injection)) assert.equal(ran.stderr, 'backup was interrupted: look before you repeat it\n');
  }
  const link = async (from: string, to: string) => {
    await writeFile(to, 'of somebody else'); // who gives it that name meanwhile
    await realDisk.link(from, to);
  };
  await assert.rejects(backup(at('data'), at('b'), { disk: { ...realDisk, link } }), /b exists$/);
  assert.deepEqual([await readFile(at('b'), 'utf8'), await readdir(cwd)], ['of somebody else', ['b', 'data', 'trace']]);
});

test('a command that a signal interrupts says so, and can be repeated', options, async (t) => {
  const { cwd, at, animals, done, run } = await workplace(t);
  await animals(5_000);
  const interrupted = async (injection: string, line: string, only?: string) => {
    const { exit, stdout, stderr } = await injected(injection, line.split(' '), { cwd, only });
    assert.deepEqual([exit, stdout], [1, ''], `${line}: ${stderr}`);
    return stderr;
  };
  const importing = await interrupted('fdatasync:signal=SIGINT:when=3', 'import in');
  assert.match(importing, /^import was interrupted: look before you repeat it\n$/m);
  assert.match(await done('import in'), /of this input had been imported before\n$/);
  assert.match(await done('verify'), /^pets +5,000$/m);
  await done('backup b');
  const restoring = await interrupted('fdatasync:signal=SIGTERM:when=1', 'restore b --data r');
  assert.match(restoring, /^restore was interrupted: look before you repeat it\n$/m);
  const { exit, stderr } = await run('verify --data r');
  assert.deepEqual([exit, stderr], [1, 'there is no store in r\n']);
  assert.match(await done('restore b --data r'), /^pets +5,000$/m);
  const file = `data/${(await readdir(at('data'))).find((name) => name.startsWith('store-'))}`;
  const compacting = await interrupted('openat:signal=SIGINT:when=1', 'compact', file);
  assert.match(compacting, /^compact was interrupted: look before you repeat it\n$/m);
});

test('a server that is killed under a command: the command says so', options, async (t) => {
  const { at, run, serve } = await workplace(t);
  const server = await serve();
  server.process.kill('SIGSTOP');
  const asked = run(CREATE, { env: PATIENT });
  const socket = at('data/admin.sock');
  while ((await readFile('/proc/net/unix', 'latin1')).split(socket).length <= 2) await wait(20); // none but the server's
  await server.kill();
  const { exit, stdout, stderr } = await asked;
  assert.deepEqual([exit, stdout], [1, '']);
  assert.match(stderr, /^data: the running server|^the server ended before it answered; look before you repeat it/);
});

test('what only reads works on a read-only mount', async (t) => {
  const { cwd, run, done, animals } = await workplace(t);
  await animals(1);
  await done(CREATE);
  await done('import in');
  const onMount = ['-m', 'sh', '-c', 'mount --bind data data && mount -o remount,ro,bind data && exec "$@"', 'sh'];
  const tried = spawnSync('unshare', [...onMount, 'sh', '-c', '! touch data/x 2>&-'], { cwd });
  if (tried.error || tried.status !== 0) return t.skip('no read-only mount can be made here');
  for (const line of ['keys list', 'keys show k1', 'export', 'verify', 'backup b', 'keys revoke k1']) {
    const { exit, stdout, stderr } = await run(line, { before: ['unshare', ...onMount] });
    const isRefused = line.startsWith('keys revoke');
    assert.deepEqual([exit, stdout === ''], [Number(isRefused), isRefused], stderr);
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
  for (const line of ['serve --port 0', CREATE, 'restore b']) {
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

test('what failed is named; an import that has no room says how much it did, and is completed', options, async (t) => {
  const { cwd, at, done, json, animals, after } = await workplace(t);
  await animals(ANIMALS);
  await done(CREATE);
  assert.equal((await after('ulimit -f 0', 'backup b')).stderr, 'b: file too large\n');
  await done('backup b');
  for (const [fault, line, said, only] of [
    ['pwrite64:error=ENOSPC', 'compact', `the compacting process ended with 1: ${NO_ROOM}`],
    ['read:error=EIO', 'import in', 'in: i/o error', 'in'],
    ['read:error=EIO', 'restore b --data new', 'b: i/o error', 'b'],
  ]) {
    const ran = await injected(`${fault}:when=1`, line.split(' '), { cwd, only: only && at(only) });
    assert.deepEqual([ran.wasHit, ran.exit], [true, 1], line);
    assert.ok(`\n${ran.stderr}`.includes(`\n${said}\n`), ran.stderr);
  }
  const { exit, stderr } = await after('ulimit -f 8', 'import in');
  assert.deepEqual([exit, /nothing was changed/.test(stderr)], [1, false]);
  const before = /; (\d+) animals of this input imported so far;.* run the command again/.exec(stderr)?.[1];
  assert.equal((await json<{ already: number }>('import in')).already, Number(before), stderr);
});

test('where no file descriptor is left the command says so, and does not go on without the lock', async (t) => {
  const { cwd, at, done, after } = await workplace(t);
  await done(CREATE);
  const lock = realDisk.lock(at('data/LOCK'));
  t.after(() => lock.release());
  let said = 0;
  for (let free = 18, isEnough = false; !isEnough; free++) {
    const { exit, stdout, stderr } = await after(`ulimit -n ${free}`, CREATE);
    assert.deepEqual([exit !== 0, stdout], [true, ''], `with ${free}`);
    assert.doesNotMatch(stderr, /src\/operator/, 'no stack of ours');
    said += Number(stderr.includes('descriptors'));
    isEnough = exit === 4;
  }
  assert.ok(said > 0);
  assert.equal((await look(cwd)).keys.length, 1);
});

/** The first of them come with the start; the rest are writes of the test. */
const SYNC_THAT_FAILS = 6;
const WRITE_THAT_FAILS = 4;
/** What is used is written once a second, which also takes a sync, and may come among the writes on a busy machine. */
const NO_USAGE = `const { setInterval } = globalThis;
  globalThis.setInterval = (run, ms, ...words) => setInterval(run, ms === 1_000 ? 1e9 : ms, ...words);`;
/** What starts a server with failing system calls. It is the child, not the tracer; one thread does all file work. */
const failing = (fault: string) => {
  const inject = ['-e', `trace=${fault.split(':')[0]}`, '-e', `inject=${fault}`];
  return { before: ['strace', '-D', '-f', '-qq', '-o', '/dev/null', ...inject], env: { UV_THREADPOOL_SIZE: '1' } };
};

test('fdatasync fails: the write is told as unknown, and the server ends with 1', options, async (t) => {
  const { at, done, serve } = await workplace(t);
  await writeFile(at('preload.mjs'), NO_USAGE);
  const { before, env } = failing(`fdatasync:error=EIO:when=${SYNC_THAT_FAILS}+`);
  const options = { before, env: { ...env, NODE_OPTIONS: `--import ${at('preload.mjs')}` } };
  const server = await serve('--first-key pro', options);
  const headers = { authorization: `Bearer ${server.key}`, 'content-type': 'application/json' };
  const names: string[] = [];
  const unfinished = connect(Number(new URL(server.url).port), '127.0.0.1'); // it holds up nobody
  unfinished.on('error', () => {}).write(requestsOf(server.key).addPet().slice(0, -1));
  let told = '';
  unfinished.on('data', (bytes) => (told += bytes));
  t.after(() => unfinished.destroy());
  for (let status = 201; status === 201; ) {
    const body = `{"name":"animal ${names.length}","categoryId":1}`;
    const reply = await fetch(`${server.url}/pets`, { method: 'POST', headers, body });
    status = reply.status;
    if (status === 201) names.push(`animal ${names.length}`);
    else assert.match(`${status} ${await reply.text()}`, /^503 .*outcome_unknown/);
  }
  const { exit, stderr } = await server.ended;
  assert.equal(exit, 1);
  assert.equal(told, '', 'it was not waited for until it was too late, and told so');
  assert.match(stderr, /"level":"error","message":"the disk failed; the next start shows which writes were kept"/);
  assert.ok(names.length > 0 && names.length < SYNC_THAT_FAILS);
  const kept = (await done('export')).match(/animal \d/g) ?? [];
  assert.deepEqual(kept.slice(0, names.length), names);
  assert.ok(kept.length <= names.length + 1, 'only the one that was told as unknown may be there as well');
});

test('a full disk: a start names the directory, an end says what is lost', options, async (t) => {
  const { run, serve } = await workplace(t);
  const start = await run('serve --port 0', failing('pwrite64:error=ENOSPC'));
  const { message, error } = JSON.parse(start.stderr);
  assert.deepEqual([start.exit, message, error], [1, NO_ROOM, undefined]);
  const server = await serve('--first-key pro', failing(`pwrite64:error=ENOSPC:when=${WRITE_THAT_FAILS}+`));
  const headers = { authorization: `Bearer ${server.key}` };
  assert.equal((await fetch(`${server.url}/pets`, { headers })).status, 200);
  const { exit, stderr } = await server.stop();
  assert.equal(exit, 0);
  assert.match(stderr, /"message":"the last usage could not be written: the next start counts it as unused"/);
  assert.match(stderr, /no room for the closing record; all writes that were acknowledged are kept/);
  assert.doesNotMatch(stderr, /nothing is lost/);
});
