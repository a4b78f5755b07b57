/** Commands that change something, and the server, on a disk that fails or is full: what is reported as done is done. */
import assert from 'node:assert/strict';
import { cp, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import type { ApiKey } from '../../src/store/model.ts';
import { injected, program, temporary, whyNoStrace } from '../program.ts';
import { withStore, workplace } from './workplace.ts';

const options = { skip: whyNoStrace() ?? false, timeout: 900_000 };
const CREATE = 'keys create --plan free';

/** `reported`: printed only where it was done; `isDone`: seen by others. */
const CHANGES: [line: string, reported: RegExp, isDone: (keys: ApiKey[]) => boolean][] = [
  ['keys rotate k1', /^ps_live_\w{36}$/m, ([key]) => key.secrets.length === 2],
  ['keys revoke k1', /^revoked at +\d/m, ([key]) => key.revokedAt !== undefined],
];

test(
  'a sync fails: exit 1 and a sentence; what is reported as done is; the rest can be repeated',
  options,
  async (t) => {
    const { cwd: base, done } = await workplace(t);
    await done(CREATE);
    let cases = 0;
    for (const [line, reported, isDone] of CHANGES) {
      for (let n = 1; ; n++) {
        const cwd = await temporary(t);
        await cp(base, cwd, { recursive: true });
        const { exit, stdout, stderr, wasHit } = await injected(`fdatasync:error=EIO:when=${n}`, line.split(' '), {
          cwd,
        });
        const at = `${line}, sync ${n}: ${stdout}${stderr}`;
        if (!wasHit) {
          assert.equal(exit, 0, at);
          break;
        }
        cases++;
        assert.ok(exit === 0 || (exit === 1 && /^\S.*\n$/.test(stderr)), at);
        const keys = await withStore(`${cwd}/data`, async ({ engine }) => [...engine.store.read.keys.all()]);
        if (reported.test(stdout)) assert.ok(isDone(keys), at);
        else assert.match(stderr, /unknown|nothing was changed|i\/o error|input\/output error/, at);
        if (line === 'keys revoke k1' && isDone(keys)) continue; // it says so when it is repeated
        assert.equal((await program(line.split(' '), { cwd })).exit, 0, at);
      }
    }
    t.diagnostic(`${cases} failures`);
    assert.ok(cases >= 3, String(cases));
  },
);

test('a first file that cannot be made is told in one line, and made by the next try', options, async (t) => {
  for (const line of [CREATE, 'serve --port 0']) {
    for (const call of ['fdatasync:error=EIO:when=1', 'rename:error=EIO:when=1', 'fdatasync:error=EIO:when=3']) {
      const cwd = await temporary(t);
      const { exit, stderr, wasHit } = await injected(call, line.split(' '), { cwd });
      const at = `${line}, ${call}: ${stderr}`;
      assert.deepEqual([wasHit, exit], [true, 1], at);
      assert.equal(stderr.match(/\w+\/(?:o|output) error/g)?.length, 1, at);
      assert.doesNotMatch(stderr, /unknown|the store failed/, at);
      assert.equal((await program(CREATE.split(' '), { cwd })).exit, 0, at);
    }
  }
});

test('a file that cannot be read is named: that of the store, of a backup, or of an import', options, async (t) => {
  const { cwd, at, done } = await workplace(t);
  await done(CREATE);
  await done('backup b');
  await writeFile(at('in'), '{"name":"Rex","categoryId":1}\n');
  for (const [line, call, file] of [
    ['verify', 'pread64', 'data/store.jsonl'],
    ['restore b --data new', 'read', 'b'],
    ['import in', 'read', 'in'],
  ]) {
    const ran = await injected(`${call}:error=EIO:when=1`, line.split(' '), { cwd, only: at(file) });
    assert.deepEqual([ran.exit, ran.stderr], [1, `${file}: i/o error\n`], line);
  }
});

test('an import without room says how much it did, and is completed by the same command', options, async (t) => {
  const { animals, json, after, done } = await workplace(t);
  await animals(1_500);
  await done(CREATE);
  const { exit, stderr } = await after('ulimit -f 64', 'import in');
  assert.equal(exit, 1);
  assert.match(stderr, /^there is no room on the disk/);
  const before = /; (\S+) animals of this input are imported;.* run the command again/.exec(stderr)?.[1];
  const { added, already } = await json<{ added: number; already: number }>('import in');
  assert.deepEqual([already, added], [Number(before?.replace(',', '')), 1_500 - already], stderr);
});

test(
  'an import whose disk fails says the least that it did, and is completed by the same command',
  options,
  async (t) => {
    const { cwd, animals, json, done } = await workplace(t);
    await animals(1_500);
    await done(CREATE);
    const ran = await injected('fdatasync:error=EIO:when=5', ['import', 'in'], { cwd });
    assert.deepEqual([ran.exit, ran.stdout, ran.wasHit], [1, '', true], ran.stderr);
    const least = /; at least (\d+) animals of this input are imported; .* run the command again/.exec(ran.stderr)?.[1];
    const { added, already } = await json<{ added: number; already: number }>('import in');
    assert.ok(Number(least) > 0 && already >= Number(least), `${already}: ${ran.stderr}`);
    assert.equal(added + already, 1_500);
  },
);

/** The first of them come with the start; the rest are writes of the test. */
const SYNC_THAT_FAILS = 7;
/** Usage is put once a second, which also takes a sync, and may come among the writes on a busy machine. */
const NO_USAGE = `const { setInterval } = globalThis;
  globalThis.setInterval = (run, ms, ...words) => setInterval(run, ms === 1_000 ? 1e9 : ms, ...words);`;
/** What starts a server with failing system calls. It is the child, not the tracer; one thread does all file work. */
const failing = (fault: string) => {
  const inject = ['-e', `trace=${fault.split(':')[0]}`, '-e', `inject=${fault}`];
  return { before: ['strace', '-D', '-f', '-qq', '-o', '/dev/null', ...inject], env: { UV_THREADPOOL_SIZE: '1' } };
};

test('fdatasync fails: the write gets outcome_unknown, and the server ends with 1', options, async (t) => {
  const { at, done, serve } = await workplace(t);
  await writeFile(at('preload.mjs'), NO_USAGE);
  const { before, env } = failing(`fdatasync:error=EIO:when=${SYNC_THAT_FAILS}+`);
  const options = { before, env: { ...env, NODE_OPTIONS: `--import ${at('preload.mjs')}` } };
  const server = await serve('--first-key pro', options);
  const headers = { authorization: `Bearer ${server.key}`, 'content-type': 'application/json' };
  const names: string[] = [];
  for (let status = 201; status === 201; ) {
    const body = `{"name":"animal ${names.length}","categoryId":1}`;
    const reply = await fetch(`${server.url}/pets`, { method: 'POST', headers, body });
    status = reply.status;
    if (status === 201) names.push(`animal ${names.length}`);
    else assert.match(`${status} ${await reply.text()}`, /^503 .*outcome_unknown/);
  }
  const { exit, stderr } = await server.ended;
  assert.equal(exit, 1);
  assert.match(stderr, /"level":"error","message":"the store failed; the next start shows which writes were kept"/);
  assert.ok(names.length > 0 && names.length < SYNC_THAT_FAILS, String(names.length));
  const kept = (await done('export')).match(/animal \d/g) ?? [];
  assert.deepEqual(kept.slice(0, names.length), names);
  assert.ok(kept.length <= names.length + 1, 'only the one of unknown outcome may be there as well');
});

for (const [name, code, says] of [
  ['a full disk', 'ENOSPC', /no space left/],
  ['a quota that is used up', 'EDQUOT', /-122/],
] as const) {
  test(`${name}: no store is begun; where one fills up reads go on, and the end is clean`, options, async (t) => {
    const { run, serve } = await workplace(t);
    const start = await run('serve --port 0', failing(`pwrite64:error=${code}`));
    const { message, error } = JSON.parse(start.stderr);
    assert.deepEqual([start.exit, says.test(message), error], [1, true, undefined], message);
    const server = await serve('--first-key pro', failing(`pwrite64:error=${code}:when=8+`));
    const headers = { authorization: `Bearer ${server.key}`, 'content-type': 'application/json' };
    const post = () => fetch(`${server.url}/pets`, { method: 'POST', headers, body: '{"name":"a","categoryId":1}' });
    let status = 201;
    while (status === 201) ({ status } = await post());
    assert.equal(status, 507);
    assert.equal((await fetch(`${server.url}/pets`, { headers })).status, 200);
    const refused = await run('keys create --plan free');
    assert.equal(refused.exit, 1);
    assert.match(refused.stderr, /no room on the disk.*; nothing was changed: make room, and type it again$/m);
    const { exit, stderr } = await server.stop();
    assert.equal(exit, 0, stderr);
    assert.match(stderr, /"level":"warn","message":"the last usage could not be written, and is lost","keys":1/);
    assert.match(stderr, /"level":"warn","message":"writes are refused: there is no room on the disk/);
  });
}
