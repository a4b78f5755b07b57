/** What is done to a whole store: compaction that is given up, backups by a pipe. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { chown, mkdir, readdir } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { asCommandError } from '../../src/operator/exit.ts';
import { KEY_COMMANDS } from '../../src/operator/keys.ts';
import { BoundError } from '../../src/store/bounds.ts';
import { PATIENT } from '../program.ts';
import { addKey, aKey } from '../store/opened.ts';
import { withStore, workplace } from './workplace.ts';

const FILE = 'store-000001.jsonl';
const WAIT_MAX_MS = 60_000;
const NOBODY = 65_534;
/** More than a block of `keys list`. */
const KEYS = 300;

/** With these a compacting child stops itself before it begins, so that none is done before it is found. */
const STOPS_ITSELF = `process.argv.includes('compact-child')&&process.kill(process.pid,'SIGSTOP')`;
const env = { NODE_OPTIONS: `--import=data:text/javascript,${STOPS_ITSELF}` };
/** The single binary takes no such options: its child is stopped as soon as it is seen. */
const isBinary = process.env.PETSTORE_TEST_PROGRAM !== undefined;

/** The compacting child of a process, stopped before it is done. */
async function stoppedChild(pid: number): Promise<number> {
  for (const began = Date.now(); Date.now() - began < WAIT_MAX_MS; await wait(1)) {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
    for (const child of children.filter((one) => one !== '')) {
      try {
        if (!readFileSync(`/proc/${child}/cmdline`, 'utf8').includes('compact-child')) continue;
        if (isBinary) process.kill(Number(child), 'SIGSTOP');
        else if (!/^State:\s+T/m.test(readFileSync(`/proc/${child}/status`, 'utf8'))) continue;
        return Number(child);
      } catch {} // it has just ended
    }
  }
  assert.fail('no child was started');
}

test('SIGTERM while it compacts: the command is told that it was not done, and the log has no error', async (t) => {
  const { done, serve, spawn, stored } = await workplace(t);
  await done('keys create --plan free');
  const server = await serve('', { env });
  const compacting = await spawn('compact', 'pipe', PATIENT);
  const child = await stoppedChild(server.process.pid!);
  const { exit, stderr } = await server.stop();
  assert.equal(exit, 0);
  assert.deepEqual(await compacting.ended, [1, null]);
  assert.match(compacting.stderr(), /is being stopped, and the compaction was not done; nothing was changed\n$/);
  const lines = stderr.trim().split('\n');
  assert.deepEqual(
    lines.filter((line) => !line.includes('"level":"info"')),
    [],
  );
  await ended(child);
  await onlyStore(stored);
});

/** Waits for a process that was killed: it may be left for whoever collects what is dead. */
async function ended(pid: number): Promise<void> {
  const isDead = () => {
    try {
      return /^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
    } catch {
      return true;
    }
  };
  for (let ms = 0; !isDead(); ms += 20) {
    assert.ok(ms < 20_000, 'the child goes on');
    await wait(20);
  }
}

/** The one file that is the store. */
async function onlyStore(stored: () => Promise<string[]>): Promise<string[]> {
  const files = (await stored()).filter((name) => name.startsWith('store-'));
  assert.equal(files.length, 1, String(files));
  return files;
}

test('a compact command that a signal ends says that it was not done, and leaves a whole store', async (t) => {
  const { done, spawn, stored } = await workplace(t);
  await done('keys create --plan free');
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    const compacting = await spawn('compact', 'pipe', env);
    await stoppedChild(compacting.child.pid!);
    compacting.child.kill(signal);
    assert.deepEqual(await compacting.ended, [1, null]);
    assert.match(compacting.stderr(), /the compaction was not done; nothing was changed\n$/);
    assert.match(await done('verify'), /^notices +none$/m, 'it was closed');
    await onlyStore(stored);
  }
});

test('a child that wakes beside a newer one cannot touch what that one has written', async (t) => {
  const { at, done, serve, spawn, stored } = await workplace(t);
  await done('keys create --plan free');
  const server = await serve('', { env });
  const first = await spawn('compact', 'pipe', PATIENT);
  const orphan = await stoppedChild(server.process.pid!);
  await server.kill();
  await first.ended;
  const next = await serve('', { env });
  const second = await spawn('compact', 'pipe', PATIENT);
  const newer = await stoppedChild(next.process.pid!);
  const name = (pid: number) =>
    readFileSync(`/proc/${pid}/cmdline`, 'utf8')
      .split('\0')
      .find((word) => word.endsWith('.tmp'));
  assert.notEqual(name(orphan), name(newer));
  process.kill(orphan, 'SIGCONT');
  process.kill(newer, 'SIGCONT');
  assert.deepEqual(await second.ended, [0, null]);
  await next.stop();
  await done('verify');
  assert.ok((await stored()).includes('LOCK'), at('data'));
});

test('a stray file with a higher number is to be moved, however damaged it is', async (t) => {
  const { at, done, run } = await workplace(t);
  await done('keys create --plan free');
  await done('keys create --plan free --data other');
  const stray = readFileSync(at(`other/${FILE}`), 'utf8').replace('"setKey"', '"SETKEY"');
  writeFileSync(at('data/store-000005.jsonl'), stray, { mode: 0o600 });
  for (const line of ['verify', 'keys list', 'serve --port 0']) {
    const { exit, stderr } = await run(line);
    assert.equal(exit, 3);
    assert.match(stderr, /store-000005\.jsonl, offset 0: the file says that it is store-000001\.jsonl\..* Move it to/);
  }
});

test('a batch that a server is writing is not called a crash’s by verify', async (t) => {
  const { at, done, serve } = await workplace(t);
  const server = await serve('--first-key free');
  const [file] = (await readdir(at('data'))).filter((name) => name.startsWith('store-'));
  appendFileSync(at(`data/${file}`), '{"crc":"00000000","batch":3,"n":0,"op":"addP');
  assert.match(await done('verify'), /^notices +none$/m);
  await server.kill();
  // It may as well be the batch of an import that has the store for itself: no socket tells of that one.
  assert.match(await done('verify'), /a crash left this, and it is dropped, unless a command is writing it just now$/m);
});

test('a backup goes through a pipe, both ways, and no file is called -', async (t) => {
  const { cwd, at, run, done, json } = await workplace(t);
  await done('keys create --plan free');
  const { digest } = await json<{ digest: string }>('verify');
  for (const line of ['backup -', 'backup - --json']) {
    const { exit, stdout, stderr } = await run(line);
    assert.equal(exit, 0, stderr);
    assert.ok(stderr.includes(digest), 'what it holds is told beside it');
    writeFileSync(at('piped'), stdout);
    await done(`restore piped --data of${line.length}`);
    const restored = await run(`restore - --data by${line.length}`, { input: stdout });
    assert.equal(restored.exit, 0, restored.stderr);
    assert.ok(restored.stdout.includes(digest));
    assert.equal((await json<{ digest: string }>(`verify --data by${line.length}`)).digest, digest);
    const cut = await run('restore - --data cut', { input: stdout.slice(0, -30) });
    assert.deepEqual([cut.exit, cut.stdout], [3, '']);
    assert.match(cut.stderr, /standard input, offset \d+: .* It is the backup that is damaged; nothing was restored/);
  }
  assert.ok(!(await readdir(cwd)).includes('-'));
  assert.ok(!(await readdir(cwd)).includes('cut'), 'nothing was made');
});

test('what is no backup is called that; one of another user is restored', async (t) => {
  const { at, run, done } = await workplace(t);
  await done('keys create --plan free');
  await done('backup b');
  writeFileSync(at('text'), 'Dear reader,\n');
  writeFileSync(at('empty'), '');
  await mkdir(at('folder'));
  execFileSync('mkfifo', [at('fifo')]);
  for (const [file, said] of [
    ['text', /^text is no backup of a store; nothing was restored\n$/],
    ['empty', /^empty is no backup of a store; nothing was restored\n$/],
    ['folder', /^folder is not a file; `-` reads standard input\n$/],
    ['fifo', /^fifo is not a file; `-` reads standard input\n$/],
    ['in/b', /^in\/b: no such file or directory\n$/],
  ] as const) {
    const { exit, stdout, stderr } = await run(`restore ${file} --data new`);
    assert.deepEqual([exit, stdout], [1, ''], file);
    assert.match(stderr, said);
  }
  assert.match((await run('restore - --data new', { input: 'x' })).stderr, /^standard input is no backup of a store/);
  if (process.getuid?.() === 0) await chown(at('b'), NOBODY, NOBODY);
  else t.diagnostic('a backup of another user was not tried: only root can make one');
  await done('restore b --data new');
});

test('many keys are listed block by block, in one table and one JSON list', async (t) => {
  const { at, done, json } = await workplace(t);
  await withStore(at('data'), async () => {});
  assert.deepEqual(await json('keys list'), []);
  await withStore(at('data'), async ({ engine }) => {
    for (let slot = 0; slot < KEYS; slot++)
      await engine.store.write(() => ({ op: 'setKey' as const, key: aKey(slot) }));
  });
  const listed = await json<{ id: string }[]>('keys list');
  assert.deepEqual(
    listed.map(({ id }) => id),
    Array.from({ length: KEYS }, (_, i) => `k${i + 1}`),
  );
  const lines = (await done('keys list')).trimEnd().split('\n');
  assert.equal(lines.length, KEYS + 1);
  assert.equal(lines.filter((line) => line.startsWith('ID')).length, 1);
  const place = lines[0].indexOf('PLAN');
  assert.ok(lines.slice(1).every((line) => line.startsWith('free', place)));
});

test('a key of many costs a list no more than one of few, and only a block of them is held at a time', async (t) => {
  const list = KEY_COMMANDS.find(({ name }) => name === 'keys list')!;
  const [few, many] = [2_000, 40_000];
  const { at } = await workplace(t);
  await withStore(at('data'), async (context) => {
    const { store } = context.engine;
    const listed = async (json: boolean) => {
      let longest = 0;
      const tell = async (text: string) => void (longest = Math.max(longest, text.length));
      const before = process.cpuUsage();
      await list.call!(context, { json }, { input: Readable.from([]), tell });
      const { user, system } = process.cpuUsage(before);
      assert.ok(longest < 200_000, `${longest} characters at once`);
      return (user + system) / store.read.keys.size;
    };
    /** Microseconds a key: the least of several, for others use the machine as well. */
    const costs: number[] = [];
    for (const count of [few, many]) {
      const some = Array.from({ length: few });
      while (store.read.keys.size < count) await Promise.all(some.map(() => addKey(store)));
      let least = Number.POSITIVE_INFINITY;
      for (let i = 0; i < 6; i++) least = Math.min(least, await listed(i % 2 === 0));
      costs.push(least);
    }
    const said = `${costs.map((cost) => cost.toFixed(1)).join(' µs, then ')} µs a key`;
    assert.ok(costs[1] < 4 * costs[0] && costs[1] < 60, said);
    t.diagnostic(said);
  });
});

test('a bound of the store is told as that: no disk is full', () => {
  const { message } = asCommandError(
    new BoundError('full', 'the store has 1,000,000 keys, and takes no more'),
    'data',
  )!;
  assert.equal(message, 'the store has 1,000,000 keys, and takes no more');
});
