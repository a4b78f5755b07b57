/** What stands in the way of a start, or of a clean end, and how it is told. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { realDisk } from '../../src/store/file/disk.ts';
import { command, freePort, program, serving, temporary, whyNoStrace } from '../program.ts';

const TEST_MAX_MS = 240_000;
/** Enough to be read for some tenths of a second. */
const ANIMALS = 150_000;
const ASK_AGAIN_MS = 20;
const DEBUGGER_MAX_MS = 500;
/** The first write that finds no room; those before it come with the start. */
const WRITE_WITHOUT_ROOM = 4;
const NOBODY = 65_534;

const serve = ['serve', '--port', '0'];

/** Why a server did not start: one line of log, without a stack. */
function reasonIn(stderr: string): string {
  const { level, message, error } = JSON.parse(stderr);
  assert.deepEqual([level, error], ['error', undefined]);
  return message;
}

async function run(t: TestContext, words: string[], options: Parameters<typeof spawn>[2] = {}) {
  const child = spawn(words[0], words.slice(1), { ...options, stdio: 'pipe' });
  t.after(() => child.kill('SIGKILL'));
  const said = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => (said.stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said.stderr += text));
  return { child, said, ended: once(child, 'close') };
}

test('a command that has the store is waited for by a server that starts', { timeout: TEST_MAX_MS }, async (t) => {
  const data = path.join(await temporary(t), 'data');
  await mkdir(data);
  const lock = realDisk.lock(path.join(data, 'LOCK'));
  const { exit, stdout, stderr } = await program([...serve, '--data', data]);
  assert.deepEqual([exit, stdout], [4, ''], 'but not for long');
  assert.equal(reasonIn(stderr), `${data} is in use by another petstore`);
  const port = String(await freePort());
  const { child, said, ended } = await run(t, [...(await command()), 'serve', '--port', port, '--data', data]);
  const health = () => fetch(`http://127.0.0.1:${port}/healthz`).catch(() => undefined);
  while (child.exitCode === null && (await health()) === undefined) await wait(ASK_AGAIN_MS);
  assert.equal(said.stdout, ''); // the port is open, the lock was tried, and both before anybody is answered
  lock.release();
  while (child.exitCode === null && said.stdout === '') await wait(ASK_AGAIN_MS);
  assert.match(said.stdout, /^petstore listening/, said.stderr);
  child.kill('SIGTERM');
  assert.deepEqual(await ended, [0, null]);
});

test('while a big store is read /healthz is 200 and /readyz is 503', { timeout: TEST_MAX_MS }, async (t) => {
  const cwd = await temporary(t);
  await writeFile(path.join(cwd, 'in'), '{"name":"Rex","categoryId":1}\n'.repeat(ANIMALS));
  assert.equal((await program(['import', 'in'], { cwd })).exit, 0);
  const port = await freePort();
  const { child, said } = await run(t, [...(await command()), 'serve', '--port', String(port)], { cwd });
  const ask = (page: string) => fetch(`http://127.0.0.1:${port}${page}`).catch(() => undefined);
  const answers: unknown[] = [];
  while (said.stdout === '' && child.exitCode === null && child.signalCode === null) {
    const ready = await ask('/readyz');
    if (ready?.status === 503) answers.push([(await ask('/healthz'))?.status, JSON.parse(await ready.text()).code]);
  }
  assert.ok(answers.length > 0, 'nobody was answered before it was ready');
  for (const answer of answers) assert.deepEqual(answer, [200, 'unavailable']);
  assert.equal((await ask('/readyz'))?.status, 200);
});

test('what is no store and cannot become one is told in a sentence', async (t) => {
  const cwd = await temporary(t);
  await writeFile(path.join(cwd, 'file'), '');
  await symlink('none', path.join(cwd, 'nowhere'));
  await mkdir(path.join(cwd, 'taken', 'admin.sock'), { recursive: true, mode: 0o700 });
  for (const [data, said] of [
    ['file', /^file: not a directory$/],
    ['file/x', /^file\/x: not a directory$/],
    ['nowhere', /^nowhere: this is a link that leads nowhere$/],
    ['taken', /taken\/admin\.sock is in the place of the socket for commands: remove it by hand$/],
  ] as const) {
    const { exit, stdout, stderr } = await program([...serve, '--data', data], { cwd });
    assert.deepEqual([exit, stdout], [1, ''], data);
    assert.match(reasonIn(stderr), said);
  }
  const { exit, stderr } = await program([...serve, '--seed', 'none'], { cwd });
  assert.deepEqual([exit, reasonIn(stderr)], [1, 'seed none: no such file or directory']);
});

function whyNotAsNobody(): string | false {
  if (process.getuid?.() !== 0) return 'only root can run a program as somebody else';
  const { error } = spawnSync(process.execPath, ['-e', '0'], { uid: NOBODY, gid: NOBODY });
  return error === undefined ? false : `another user may not run ${process.execPath}`;
}

test('what one may not read is told in a sentence', { skip: whyNotAsNobody() }, async (t) => {
  const cwd = await temporary(t);
  await chmod(cwd, 0o755);
  await mkdir(path.join(cwd, 'closed'), { mode: 0o700 });
  for (const [line, said] of [
    ['serve --port 0 --data closed', /"message":"closed: permission denied"\}\n$/],
    ['serve --port 0 --data closed/d', /"message":"closed\/d: permission denied"\}\n$/],
    [
      'keys list --data closed',
      /^closed: the running server cannot be asked: connect EACCES .*; run this as the user who owns the store\n$/,
    ],
  ] as const) {
    const options = { cwd, uid: NOBODY, gid: NOBODY };
    const program = await command();
    if (program.length > 1) await chmod(path.dirname(program[1]), 0o755);
    const { said: output, ended } = await run(t, [...program, ...line.split(' ')], options);
    assert.deepEqual(await ended, [1, null], line);
    assert.match(output.stderr, said);
  }
});

/** The program itself is the child, not the tracer; one thread does all file work, so that its calls are counted. */
async function traced(t: TestContext, data: string, inject: string, ...words: string[]) {
  const strace = ['strace', '-D', '-f', '-qq', '-o', '/dev/null', '-e', 'trace=pwrite64', '-e', `inject=${inject}`];
  const env = { ...process.env, UV_THREADPOOL_SIZE: '1' };
  return run(t, [...strace, ...(await command()), ...serve, '--data', data, ...words], { env });
}

test('a full disk: a start names the directory, an end says what is lost and what is not', {
  skip: whyNoStrace() ?? false,
  timeout: TEST_MAX_MS,
}, async (t) => {
  const data = path.join(await temporary(t), 'data');
  const start = await traced(t, data, 'pwrite64:error=ENOSPC');
  assert.deepEqual(await start.ended, [1, null]);
  assert.equal(reasonIn(start.said.stderr), `${data}: no space left on device; make room there, and try again`);
  const when = `pwrite64:error=ENOSPC:when=${WRITE_WITHOUT_ROOM}+`;
  const { child, said, ended } = await traced(t, data, when, '--first-key', 'pro');
  while (child.exitCode === null && !said.stdout.includes('curl')) await wait(ASK_AGAIN_MS);
  const [, url, key] = /^petstore listening on (\S+)\n(ps_\w+)\n/.exec(said.stdout)!;
  assert.equal((await fetch(`${url}/pets`, { headers: { authorization: `Bearer ${key}` } })).status, 200);
  child.kill('SIGTERM');
  assert.deepEqual(await ended, [0, null]);
  assert.match(said.stderr, /"message":"the last usage could not be written: the next start counts it as unused"/);
  assert.match(said.stderr, /no room for the closing record; all writes that were acknowledged are kept/);
  assert.doesNotMatch(said.stderr, /nothing is lost/);
});

test('no signal opens a debugger’s port', async (t) => {
  const server = await serving(t, [], { cwd: await temporary(t) });
  server.process.kill('SIGUSR1');
  for (const end = performance.now() + DEBUGGER_MAX_MS; performance.now() < end; await wait(ASK_AGAIN_MS)) {
    assert.doesNotMatch(server.stderr(), /Debugger listening/);
  }
  assert.equal((await server.stop()).exit, 0);
});
