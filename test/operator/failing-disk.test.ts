/** What the whole service does when the disk fails under it. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { test } from 'node:test';
import { RecordedLimiter } from '../../src/operator/usage.ts';
import { MemoryStore } from '../../src/store/memory.ts';
import { type ApiKey, StoreError } from '../../src/store/model.ts';
import { SetClock } from '../clock.ts';
import { command, injected, program, serving, temporary, whyNoStrace } from '../program.ts';

/** The first of them come with the start; the rest are writes of the test. */
const SYNC_THAT_FAILS = 6;
/** A server that did not end would be waited for. */
const TEST_MAX_MS = 240_000;

test('fdatasync fails: the write is told as unknown, the server ends with 1, and what was acknowledged is there', {
  skip: whyNoStrace() ?? false,
  timeout: TEST_MAX_MS,
}, async (t) => {
  const data = path.join(await temporary(t), 'data');
  const inject = ['-e', 'trace=fdatasync', '-e', `inject=fdatasync:error=EIO:when=${SYNC_THAT_FAILS}+`];
  const serve = [...(await command()), 'serve', '--port', '0', '--data', data, '--first-key', 'pro'];
  // One thread does all file work, so that `when` counts all of it; a group of its own, so that all of it can be ended.
  const env = { ...process.env, UV_THREADPOOL_SIZE: '1' };
  const child = spawn('strace', ['-f', '-qq', ...inject, ...serve], { detached: true, env });
  t.after(() => child.exitCode === null && process.kill(-child.pid!, 'SIGKILL'));
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const [said] = await once(child.stdout.setEncoding('utf8'), 'data');
  const [, url, key] = /^petstore listening on (\S+)\n(ps_\w+)\n/.exec(said)!;
  const ended = once(child, 'close');

  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const acknowledged: unknown[] = [];
  for (let last = false; !last; ) {
    const body = JSON.stringify({ name: `animal ${acknowledged.length}`, categoryId: 1 });
    const reply = await fetch(`${url}/pets`, { method: 'POST', headers, body });
    const value = (await reply.json()) as { code?: string };
    if (reply.status === 201) acknowledged.push(value);
    else assert.deepEqual([reply.status, value.code], [503, 'outcome_unknown']);
    last = reply.status !== 201;
  }
  assert.deepEqual(await ended, [1, null]);
  assert.match(stderr, /"level":"error","message":"the disk failed; the next start tells what was kept"/);
  assert.ok(acknowledged.length > 0 && acknowledged.length < SYNC_THAT_FAILS);

  const next = await serving(t, ['--data', data]);
  const kept = (await (await fetch(`${next.url}/pets`, { headers })).json()) as unknown[];
  assert.deepEqual(kept.slice(0, acknowledged.length), acknowledged);
  assert.ok(kept.length <= acknowledged.length + 1, 'only the one that was told as unknown may be there as well');
});

test('a compaction without room says so in a sentence', { skip: whyNoStrace() ?? false }, async (t) => {
  const cwd = await temporary(t);
  await program(['keys', 'create', '--plan', 'free'], { cwd });
  const { exit, stdout, stderr } = await injected('pwrite64:error=ENOSPC:when=1', ['compact'], { cwd });
  assert.deepEqual([exit, stdout], [1, '']);
  assert.match(
    stderr,
    /^the compacting process ended with 1: data: no space left on device; make room there, and try again$/m,
  );
});

test('a lift that cannot be written down lifts nothing', async () => {
  const clock = new SetClock();
  const lines: unknown[] = [];
  const line = (message: string) => void lines.push(message);
  let isFull = false;
  const append = async () => {
    if (isFull) throw new StoreError('full', 'the disk is full');
    return undefined;
  };
  const journal = { replay: async () => {}, append, close: async () => {} };
  const store = await MemoryStore.open(journal, { clock });
  const about = { id: 'k1', slot: 0, name: 'of a test', plan: 'enterprise', environment: 'production' } as const;
  const key: ApiKey = { ...about, perMinute: 1, perDay: 10, createdAt: clock.wall(), secrets: [] };
  await store.write(() => ({ op: 'setKey', key }));
  const limiter = new RecordedLimiter(store, { clock, banAfter: 1, log: { info: line, warn: line, error: line } });
  for (let i = 0; i < 2; i++) limiter.take(key);
  assert.equal(limiter.bans, 1);
  isFull = true;
  await assert.rejects(limiter.lift(key), { failure: 'full' });
  assert.equal(limiter.look(key).verdict, 'banned', 'as it is told: nothing was changed');
  isFull = false;
  await limiter.lift(key);
  assert.notEqual(limiter.look(key).verdict, 'banned');
  assert.deepEqual(
    store.read.usage.get('k1'),
    { key: 'k1', ...limiter.counted(key) },
    'what was written is what it is',
  );
  isFull = true;
  limiter.take(key);
  await limiter.stop();
  assert.deepEqual(lines, ['the last usage could not be written: the next start counts it as unused']);
});
