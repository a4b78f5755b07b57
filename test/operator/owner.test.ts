/** A data directory is its owner's alone: what another user could have put there is neither read nor written. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmod, chown, mkdir, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { createKey } from '../../src/operator/keys.ts';
import { command, program } from '../program.ts';
import { isRoot, NOBODY, withStore, workplace } from './workplace.ts';

const skip = !isRoot && 'only root can be another user for a test';

const READING = ['keys list', 'verify', 'backup b'];
const WRITING = ['serve --port 0', 'keys create --plan free', 'restore whole'];

/** A store, and what the commands need. */
async function storeAt(t: TestContext) {
  const place = await workplace(t);
  await place.animals(1);
  await withStore(place.at('data'), async (context) => {
    await createKey(context, { plan: 'free', name: 'n' });
    await context.engine.store.write((tx) => tx.pets.add({ name: 'Rex', categoryId: 1, status: 'available' }));
  });
  await place.done('backup whole');
  return place;
}

/** The message, if it is refused with 1 and nothing is changed: no file, no mode. */
async function refusal({ at, run }: Awaited<ReturnType<typeof workplace>>, line: string, dir = 'data') {
  const look = async () => [(await stat(at(dir))).mode, ...(await readdir(at(dir)))];
  const before = await look();
  const { exit, stdout, stderr } = await run(`${line} --data ${dir}`);
  assert.deepEqual([exit, stdout], [1, ''], `${line}: ${stderr}`);
  assert.deepEqual(await look(), before, line);
  return stderr;
}

test('a directory that others can write is refused by every command, with what to type, and not changed', async (t) => {
  const place = await storeAt(t);
  await chmod(place.at('data'), 0o777);
  for (const line of [...READING, ...WRITING]) {
    const message = await refusal(place, line);
    assert.match(message, /data can be written by other users\. Name a directory inside it, such as data\/petstore,/);
    assert.match(message, /`chmod 700 data`/);
  }
  for (const mode of [0o707, 0o1777, ...(isRoot ? [0o770] : [])]) {
    await chmod(place.at('data'), mode);
    await assert.rejects(
      withStore(place.at('data'), async () => {}),
      /can be written by other users/,
    );
  }
  assert.match(await place.done('keys create --plan free --data data/inside'), /\nps_live_/);
  assert.equal((await stat(place.at('data/inside'))).mode & 0o777, 0o700);
});

test('a file or socket in it that is a link is refused', async (t) => {
  const place = await storeAt(t);
  const { at } = place;
  for (const name of ['admin.sock', 'store.jsonl.tmp']) {
    await symlink('../whole', at(`data/${name}`));
    assert.match(await refusal(place, 'serve --port 0'), / is a link: /, name);
    await rm(at(`data/${name}`));
  }
  await place.done('verify');
});

test('a directory of another user is refused, with who that is', { skip }, async (t) => {
  const place = await storeAt(t);
  const { at } = place;
  await chown(at('data'), NOBODY, NOBODY);
  assert.match(await refusal(place, 'verify'), /belongs to another user \(uid 65534, .*`getent passwd 65534`/);
  await chown(at('data'), 0, 0);
  await place.done('verify');
});

test('a directory with other files and no store is refused, and keeps its mode and its files', async (t) => {
  const place = await storeAt(t);
  await mkdir(place.at('foreign'), { mode: 0o755 });
  await writeFile(place.at('foreign/notes.txt'), 'x');
  for (const line of ['verify', 'serve --port 0']) await refusal(place, line, 'foreign');
});

/** What starts a program as somebody else. */
const AS_NOBODY = ['setpriv', `--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups'];
const noOther = spawnSync(AS_NOBODY[0], [...AS_NOBODY.slice(1), process.execPath, '-e', '0']).status !== 0;

test('what one may not read is said in a sentence', {
  skip: noOther && `nobody else may run ${process.execPath} for us`,
}, async (t) => {
  const { cwd, at, run } = await workplace(t);
  const [, file] = await command();
  if (file !== undefined) await chmod(path.dirname(file), 0o755);
  await chmod(cwd, 0o755);
  await mkdir(at('closed'), { mode: 0o700 });
  for (const [line, message] of [
    ['serve --port 0 --data closed', /"message":"[^"]*closed\b[^"]*(permission denied|belongs to another user)/],
    ['keys list --data closed', /closed\b.*(permission denied|belongs to another user)[^\n]*\n$/],
  ] as const) {
    const { exit, stderr } = await run(line, { before: AS_NOBODY });
    assert.equal(exit, 1, line);
    assert.match(stderr, message);
  }
});

test('what stands in the way is said in a sentence', async (t) => {
  const { at, run } = await workplace(t);
  await writeFile(at('file'), '');
  await mkdir(at('taken/admin.sock'), { recursive: true, mode: 0o700 });
  const long = 'd'.repeat(150);
  for (const [line, message] of [
    ['serve --data file', /^file\b.* not a directory$/],
    ['serve --data taken', /admin\.sock/],
    ['serve --seed none', /^seed none: no such file or directory$/],
    [`keys create --plan free --data ${long}`, /admin\.sock is too long for a socket: at most 107 bytes$/],
    ['restore none --data new', /^none: no such file or directory$/],
    ['import .', /^\.: illegal operation on a directory$/],
  ] as const) {
    const { exit, stdout, stderr } = await run(line.replace('serve', 'serve --port 0'));
    assert.deepEqual([exit, stdout], [1, ''], line);
    // A server says it in one line of log, without a stack.
    const {
      level,
      message: text,
      error,
    } = line.startsWith('serve') ? JSON.parse(stderr) : { level: 'error', message: stderr.replace(/\n$/, '') };
    assert.deepEqual([level, error], ['error', undefined]);
    assert.match(text, message, line);
  }
});

test('what only reads works on a read-only mount', async (t) => {
  const { cwd } = await storeAt(t);
  const onMount = ['-m', 'sh', '-c', 'mount --bind data data && mount -o remount,ro,bind data && exec "$@"', 'sh'];
  const tried = spawnSync('unshare', [...onMount, 'sh', '-c', '! touch data/x 2>&-'], { cwd });
  if (tried.error || tried.status !== 0) return t.skip('no read-only mount can be made here');
  for (const line of [...READING, 'keys revoke k1']) {
    const { exit, stdout, stderr } = await program(line.split(' '), { cwd, before: ['unshare', ...onMount] });
    const isRefused = line === 'keys revoke k1';
    assert.deepEqual([exit, stdout === ''], [Number(isRefused), isRefused], stderr);
    assert.match(stderr, isRefused ? /read-only file system\n$/ : /^$/, line);
  }
});
