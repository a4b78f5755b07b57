/** The store as a whole: verify, compact, backup, restore, and what a damaged one comes to. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { chown, mkdir, open, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { writeBackup } from '../../src/operator/data.ts';
import { injected, whyNoStrace } from '../program.ts';
import { ANIMAL, isRoot, NOBODY, withStore, workplace } from './workplace.ts';

const STORE_FILE = 'data/store.jsonl';
/** A reader that is gone before anything is written: its end of the pipe is closed. */
const UNREAD = 'exec > >(exec true); wait $!';

interface Proof {
  pets: number;
  orders: number;
  keys: number;
  digest: string;
}

test('the drill: backups under load, a compaction, a kill, a restore elsewhere, equal digests', async (t) => {
  const { at, json, done, serve, headers: headersOf } = await workplace(t);
  const proof = async (line: string) => {
    const { pets, orders, keys, digest } = await json<Proof>(line);
    return { pets, orders, keys, digest };
  };
  const server = await serve();
  const headers = await headersOf();
  const post = (what: string, body: object) =>
    fetch(`${server.url}/${what}`, { method: 'POST', headers, body: JSON.stringify(body) });
  await fetch(`${server.url}/categories/7`, { method: 'PUT', headers, body: '{"name":"Seven"}' });

  let isOver = false;
  let last = 0;
  const load = Array.from({ length: 8 }, async () => {
    while (!isOver) {
      const reply = await post('pets', { name: 'under load', categoryId: 7 });
      assert.equal(reply.status, 201);
      const { id } = (await reply.json()) as { id: number };
      last = Math.max(last, id);
      if (id % 10 === 0) assert.equal((await post('store/orders', { petId: id })).status, 201);
      await wait(5); // else it takes the processor from the commands
    }
  });
  /** The load goes on: between two commands something is written. */
  const more = async () => {
    const enough = last + 20;
    while (last < enough) await Promise.race([wait(5), ...load]);
  };
  await more();
  const first = await proof('backup first.backup');
  await more();
  const verified = await proof('verify');
  await done('compact');
  await more();
  const second = await proof('backup second.backup');
  isOver = true;
  await Promise.all(load);
  const pets = [first, verified, second].map((one) => one.pets);
  assert.ok(pets[0] > 0 && pets[1] > pets[0] && pets[2] > pets[1] && second.orders > 0, String(pets));
  assert.equal((await stat(at('first.backup'))).mode & 0o777, 0o600);
  await server.kill();

  for (const [name, expected] of Object.entries({ first, second })) {
    assert.deepEqual(await proof(`restore ${name}.backup --data ${name}`), expected);
    assert.deepEqual(await proof(`verify --data ${name}`), expected);
  }
  const next = await serve('--data second');
  const reply = await fetch(`${next.url}/pets?limit=1`, { headers });
  assert.deepEqual([reply.status, (await reply.text()).includes('"id":1,')], [200, true], 'keys come with it');
  assert.equal((await proof('verify')).pets, last, 'the kill lost nothing that was acknowledged');
});

test('a backup goes through a pipe, both ways, with and without a server; no file is called -', async (t) => {
  const { cwd, run, done, json, serve } = await workplace(t);
  await done('keys create --plan free');
  const { digest } = await json<Proof>('verify');
  for (const line of ['backup -', 'backup - --json']) {
    const { exit, stdout, stderr } = await run(line);
    assert.equal(exit, 0, stderr);
    assert.ok(stderr.includes(digest), 'the proof is on stderr');
    const restored = await run(`restore - --data by${line.length}`, { input: stdout });
    assert.equal(restored.exit, 0, restored.stderr);
    assert.ok(restored.stdout.includes(digest));
    if (line === 'backup -') await serve();
    else {
      const cut = await run('restore - --data cut', { input: stdout.slice(0, -30) });
      assert.deepEqual([cut.exit, cut.stdout], [3, ''], cut.stderr);
    }
  }
  assert.ok((await readdir(cwd)).every((name) => name !== '-'));
});

test('what is no backup is called that; a store that is not empty is not restored over', async (t) => {
  const { at, run, done } = await workplace(t);
  await done('keys create --plan free');
  await done('backup b');
  await writeFile(at('text'), 'Dear reader,\n');
  await writeFile(at('empty'), '');
  for (const [file, reason] of [
    ['text', /^text is no backup of a store; nothing was restored\n$/],
    ['empty', /^empty is no backup of a store; nothing was restored\n$/],
    ['in/b', /^in\/b: no such file or directory\n$/],
  ] as const) {
    const { exit, stdout, stderr } = await run(`restore ${file} --data new`);
    assert.deepEqual([exit, stdout], [1, ''], file);
    assert.match(stderr, reason);
  }
  assert.match((await run('restore - --data new', { input: 'x' })).stderr, /^standard input is no backup of a store/);
  await withStore(at('unused'), async () => {});
  const missing = await run('restore missing --data unused');
  assert.deepEqual([missing.exit, missing.stderr], [1, 'missing: no such file or directory\n']);
  const { exit, stderr } = await run('restore b');
  assert.deepEqual([exit, /data/.test(stderr)], [1, true], stderr);
  if (isRoot) await chown(at('b'), NOBODY, NOBODY); // of another user
  await mkdir(at('there'), { mode: 0o755 });
  for (const data of ['new', 'there']) {
    await done(`restore b --data ${data}`);
    for (const name of ['.', ...(await readdir(at(data)))])
      assert.equal((await stat(at(`${data}/${name}`))).mode & 0o777, name === '.' ? 0o700 : 0o600, name);
  }
});

test('a restore whose disk fails is no success, and leaves nothing or a whole store', {
  skip: whyNoStrace() ?? false,
}, async (t) => {
  const { cwd, at, done } = await workplace(t);
  await done('keys create --plan free');
  await done('backup b');
  let whole = 0;
  for (let n = 1; ; n++) {
    await rm(at('new'), { recursive: true, force: true });
    const ran = await injected(`fsync:error=EIO:when=${n}`, ['restore', 'b', '--data', 'new'], { cwd });
    if (!ran.wasHit) break;
    assert.deepEqual([ran.exit, ran.stdout], [1, ''], ran.stderr);
    const isUnknown = /^new: i\/o error; it is unknown .*: look with .* verify --data new before you repeat it\n$/;
    assert.equal(isUnknown.test(ran.stderr), existsSync(at('new/store.jsonl')), ran.stderr);
    if (!existsSync(at('new/store.jsonl'))) continue;
    whole++;
    await done('verify --data new');
  }
  assert.ok(whole > 0);
});

test('what does not fit into the file that takes standard output is no success', async (t) => {
  const { at, run, done } = await workplace(t);
  await done('keys create --plan free');
  await writeFile(at('in'), ANIMAL.repeat(160));
  await done('import in');
  const before = ['bash', '-c', 'ulimit -f 8 && exec "$@" > out', 'bash'];
  for (const line of ['backup -', 'export']) {
    const { exit, stderr } = await run(line, { before });
    assert.equal(exit, 1, `${line}: ${stderr}`);
    assert.match(stderr, /standard output: EFBIG|standard output: .*too large/);
  }
});

test('damage is refused with exit 3 by every command that reads, with file and offset', async (t) => {
  const { at, run, done } = await workplace(t);
  await writeFile(at('in'), `${ANIMAL}{"name":"n2","categoryId":1}\n`);
  await done('import in');
  await done('backup b');
  await done('keys create --plan pro');
  const damaged = (await readFile(at(STORE_FILE), 'utf8')).replace('"n2"', '"N2"');
  await writeFile(at(STORE_FILE), damaged);
  for (const line of ['serve --port 0', 'verify', 'backup c', 'compact']) {
    const { exit, stdout, stderr } = await run(line);
    assert.deepEqual([exit, stdout], [3, ''], `${line}: ${stderr}`);
    assert.match(stderr, /store\.jsonl\b.*\boffset \d+/, line);
    assert.equal(stderr.trimEnd().split('\n').length, 1, stderr);
  }
  assert.equal(await readFile(at(STORE_FILE), 'utf8'), damaged, 'nothing was changed');
  const backup = await readFile(at('b'), 'utf8');
  for (const bad of [backup.replace('Rex', 'Max'), backup.slice(0, -20)]) {
    await writeFile(at('bad'), bad);
    const { exit, stderr } = await run('restore bad --data new');
    assert.equal(exit, 3, stderr);
  }
  await done('restore b --data new');
});

test('a backup that is refused, fails or is interrupted leaves no file', {
  skip: whyNoStrace() ?? false,
}, async (t) => {
  const { cwd, at, run, done } = await workplace(t);
  await done('keys create --plan free');
  await writeFile(at('there'), 'x');
  assert.equal((await run('backup there')).stderr, 'there exists already: name another file\n');
  assert.match((await run('backup none/b')).stderr, /^none\/b: no such file or directory\n$/);
  assert.match((await run('backup data/other.jsonl')).stderr, /^data\/other\.jsonl is in a data directory/);
  for (const fault of [
    'fsync:error=EIO:when=1',
    'rename:error=EIO:when=1',
    'fsync:error=EIO:when=2',
    'openat:error=EIO:when=1',
    'fsync:signal=SIGTERM:when=1',
  ]) {
    // The one that opens the directory of the backup, to sync the new name.
    const only = fault.startsWith('openat') ? cwd : undefined;
    const ran = await injected(fault, ['backup', 'b'], { cwd, only });
    assert.deepEqual([ran.exit, ran.stdout], [1, ''], `${fault}: ${ran.stderr}`);
    assert.match(ran.stderr, /signal/.test(fault) ? /^petstore backup was interrupted\n$/ : /^b: i\/o error\n$/, fault);
    assert.deepEqual((await readdir(cwd)).sort(), ['data', 'there', 'trace'], fault);
  }
});

test('a backup does not replace a file that has taken its name meanwhile', async (t) => {
  const { at } = await workplace(t);
  const ask = async () => {
    await writeFile(at('b'), 'complete');
    return Readable.from([Buffer.from('{"counts":{},"digest":""}\n')]);
  };
  await assert.rejects(writeBackup({ file: at('b'), json: false }, { ask }), /b exists already/);
  assert.equal(await readFile(at('b'), 'utf8'), 'complete');
});

test('output that nobody takes ends an export and fails a backup; no room on standard output is a failure', async (t) => {
  const { after, animals, done, spawn } = await workplace(t);
  await animals(4_000); // more than fit into a pipe
  await done('import in');
  const { child, ended, stderr } = await spawn('export');
  child.stdout!.once('data', () => child.stdout!.destroy());
  assert.deepEqual([...(await ended), stderr()], [0, null, '']);
  const unread = await after(UNREAD, 'backup -');
  assert.deepEqual([unread.exit, unread.stderr], [1, 'nobody read the result\n']);
  const lost = await after(UNREAD, 'keys create --plan free');
  assert.deepEqual([lost.exit, lost.stderr], [1, 'keys create was done (k1), but nobody read the result\n']);
  const full = await open('/dev/full', 'w');
  t.after(() => full.close());
  for (const line of ['export', '--help', 'backup -', 'keys rotate k1']) {
    const { ended, stderr } = await spawn(line, ['ignore', full.fd, 'pipe']);
    assert.deepEqual(await ended, [1, null], line);
    const done = line === 'keys rotate k1' ? 'keys rotate was done \\(k1\\), but ' : '';
    assert.match(stderr(), new RegExp(`^${done}standard output: .*no space left on device`), line);
  }
});
