import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, open, readFile, rename, writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { IMPORT } from '../../src/operator/import.ts';
import { seedOf } from '../../src/operator/seed.ts';
import { command, temporary } from '../program.ts';
import { ANIMAL, withStore, workplace } from './workplace.ts';

const LINES = [
  '{"name":"Rex","categoryId":9007199254740993}',
  '',
  '{"id":77,"name":"Bo \\u00e9 \\"x\\"","categoryId":-9223372036854775808,"status":"sold"}',
  '{"status":"pending","categoryId":1e2,"name":"🐕"}',
].join('\r\n');

const EXPORTED = [
  '{"id":1,"name":"Rex","categoryId":9007199254740993,"status":"available"}\n',
  '{"id":2,"name":"Bo é \\"x\\"","categoryId":-9223372036854775808,"status":"sold"}\n',
  '{"id":3,"name":"🐕","categoryId":100,"status":"pending"}\n',
].join('');

test('what was imported is exported, and imported again, on the store itself and through a server', async (t) => {
  const { at, run, done, json, serve } = await workplace(t);
  await writeFile(at('in'), LINES);
  await writeFile(at('out'), EXPORTED);
  const all = EXPORTED + EXPORTED.replace(/"id":(\d)/g, (_, id) => `"id":${Number(id) + 3}`);
  const { exit, stdout, stderr } = await run('import in');
  assert.deepEqual([exit, stdout, stderr], [0, '3 animals imported, ids 1 to 3\n', '']);
  assert.equal(await done('export'), EXPORTED);
  const server = await serve('--first-key free');
  assert.equal(await done('export --status sold'), `${EXPORTED.split('\n')[1]}\n`);
  const counts = { added: 3, already: 0, firstId: 4, lastId: 6, skipped: 0, badLines: [] };
  assert.deepEqual(await json('import out'), counts);
  assert.equal(await done('export'), all);
  const reply = await fetch(`${server.url}/pets`, { headers: { authorization: `Bearer ${server.key}` } });
  assert.equal(await reply.text(), `[${all.trimEnd().replaceAll('\n', ',')}]`);
});

const NAME_RULE = 'name must be text of 1 to 255 characters, not only white space';
const BAD = [
  ['{"name":"","categoryId":1}', NAME_RULE],
  [`{"name":"${'n'.repeat(256)}","categoryId":1}`, NAME_RULE],
  ['{"name":"\\u0085\\u3000","categoryId":1}', NAME_RULE],
  ['{"name":"a","categoryId":1.5}', 'categoryId must be a 64-bit integer'],
  ['{"name":"a","categoryId":9223372036854775808}', 'categoryId must be a 64-bit integer'],
  ['{"categoryId":"1","status":"lost"}', 'name is missing; categoryId must be a 64-bit integer; status must be'],
  ['{"eyes":2,"legs":4}', 'name is missing; categoryId is missing; eyes is unknown; legs is unknown'],
  ['[1]', 'must be a JSON object'],
  ['{"name":"a","categoryId":1,"__proto__":{"status":"sold"}}', '"__proto__" is unknown'],
  ['{"name":"a","name":"b","categoryId":1}', 'name'],
  ['{"name":"a","categoryId":1', ''],
  [`{"name":"a","categoryId":1}${' '.repeat(65_536)}`, 'longer than 65536 bytes'],
];

test('bad lines, however many, are told by number and reason; nothing is added unless they are to be skipped', async (t) => {
  const { at, run, spawn } = await workplace(t);
  const many = 1_234;
  const bad = [...BAD.map(([line]) => line), ...Array(many - BAD.length).fill('no')];
  await writeFile(at('in'), [...bad, '{"name":"\\ufeff","categoryId":1}'].join('\n'));
  const refused = await run('import in --json');
  assert.deepEqual([refused.exit, refused.stdout, existsSync(at('data'))], [1, '', false]);
  const said = refused.stderr.split('\n');
  for (const [at, line] of bad.entries()) {
    const reason = BAD[at]?.[1] ?? 'not JSON; import takes JSON lines such as {';
    assert.ok(said[at].startsWith(`line ${at + 1}: `) && said[at].includes(reason), `${line}: ${said[at]}`);
  }
  const end = ['Nothing imported: 1,234 bad lines. Use --skip-bad to import the other one', ''];
  assert.deepEqual(said.slice(many), end);

  const unread = await spawn('import in --skip-bad');
  unread.child.stderr!.destroy(); // which stops nothing
  const [[text], [exit]] = await Promise.all([once(unread.child.stdout!, 'data'), unread.ended]);
  assert.deepEqual([exit, String(text)], [0, '1 animal imported, id 1; 1,234 lines skipped\n']);
  const skipped = await run('import in --json --skip-bad');
  assert.deepEqual([skipped.exit, skipped.stderr], [0, '']);
  const { badLines, ...counts } = JSON.parse(skipped.stdout);
  assert.deepEqual(counts, { added: 0, already: 1, firstId: 1, lastId: 1, skipped: many });
  assert.deepEqual([badLines.length, badLines[1].line, badLines[1].reason], [many, 2, NAME_RULE]);
});

test('a seed that is not what it should be is told with its place, 20 faults of it, and nothing is kept', async (t) => {
  const { at, run, done } = await workplace(t);
  const many = `{"pets":[${'{"name":""},'.repeat(3_000)}{}]}`;
  for (const [text, why] of [
    ['{"pets":[1,{"name":"a"}]}', /^pets\.0 must be a JSON object; pets\.1\.categoryId is missing$/],
    ['{"categories":1,"pets":null}', /^categories must be a JSON array; pets must be a JSON array$/],
    ['{"zoo":1,"categories":[{"id":1.5,"name":"a"}]}', /^categories\.0\.id must be a 64-bit integer; zoo is unknown$/],
    [many, /^pets\.0\.name .*; pets\.9\.categoryId [^;]+; and 5,982 more faults$/],
    ['{}'.padEnd(1_048_577), /^longer than 1048576 bytes; use petstore import for many animals$/],
  ] as const) {
    await writeFile(at('seed'), text);
    const told = await seedOf(at('seed')).then(String, (error: Error) => error.message);
    assert.match(told.replace(`seed ${at('seed')}: `, ''), why);
  }
  await writeFile(at('seed'), '{');
  const { exit, stdout, stderr } = await run('serve --port 0 --seed seed');
  assert.deepEqual([exit, stdout], [1, '']);
  assert.match(JSON.parse(stderr).message, /^seed seed: .*column 2/);
  assert.match(await done('verify'), /^pets +0$/m);
});

const MANY = 15_000;
/** Of those some tenth. */
const PASSED_BYTES = 50_000;

test('an import from a pipe that is killed is completed by the same command, also through a server', async (t) => {
  const { at, run, done, serve, spawn } = await workplace(t);
  await serve();
  const [socket, own] = [at('data/admin.sock'), at('own.sock')];
  await rename(socket, own);
  // Between the command and the server: it passes on the first batches, so that the command cannot come to its end.
  const front = createServer((command) => {
    const server = connect(own).on('error', () => {});
    let passed = 0;
    command.on('error', () => {}).on('close', () => server.destroy());
    command.on('data', (bytes: Buffer) => {
      if (passed < PASSED_BYTES) server.write(bytes);
      passed += bytes.length;
    });
    server.pipe(command);
  });
  t.after(() => front.close());
  await once(front.listen(socket), 'listening');
  await chmod(socket, 0o600);
  const line = (_: unknown, at: number) => `{"name":"animal ${at}","categoryId":${at % 9}}\n`;
  const input = Array.from({ length: MANY }, line).join('');
  const { child, ended } = await spawn('import -', ['pipe', 'ignore', 'ignore']);
  child.stdin!.end(input);
  const store = at('data/store-000001.jsonl');
  while (child.exitCode === null && !(await readFile(store, 'utf8')).includes('"op":"pets"')) await wait(2);
  child.kill('SIGKILL');
  assert.deepEqual(await ended, [null, 'SIGKILL'], 'it was killed before its end');
  front.close();
  await rename(own, socket);
  const { stdout, stderr } = await run('import - --json', { input });
  const { added, already } = JSON.parse(stdout);
  assert.ok(added > 0 && already > 0 && added + already === MANY, stdout + stderr);
  const third = await run('import -', { input });
  assert.equal(third.stdout, '0 animals imported, ids 1 to 15000; 15,000 of this input had been imported before\n');
  assert.match(await done('verify'), /^pets +15,000$/m);
  const batches = (await readFile(store, 'utf8')).matchAll(/"op":"pets".*/g);
  const sizes = Array.from(batches, ([batch]) => JSON.parse(`{${batch}`).names.length);
  const largest = Math.max(...sizes);
  assert.ok(largest <= 250 && largest > 200, 'requests have their turn between batches, which are small, but not many');
});

test('requests have their turn after every batch of an import, also of one that finds nothing left to do', async (t) => {
  const data = await temporary(t);
  for (const count of ['added', 'already']) {
    let turns = 0;
    const input = (async function* () {
      for (let batches = 0; batches < 20; batches++) {
        assert.ok(turns >= batches, `${turns} turns in ${batches} batches`);
        setImmediate(() => turns++);
        yield Buffer.from(`digest:${batches} [${ANIMAL.trim()}]`);
      }
    })();
    const io = { input, tell: async () => {} };
    const told = await withStore(data, async (context) => IMPORT.call!(context, { file: '-' }, io));
    assert.equal((told as Record<string, unknown>)[count], 20);
  }
});

const noScript = spawnSync('script', ['--version']).error && 'there is no script program, which makes terminals';

test('on a terminal an import draws a bar and takes it away again', { skip: noScript ?? false }, async (t) => {
  const { cwd, animals } = await workplace(t);
  await animals(40_000);
  const words = [...(await command()), 'import', 'in'].map((word) => `'${word}'`).join(' ');
  const { stdout, status } = spawnSync('script', ['-qec', words, '/dev/null'], { cwd, encoding: 'utf8' });
  assert.equal(status, 0, stdout);
  assert.match(stdout, /\rchecking in \[#+\.+\] +\d+ %/);
  assert.match(stdout, /\rimport \[\.+\] +0 %/);
  assert.match(stdout, /\r\x1b\[K40,000 animals imported, ids 1 to 40000\r\n$/);
});

const skip = !existsSync('/dev/full') && 'there is no /dev/full on this machine';

test('who stops reading ends an export; what cannot be printed is told; the store is closed', { skip }, async (t) => {
  const { after, animals, done, spawn, stored } = await workplace(t);
  await animals(20_000);
  await done('import in');
  const files = await stored();
  const { child, ended, stderr } = await spawn('export');
  await once(child.stdout!, 'data');
  child.stdout!.destroy();
  assert.deepEqual([...(await ended), stderr()], [0, null, '']);
  const full = await open('/dev/full', 'w');
  t.after(() => full.close());
  for (const [line, advice] of [
    ['export', ''],
    ['--help', ''],
    ['version', '; all else was done'],
    ['backup b', '; all else was done'],
    ['restore b --data d', '; all else was done'],
    ['keys create --plan free', '; the key k1 is lost: end it with .* keys revoke k1, and create another'],
    ['keys rotate k1', '; the new secret of k1 is lost: rotate the key again'],
    ['keys lift k1', '; all else was done'],
  ]) {
    const { ended, stderr } = await spawn(line, ['ignore', full.fd, 'pipe']);
    assert.deepEqual(await ended, [1, null], line);
    assert.match(stderr(), new RegExp(`^not all could be printed: ENOSPC: no space left on device[^;]*${advice}\n$`));
  }
  assert.match(await done('keys list'), /^k1 /m);
  const closed = await after('exec >&-', 'keys create --plan free');
  assert.equal(closed.exit, 1);
  assert.match(closed.stderr, /^nobody read the output; the key k2 is lost: end it with .* keys revoke k2, .*\n$/);
  assert.deepEqual(await stored(), files, 'not as after a crash');
});

test('a line that looks like nothing costs no more than its length', async (t) => {
  const { at } = await workplace(t);
  t.mock.method(process.stderr, 'write', (_: string, taken?: () => void) => taken?.()); // the reason of each refusal
  const refuse = async (commas: number) => {
    await writeFile(at('in'), `${','.repeat(commas)}{`);
    await assert.rejects(
      async () => IMPORT.run!({ file: at('in') }, () => assert.fail()),
      /^Error: Nothing imported: 1 bad line$/,
    );
  };
  /** Of this process, the least of some tries: the machine may be busy. */
  const cpuMs = async (commas: number, enough: number) => {
    let least = Number.POSITIVE_INFINITY;
    for (let tries = 0; tries < 5 && least > enough; tries++) {
      const before = process.cpuUsage();
      await refuse(commas);
      const { user, system } = process.cpuUsage(before);
      least = Math.min(least, (user + system) / 1_000);
    }
    return least;
  };
  await refuse(16_000); // compiled by then
  const quarter = Math.max(await cpuMs(16_000, 0), 10);
  const whole = await cpuMs(64_000, 8 * quarter);
  assert.ok(whole < 8 * quarter, `${whole} ms, and ${quarter} ms for a quarter`); // its square is 16 times that of a quarter
});

test('no control character of others reaches a terminal: names, members, files, in words and as JSON', async (t) => {
  const { at, run, done } = await workplace(t);
  const seen = /[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/;
  const nasty = [
    '\x1b[2J',
    '\x9b31m',
    '\u202eexe.',
    '\u2028',
    '\u2029',
    '\x7f',
    '\u0085',
    '\u2066',
    'a\rb',
    '\ufeff',
    'x\u200ey',
  ];
  const lines = nasty.map((text) => JSON.stringify({ name: `n${text}`, categoryId: 1 }));
  await writeFile(at('good'), lines.join('\n'));
  await done('import good');
  const exported = await done('export');
  assert.doesNotMatch(exported, seen);
  const names = exported
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line).name);
  assert.deepEqual(
    names,
    nasty.map((text) => `n${text}`),
    'and what was exported says the same',
  );
  await writeFile(
    at('bad'),
    nasty.map((text) => `{"name":"a","categoryId":1,${JSON.stringify(`\n${text}`)}:1}`).join('\n'),
  );
  await writeFile(at('bad\x1b[31m'), 'x');
  for (const line of [
    'import bad',
    'import bad --json',
    'import bad\x1b[31m',
    'import none\x1b[31m',
    'verify\x9b',
    'verify --da\x1bta x',
  ]) {
    const { exit, stdout, stderr } = await run(line);
    assert.notEqual(exit, 0, line);
    assert.doesNotMatch(stdout + stderr, seen, line);
    if (line === 'import bad') assert.equal(stderr.split('\n').length, nasty.length + 2, 'a line each, and the last');
  }
});
