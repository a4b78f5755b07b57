/** What the whole service does when the disk fails under it. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import { command, whyNoStrace } from '../program.ts';
import { workplace } from './workplace.ts';

/** The first of them come with the start; the rest are writes of the test. */
const SYNC_THAT_FAILS = 6;
const WRITE_THAT_FAILS = 4;
/** A server that did not end would be waited for. */
const options = { skip: whyNoStrace() ?? false, timeout: 240_000 };

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
