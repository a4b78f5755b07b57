/** A data directory is its owner's alone: what another user could have put there is neither read, written nor believed. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, lstatSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { chmod, chown, mkdir, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { type Disk, realDisk } from '../../src/store/file/disk.ts';
import { openStore } from '../../src/store/file/open.ts';
import { addPet } from '../store/opened.ts';
import { workplace } from './workplace.ts';

const NOBODY = 65_534;
const ATTACKS = 1_000;
const isRoot = process.getuid?.() === 0;
const skip = !isRoot && 'only root can be another user for a test';

const READING = ['keys list', 'keys show k1', 'export', 'verify', 'backup b'];
const WRITING = ['serve --port 0', 'keys create --plan free', 'compact', 'restore whole', 'import in'];

/** A store, and what the commands need. */
async function withStoreAt(t: TestContext) {
  const place = await workplace(t);
  await place.animals(1);
  await place.done('keys create --plan free');
  await place.done('import in');
  await place.done('backup whole');
  return place;
}

/** What it says, if it is refused with 1 and nothing is changed: no file, no mode. */
async function refusal({ at, run }: Awaited<ReturnType<typeof workplace>>, line: string, dir = 'data') {
  const seen = async () => [(await stat(at(dir))).mode, ...(await readdir(at(dir)))];
  const before = await seen();
  const { exit, stdout, stderr } = await run(`${line} --data ${dir}`);
  assert.deepEqual([exit, stdout], [1, ''], `${line}: ${stderr}`);
  assert.deepEqual(await seen(), before, line);
  return stderr;
}

test('a directory that others can write is refused by every command, with what to type, and left as it is', async (t) => {
  const place = await withStoreAt(t);
  for (const mode of [0o777, 0o707, 0o1777, ...(isRoot ? [0o770] : [])]) {
    await chmod(place.at('data'), mode);
    for (const line of [...READING, ...WRITING]) {
      const said = await refusal(place, line);
      assert.match(
        said,
        /data can be written by other users\. Name a directory inside it, such as data\/petstore/,
        line,
      );
      assert.match(said, /`chmod 700 data`/);
    }
  }
  await mkdir(place.at('everybodys'));
  await chmod(place.at('everybodys'), 0o777);
  assert.match(await refusal(place, 'serve --port 0', 'everybodys'), /everybodys can be written by other users/);
  assert.match(await place.done('keys create --plan free --data everybodys/inside'), /\nps_live_/);
  assert.equal((await stat(place.at('everybodys/inside'))).mode & 0o777, 0o700);
});

test('a file or socket in it that others can write, or that is a link, is refused', async (t) => {
  const place = await withStoreAt(t);
  const { at } = place;
  const file = at('data/store-000001.jsonl');
  for (const one of [file, at('data/LOCK')]) {
    await chmod(one, 0o666);
    for (const line of [...READING, ...WRITING]) assert.match(await refusal(place, line), /`chmod 600 \S+`/);
    await chmod(one, 0o600);
  }
  for (const name of ['admin.sock', 'store-000002.jsonl']) {
    await symlink('../whole', at(`data/${name}`));
    for (const line of [...READING, ...WRITING])
      assert.match(await refusal(place, line), /is a link: the files of a store/);
    await rm(at(`data/${name}`));
  }
  await place.done('verify');
});

test('a directory of another user, and a file of his, is refused, and who he is is told', { skip }, async (t) => {
  const place = await withStoreAt(t);
  const { at } = place;
  for (const one of [at('data/store-000001.jsonl'), at('data/LOCK'), at('data')]) {
    await chown(one, NOBODY, NOBODY);
    for (const line of [...READING, ...WRITING]) {
      assert.match(await refusal(place, line), /belongs to another user \(uid 65534, .*`sudo -u '#65534' …`/, line);
    }
    await chown(one, 0, 0);
  }
  await mkdir(at('mine'), { mode: 0o700 });
  await chown(at('mine'), NOBODY, NOBODY);
  await symlink('data', at('his-link'));
  assert.equal(spawnSync('chown', ['-h', String(NOBODY), at('his-link')]).status, 0);
  assert.match((await place.run('verify --data his-link')).stderr, /his-link belongs to another user/);
  await place.done('verify');
});

test('a directory with other files and no store keeps its mode and its files', async (t) => {
  const place = await withStoreAt(t);
  const { at } = place;
  await mkdir(at('foreign'), { mode: 0o755 });
  for (const name of ['notes.txt', 'log-2026.jsonl', 'store-backup.jsonl']) {
    await writeFile(at(`foreign/${name}`), 'x');
    for (const line of ['serve --port 0', 'keys create --plan free', 'restore whole', 'verify', 'keys list']) {
      const before = [(await stat(at('foreign'))).mode, ...(await readdir(at('foreign')))];
      const { exit } = await place.run(`${line} --data foreign`);
      assert.ok(exit === 1 || exit === 3, `${line}: ${exit}`);
      assert.deepEqual([(await stat(at('foreign'))).mode, ...(await readdir(at('foreign')))], before, line);
    }
    await rm(at(`foreign/${name}`));
  }
});

/** Another user, who puts now a link to what is not his, now a file of his own in the place of LOCK, all the time. */
async function attacker(t: TestContext, dir: string, his: string, victim: string) {
  const code = `const fs = require('fs');
    process.on('disconnect', () => process.exit());
    process.send('begun');
    for (;;) {
      try { fs.symlinkSync(${JSON.stringify(victim)}, ${JSON.stringify(`${his}/link`)}); } catch {}
      try { fs.renameSync(${JSON.stringify(`${his}/link`)}, ${JSON.stringify(`${dir}/LOCK`)}); } catch {}
      try { fs.unlinkSync(${JSON.stringify(`${dir}/LOCK`)}); } catch {}
    }`;
  const child = spawn(process.execPath, ['-e', code], {
    uid: NOBODY,
    gid: NOBODY,
    cwd: '/',
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  t.after(() => child.kill('SIGKILL'));
  await once(child, 'message');
  return child;
}

test('another user who swaps LOCK for a link 1,000 times has nothing written elsewhere', { skip }, async (t) => {
  const { error } = spawnSync(process.execPath, ['-e', '0'], { uid: NOBODY, gid: NOBODY, cwd: '/' });
  if (error) return t.skip(`nobody else may run ${process.execPath}: ${error.message}`);
  const { cwd, at } = await workplace(t);
  chmodSync(cwd, 0o755);
  const [dir, his, victim] = [at('open'), at('his'), at('victim')];
  const lockOnly: Disk = { ...realDisk, mustBeOurs: () => {} }; // what stands behind the first refusal
  for (const one of [dir, his]) {
    mkdirSync(one);
    chmodSync(one, 0o777);
  }
  writeFileSync(victim, 'not his\n', { mode: 0o600 });
  const child = await attacker(t, dir, his, victim);
  const outcomes = new Map<string, number>();
  const isMet = () => [...outcomes.keys()].some((outcome) => outcome.includes('is a link'));
  for (let i = 0; i < ATTACKS || (!isMet() && i < 10 * ATTACKS); i++) {
    const disk = i % 10 === 0 ? realDisk : lockOnly;
    const outcome = await openStore(dir, { disk }).then(
      async ({ store }) => {
        await addPet(store).catch(() => {});
        await store.close().catch(() => {});
        return 'opened';
      },
      ({ message }: Error) => message.replaceAll(/\S*open\S*/g, 'it').slice(0, 40),
    );
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    const link = lstatSync(victim);
    assert.deepEqual([readFileSync(victim, 'utf8'), link.mode & 0o777, link.uid], ['not his\n', 0o600, 0]);
    for (const name of await readdir(dir)) if (name !== 'LOCK') await rm(path.join(dir, name));
  }
  t.diagnostic(JSON.stringify(Object.fromEntries(outcomes)));
  assert.equal(child.exitCode, null, 'he was there all the time');
  child.kill('SIGKILL');
  await once(child, 'exit'); // else he makes files while the folder is removed
  assert.ok(isMet(), 'he was met');
});

test('where the group is the user’s own, a directory that it may write is made private', { skip }, async (t) => {
  const { cwd, at, run } = await workplace(t);
  chmodSync(cwd, 0o755);
  mkdirSync(at('his'));
  chmodSync(at('his'), 0o775);
  chownSync(at('his'), NOBODY, NOBODY);
  const before = ['setpriv', `--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups'];
  if (spawnSync(before[0], [...before.slice(1), process.execPath, '-e', '0']).status !== 0) {
    return t.skip(`nobody else may run ${process.execPath} for us`);
  }
  const { program } = await import('../program.ts').then(async ({ command }) => ({ program: (await command())[1] }));
  if (program !== undefined) await chmod(path.dirname(program), 0o755);
  const { exit, stderr } = await run('keys create --plan free --data his', { before });
  assert.equal(exit, 0, stderr);
  assert.equal(lstatSync(at('his')).mode & 0o777, 0o700);
});

test('whoever answers on the socket is believed only what a server says', async (t) => {
  const { at, run } = await withStoreAt(t);
  let answer = '';
  let asked = 0;
  const fake = createServer((_, res) => {
    asked++;
    res.end(answer);
  });
  await once(fake.listen(at('data/admin.sock')), 'listening');
  t.after(() => fake.close());
  await chmod(at('data/admin.sock'), 0o600);
  for (const said of [
    'null\n',
    'true\n',
    '[]\n',
    '{"line":5}\n',
    '{"line":"x","result":1}\n',
    '{"error":null}\n',
    '{"error":{"exit":-1,"message":"x"}}\n',
    '{"error":{"exit":1,"message":{}}}\n',
    'no json\n',
    '{"other":1}\n',
  ]) {
    answer = said;
    const { exit, stdout, stderr } = await run('keys list');
    assert.deepEqual([exit, stdout], [1, ''], said);
    assert.match(stderr, /^\S+admin\.sock: the program that answers there is no server of this version\n$/, said);
  }
  if (!isRoot) return t.diagnostic('that a socket of another user is not asked was not tried: only root can make one');
  const before = asked;
  await chown(at('data/admin.sock'), NOBODY, NOBODY);
  const { exit, stderr } = await run('keys list');
  assert.deepEqual([exit, asked], [1, before]);
  assert.match(stderr, /admin\.sock belongs to another user/);
});

test('what only reads works on a read-only mount', async (t) => {
  const { at, done, run } = await withStoreAt(t);
  mkdirSync(at('mounted'));
  const mounted = spawnSync('sh', ['-c', 'mount --bind data mounted && mount -o remount,ro,bind mounted'], {
    cwd: at('.'),
    encoding: 'utf8',
  });
  if (mounted.status !== 0) return t.skip(`no read-only mount can be made: ${mounted.stderr.trim()}`);
  try {
    for (const line of READING) await done(`${line} --data mounted`);
    const { exit, stderr } = await run('keys create --plan free --data mounted');
    assert.deepEqual([exit, stderr], [1, 'mounted/LOCK: read-only file system\n']);
  } finally {
    spawnSync('umount', [at('mounted')]);
  }
});
