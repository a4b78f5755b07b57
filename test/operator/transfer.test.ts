import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { open, readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { command, program, serving, temporary } from '../program.ts';

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

for (const running of [true, false]) {
  test(`import and export, ${running ? 'through a running server' : 'on the store itself'}`, async (t) => {
    const cwd = await temporary(t);
    const server = running ? await serving(t, ['--first-key', 'free'], { cwd }) : undefined;
    await writeFile(path.join(cwd, 'in'), LINES);
    const imported = await program(['import', 'in'], { cwd });
    assert.equal(imported.stdout, '3 animals imported, ids 1 to 3\n', imported.stderr);
    assert.equal(imported.stderr, '', 'no progress where there is no terminal');
    assert.equal((await program(['export'], { cwd })).stdout, EXPORTED);
    assert.equal((await program(['export', '--status', 'sold'], { cwd })).stdout, `${EXPORTED.split('\n')[1]}\n`);
    if (server !== undefined) {
      const reply = await fetch(`${server.url}/pets`, { headers: { authorization: `Bearer ${server.key}` } });
      assert.equal(await reply.text(), `[${EXPORTED.trimEnd().replaceAll('\n', ',')}]`);
    }
    // What was exported can be imported, and exports as the same but for the ids.
    await writeFile(path.join(cwd, 'out'), EXPORTED);
    const again = await program(['import', 'out', '--json'], { cwd });
    const counts = { added: 3, already: 0, firstId: 4, lastId: 6, skipped: 0, badLines: [] };
    assert.deepEqual(JSON.parse(again.stdout), counts);
    const all = (await program(['export'], { cwd })).stdout;
    assert.equal(all, EXPORTED + EXPORTED.replace(/"id":(\d)/g, (_, id) => `"id":${Number(id) + 3}`));
  });
}

const NAME_RULE = 'name must be text of 1 to 255 characters, not only white space';
const BAD = [
  ['{"name":"","categoryId":1}', NAME_RULE],
  [`{"name":"${'n'.repeat(256)}","categoryId":1}`, NAME_RULE],
  ['{"name":"\\u0085\\u3000","categoryId":1}', NAME_RULE],
  ['{"name":"a","categoryId":1.5}', 'categoryId must be a 64-bit integer'],
  ['{"name":"a","categoryId":9223372036854775808}', 'categoryId must be a 64-bit integer'],
  ['{"categoryId":"1","status":"lost"}', 'name is missing; categoryId must be a 64-bit integer; status must be'],
  ['{"name":"a","categoryId":1,"legs":4}', 'legs is unknown'],
  ['{"eyes":2,"legs":4}', 'name is missing; categoryId is missing; eyes is unknown; legs is unknown'],
  ['[1]', 'must be a JSON object'],
  ['{"name":"a","categoryId":1,"__proto__":{"status":"sold"}}', '"__proto__" is unknown'],
  ['{"name":"a","name":"b","categoryId":1}', 'name'],
  ['{"name":"a","categoryId":1', ''],
  [`{"name":"a","categoryId":1}${' '.repeat(65_536)}`, 'longer than 65536 bytes'],
];

test('bad lines are told by number and reason, and nothing is added unless they are to be skipped', async (t) => {
  const cwd = await temporary(t);
  const good = '{"name":"good","categoryId":1}';
  await writeFile(path.join(cwd, 'in'), `${good}\n${BAD.map(([line]) => line).join('\n')}\n${good}`);
  const refused = await program(['import', 'in'], { cwd });
  assert.deepEqual([refused.exit, refused.stdout], [1, '']);
  const said = refused.stderr.split('\n');
  BAD.forEach(([line, reason], at) => {
    assert.ok(said[at].startsWith(`line ${at + 2}: `) && said[at].includes(reason), `${line}: ${said[at]}`);
  });
  assert.match(refused.stderr, /\nNothing imported: 13 bad lines\. Use --skip-bad to import the other 2\n$/);
  assert.equal((await program(['export'], { cwd })).exit, 1, 'there is not even a store');

  const skipped = await program(['import', 'in', '--skip-bad'], { cwd });
  assert.equal(skipped.exit, 0);
  assert.equal(skipped.stdout, '2 animals imported, ids 1 to 2; 13 lines skipped\n');
  assert.match(skipped.stderr, /^line 2: /);
});

test('however many lines are bad, every one is told, also in JSON, and also where nobody reads it', async (t) => {
  const cwd = await temporary(t);
  await writeFile(path.join(cwd, 'in'), `${'no\n'.repeat(1_234)}{"name":"\\ufeff","categoryId":1}\n`);
  const all = Array.from({ length: 1_234 }, (_, at) => at + 1);
  const { stderr } = await program(['import', 'in', '--json'], { cwd });
  const told = Array.from(stderr.matchAll(/^line (\d+): \S/gm), ([, number]) => Number(number));
  assert.deepEqual(told, all);
  assert.match(stderr, /Nothing imported: 1,234 bad lines\. Use --skip-bad to import the other one\n/);

  const [file, ...words] = await command();
  const child = spawn(file, [...words, 'import', 'in', '--skip-bad'], { cwd, stdio: ['ignore', 'pipe', 'pipe'] });
  child.stderr.destroy();
  const [[text], [exit]] = await Promise.all([once(child.stdout, 'data'), once(child, 'close')]);
  assert.deepEqual([exit, String(text)], [0, '1 animal imported, id 1; 1,234 lines skipped\n']);

  const skipped = await program(['import', 'in', '--json', '--skip-bad'], { cwd });
  assert.deepEqual([skipped.exit, skipped.stderr], [0, '']);
  const { badLines, ...counts } = JSON.parse(skipped.stdout);
  assert.deepEqual(counts, { added: 0, already: 1, firstId: 1, lastId: 1, skipped: 1_234 });
  assert.equal(badLines.length, 1_234);
  assert.match(badLines[1_233].reason, /^not JSON; import takes JSON lines such as \{/);
});

test('a seed that is not what it should be is told with its place, 20 faults of it, and nothing is kept', async (t) => {
  const cwd = await temporary(t);
  for (const [text, why] of [
    ['[]', /^must be a JSON object$/],
    ['{"pets":[{"name":"a","categoryId":1},{"name":"","status":"x"}]}', /^pets\.1\.name must be/],
    ['{"pets":[1,{"name":"a"}]}', /^pets\.0 must be a JSON object; pets\.1\.categoryId is missing$/],
    ['{"categories":[{"id":1,"name":"a","x":1,"y":2}]}', /^categories\.0\.x is unknown; categories\.0\.y is unknown$/],
    ['{"categories":1,"pets":null}', /^categories must be a JSON array; pets must be a JSON array$/],
    ['{"zoo":1,"categories":[{"id":1.5,"name":"a"}]}', /^categories\.0\.id must be a 64-bit integer; zoo is unknown$/],
    [
      `{"pets":[${'{"name":""},'.repeat(3_000)}{}]}`,
      /^pets\.0\.name .*; pets\.9\.categoryId [^;]+; and 5,982 more faults$/,
    ],
    ['{', /column 2/],
  ] as const) {
    await writeFile(path.join(cwd, 'seed'), text);
    const { exit, stdout, stderr } = await program(['serve', '--port', '0', '--seed', 'seed'], { cwd });
    assert.deepEqual([exit, stdout], [1, ''], text);
    const { level, message, error } = JSON.parse(stderr);
    assert.deepEqual([level, error], ['error', undefined]);
    assert.match(message.slice('seed seed: '.length), why);
  }
  assert.match((await program(['verify'], { cwd })).stdout, /^pets +0$/m);
});

test('what is no file of JSON lines is told in a sentence', async (t) => {
  const cwd = await temporary(t);
  await writeFile(path.join(cwd, 'table.csv'), 'name,categoryId\nRex,1\n');
  for (const [file, why] of [
    ['table.csv', /^table\.csv looks like CSV; import takes JSON lines such as \{.*\}\n$/],
    ['.', /^\. is a directory\n$/],
    ['none', /^none: no such file or directory\n$/],
  ] as const) {
    const { exit, stdout, stderr } = await program(['import', file], { cwd });
    assert.deepEqual([exit, stdout], [1, '']);
    assert.match(stderr, why);
  }
});

for (const running of [true, false]) {
  test(`an import from a pipe that is killed is completed by the same command, ${running ? 'also through a server' : 'on the store'}`, async (t) => {
    const cwd = await temporary(t);
    const server = running ? await serving(t, [], { cwd }) : undefined;
    const input = `${Array.from({ length: 30_000 }, (_, at) => `{"name":"animal ${at}","categoryId":${at % 9}}`).join('\n')}\n`;
    const [file, ...words] = await command();
    const child = spawn(file, [...words, 'import', '-'], { cwd, stdio: ['pipe', 'ignore', 'ignore'] });
    child.stdin.end(input);
    const store = path.join(cwd, 'data', 'store-000001.jsonl');
    while (child.exitCode === null && !(existsSync(store) && (await readFile(store, 'utf8')).includes('"addPets"')))
      await new Promise((resolve) => setTimeout(resolve, 2));
    child.kill('SIGKILL');
    await once(child, 'exit');
    assert.equal(child.signalCode, 'SIGKILL', 'it was killed before its end');
    const again = await program(['import', '-', '--json'], { cwd, input });
    const { added, already, skipped } = JSON.parse(again.stdout);
    assert.deepEqual([added + already, skipped], [30_000, 0], again.stderr);
    assert.ok(added > 0 && already > 0);
    const third = await program(['import', '-'], { cwd, input });
    assert.match(third.stdout, /^0 animals imported, ids 1 to 30000; 30,000 of this input had been imported before\n$/);
    assert.match((await program(['verify'], { cwd })).stdout, /^pets +30,000$/m);
    if (server === undefined) return;
    const batches = (await readFile(store, 'utf8')).matchAll(/"op":"addPets".*/g);
    const sizes = Array.from(batches, ([batch]) => batch.match(/"name"/g)!.length);
    assert.ok(Math.max(...sizes) <= 250, 'requests have their turn between small batches');
    assert.equal((await server.stop()).exit, 0);
  });
}

test('who stops reading an export ends it, without an error, and the store is closed', async (t) => {
  const cwd = await temporary(t);
  await writeFile(path.join(cwd, 'in'), '{"name":"Rex","categoryId":1}\n'.repeat(20_000));
  await program(['import', 'in'], { cwd });
  const files = await readdir(path.join(cwd, 'data'));
  const [file, ...words] = await command();
  const child = spawn(file, [...words, 'export'], { cwd, stdio: ['ignore', 'pipe', 'pipe'] });
  let stderr = '';
  child.stderr.on('data', (text) => (stderr += text));
  await once(child.stdout, 'data');
  child.stdout.destroy();
  const [exit] = await once(child, 'close');
  assert.deepEqual([exit, stderr], [0, '']);
  assert.equal((await program(['keys', 'list'], { cwd })).exit, 0);
  assert.deepEqual(await readdir(path.join(cwd, 'data')), files, 'not as after a crash');
});

test('what cannot be printed is told, and the store is closed', {
  skip: !existsSync('/dev/full') && 'there is no /dev/full on this machine',
}, async (t) => {
  const cwd = await temporary(t);
  await writeFile(path.join(cwd, 'in'), LINES);
  await program(['import', 'in'], { cwd });
  const files = await readdir(path.join(cwd, 'data'));
  const [file, ...words] = await command();
  const full = await open('/dev/full', 'w');
  t.after(() => full.close());
  for (const line of ['export', 'version', 'keys list', '--help', 'openapi', 'keys create --plan free --json']) {
    const child = spawn(file, [...words, ...line.split(' ')], { cwd, stdio: ['ignore', full.fd, 'pipe'] });
    let stderr = '';
    child.stderr!.on('data', (text) => (stderr += text));
    assert.deepEqual(await once(child, 'close'), [1, null], line);
    assert.match(stderr, /^not all could be printed: ENOSPC: no space left on device.*\n$/, line);
  }
  assert.equal((await program(['keys', 'list'], { cwd })).exit, 0);
  assert.deepEqual(await readdir(path.join(cwd, 'data')), files, 'not as after a crash');
});
