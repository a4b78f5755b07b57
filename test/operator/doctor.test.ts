/** What `petstore doctor` finds, each thing as it is and as it should be. */
import assert from 'node:assert/strict';
import { chmod, mkdir, symlink, utimes, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { COMMANDS } from '../../src/operator/commands.ts';
import { SERVE_OPTIONS } from '../../src/operator/options.ts';
import { workplace } from './workplace.ts';

interface Finding {
  what: string;
  verdict: string;
  why: string;
}

async function findings(work: Awaited<ReturnType<typeof workplace>>, line = '', before = 'true') {
  const { exit, stdout, stderr } = await work.after(before, `doctor ${line} --json`);
  const found: Finding[] = JSON.parse(stdout || '[]');
  const by = new Map(found.map((one) => [one.what, one]));
  const wrong = found.filter(({ verdict }) => verdict === 'wrong').length;
  assert.equal(exit, wrong > 0 ? 1 : 0, stderr);
  if (wrong > 0) assert.match(stderr, new RegExp(`${wrong} things? (?:is|are) wrong`));
  return (what: string) => `${by.get(what)?.verdict}: ${by.get(what)?.why}`;
}

test('a fresh set-up has nothing wrong, and nothing is made by looking', async (t) => {
  const work = await workplace(t);
  const told = await findings(work, '', 'ulimit -c 0');
  for (const what of ['owner and modes', 'free disk', 'clock', 'proxies', 'TLS', 'metrics', 'core dumps']) {
    assert.match(told(what), /^ok: /, what);
  }
  assert.equal(told('metrics'), 'ok: none are served');
  await assert.rejects(work.stored(), { code: 'ENOENT' });
  assert.match(await work.done('doctor'), /^WHAT +VERDICT +WHY\nowner and modes +ok /);
});

test('it takes each option of serve, so that those of a unit can be typed behind it as they are', async (t) => {
  const work = await workplace(t);
  const line = '--port 9090 --threads 2 --keep-alive 60 --access-log --environment staging --first-key free';
  assert.match((await findings(work, line))('clock'), /^ok: /);
  const { options } = COMMANDS.find(({ name }) => name === 'doctor')!;
  assert.deepEqual(Object.keys(options).sort(), [...Object.keys(SERVE_OPTIONS), 'json'].sort());
});

test('what others can write, a directory that serve refuses, a clock that is behind and a database that is not verified are wrong', async (t) => {
  const work = await workplace(t);
  await work.done('keys create --plan free');
  await chmod(work.at('data'), 0o777);
  assert.match((await findings(work))('owner and modes'), /^wrong: .*can be written by other users/);
  await chmod(work.at('data'), 0o700);
  await symlink('none', work.at('link'));
  assert.match((await findings(work, '--data link'))('owner and modes'), /^wrong: link is a link that leads nowhere/);
  await mkdir(work.at('foreign'), { mode: 0o700 });
  await writeFile(work.at('foreign/letter'), '');
  const ofForeign = (await findings(work, '--data foreign'))('owner and modes');
  assert.match(ofForeign, /^wrong: foreign holds other files and no store/, 'serve would not start there');
  await writeFile(work.at('file'), '');
  const ofFile = await findings(work, '--data file'); // a check that fails hides nothing of the rest
  assert.match(ofFile('clock'), /^wrong: this cannot be checked: ENOTDIR/);
  assert.match(ofFile('runtime'), /^(?:ok|note): Node/);
  // By a minute it may be ahead; a busy machine only makes that less.
  for (const [seconds, verdict] of [
    [30, /^ok: it says /],
    [300, /^wrong: .*the store was written after that/],
  ] as const) {
    const later = Date.now() / 1_000 + seconds;
    await utimes(work.at('data/LOCK'), later, later);
    assert.match((await findings(work))('clock'), verdict);
  }
  await mkdir(work.at('bin'));
  const lonely = await findings(work, '', 'export PATH=bin');
  assert.match(lonely('lock'), /^wrong: there is no flock program/);
  const secret = 'secret-of-the-database';
  const database = await findings(work, `--store postgres://u:${secret}@db/x?sslmode=require`);
  assert.match(database('database'), /^wrong: the connection to db is not verified/);
  assert.ok(!database('database').includes(secret));
  assert.match((await findings(work, '--store postgres://u@db/x'))('database'), /^ok: /);
});

test('what may be meant so is noted, and is no failure', async (t) => {
  const work = await workplace(t);
  await writeFile(work.at('x'), '');
  const told = await findings(
    work,
    '--host 0.0.0.0 --trust-proxy 1 --metrics 0.0.0.0:9100',
    'ulimit -n 1000; ulimit -c 1',
  );
  for (const what of ['proxies', 'TLS', 'metrics', 'descriptors', 'core dumps'])
    assert.match(told(what), /^note: /, what);
  await mkdir(work.at('everybodys'));
  await work.done('keys create --plan free --data everybodys/ours/shop');
  const above = async (mode: number) => {
    await chmod(work.at('everybodys'), mode);
    return (await findings(work, '--data everybodys/ours/shop'))('owner and modes');
  };
  assert.match(await above(0o777), /^note: .*others can write in \S+\/everybodys, and so move it away/);
  for (const mode of [0o1777, 0o755]) assert.match(await above(mode), /^ok: /);
  const tls = async (options: string) => (await findings(work, `--host 0.0.0.0 ${options}`))('TLS');
  assert.match(await tls('--base-url https://api.example/v1'), /^ok: --base-url says/);
  assert.match(
    await tls('--environment staging --staging-base-url https://x.example/v1'),
    /^ok: --staging-base-url says/,
  );
  const address = '--base-url https://api.example/v1'; // that of another server
  assert.match(await tls(`--environment staging ${address}`), /^note: .* name it by --staging-base-url https/);
});
